//! Nobody sees a row through the cache that the server would refuse.

use std::time::{Duration, Instant};

use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::servers::Kind;

use remora_behaviour::front::{Front, assert_same};

/// For how long what was changed elsewhere may be unknown to Remora: `follow.lag_ms_max`, and some
/// more for the reading itself.
const LAG: Duration = Duration::from_millis(1_500);

const T: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40))",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
];

/// A way in which an account loses a privilege. `{db}`, `{alice}` and `{readers}` are the test's
/// schema, account and role.
struct Loss {
    what: &'static str,
    /// Statements after which the account may read.
    give: &'static [&'static str],
    /// Statements that take it away.
    take: &'static [&'static str],
    /// What alice sends first in each session.
    first: &'static [&'static str],
    query: &'static str,
    /// The kinds of servers that have this.
    has: fn(Kind) -> bool,
}

fn any(_: Kind) -> bool {
    true
}

fn has_roles(kind: Kind) -> bool {
    !matches!(kind, Kind::MySql56 | Kind::MySql57)
}

fn is_mysql_with_roles(kind: Kind) -> bool {
    kind == Kind::MySql80
}

fn is_mariadb(kind: Kind) -> bool {
    !kind.is_mysql()
}

const LOSSES: &[Loss] = &[
    Loss {
        what: "a table's privilege is revoked",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &["REVOKE SELECT ON {db}.t FROM {alice}@'%'"],
        first: &[],
        query: "SELECT * FROM {db}.t",
        has: any,
    },
    Loss {
        what: "a column's privilege is revoked",
        give: &["GRANT SELECT (a, s) ON {db}.t TO {alice}@'%'"],
        take: &["REVOKE SELECT (s) ON {db}.t FROM {alice}@'%'"],
        first: &[],
        query: "SELECT s FROM {db}.t",
        has: any,
    },
    Loss {
        what: "a schema's privilege is revoked",
        give: &["GRANT SELECT ON {db}.* TO {alice}@'%'"],
        take: &["REVOKE SELECT ON {db}.* FROM {alice}@'%'"],
        first: &[],
        query: "SELECT a FROM {db}.t",
        has: any,
    },
    Loss {
        what: "the privilege on the default schema is revoked",
        give: &["GRANT SELECT ON {db}.* TO {alice}@'%'"],
        take: &["REVOKE SELECT ON {db}.* FROM {alice}@'%'"],
        first: &["USE {db}"],
        query: "SELECT a FROM t",
        has: any,
    },
    Loss {
        what: "a global privilege is revoked",
        give: &["GRANT SELECT ON *.* TO {alice}@'%'"],
        take: &["REVOKE SELECT ON *.* FROM {alice}@'%'"],
        first: &[],
        query: "SELECT a + 1 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "the account is dropped",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &["DROP USER {alice}@'%'"],
        first: &[],
        query: "SELECT a + 2 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "the account gets another name",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &["RENAME USER {alice}@'%' TO {alice}@'10.0.0.1'"],
        first: &[],
        query: "SELECT a + 3 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "all privileges are revoked",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &["REVOKE ALL PRIVILEGES, GRANT OPTION FROM {alice}@'%'"],
        first: &[],
        query: "SELECT a + 4 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "the password is changed",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &["SET PASSWORD FOR {alice}@'%' = {new password}"],
        first: &[],
        query: "SELECT a + 5 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "a grant table is changed directly",
        give: &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
        take: &[
            "DELETE FROM mysql.tables_priv WHERE User = '{alice}'",
            "FLUSH PRIVILEGES",
        ],
        first: &[],
        query: "SELECT a + 6 FROM {db}.t",
        has: any,
    },
    Loss {
        what: "a role loses a privilege",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
        ],
        take: &["REVOKE SELECT ON {db}.t FROM {readers}"],
        first: &["SET ROLE {readers}"],
        query: "SELECT a + 7 FROM {db}.t",
        has: has_roles,
    },
    Loss {
        what: "a role is taken from the account",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
        ],
        take: &["REVOKE {readers} FROM {alice}@'%'"],
        first: &["SET ROLE {readers}"],
        query: "SELECT a + 8 FROM {db}.t",
        has: has_roles,
    },
    Loss {
        what: "a role is dropped",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
        ],
        take: &["DROP ROLE {readers}"],
        first: &["SET ROLE {readers}"],
        query: "SELECT a + 9 FROM {db}.t",
        has: has_roles,
    },
    Loss {
        what: "a default role is no longer one",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
            "SET DEFAULT ROLE {readers} FOR {alice}@'%'",
        ],
        take: &["SET DEFAULT ROLE NONE FOR {alice}@'%'"],
        first: &[],
        query: "SELECT a + 10 FROM {db}.t",
        has: is_mariadb,
    },
    Loss {
        what: "a default role is no longer one, as MySQL says it",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
            "ALTER USER {alice}@'%' DEFAULT ROLE {readers}",
        ],
        take: &["ALTER USER {alice}@'%' DEFAULT ROLE NONE"],
        first: &[],
        query: "SELECT a + 11 FROM {db}.t",
        has: is_mysql_with_roles,
    },
];

/// A test's world: its own schema, and an account that it makes anew for each case.
struct Accounts {
    front: Front,
}

impl Accounts {
    fn new(schema: &str) -> Accounts {
        Accounts {
            front: Front::new(schema, &T),
        }
    }

    fn kind(&self) -> Kind {
        self.front.server().kind()
    }

    /// A name of this test's own: the server is everybody's.
    fn name(&self, role: &str) -> String {
        // MySQL 5.6 takes no name longer than 16 characters.
        format!("{role}_{}", self.front.schema().replace("lost_", ""))
    }

    fn fill_in(&self, sql: &str) -> String {
        let new_password = match self.kind() {
            Kind::MySql57 | Kind::MySql80 => "'other'",
            _ => "PASSWORD('other')",
        };
        let schema = self.front.schema();
        sql.replace("{db}", schema)
            .replace("{alice}", &self.name("alice"))
            .replace("{bob}", &self.name("bob"))
            .replace("{readers}", &self.name("readers"))
            .replace("{new password}", new_password)
    }

    fn run(&self, admin: &mut Client, statements: &[&str]) {
        for sql in statements {
            let sql = self.fill_in(sql);
            admin
                .query(&sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// Makes the account, without any privilege.
    fn begin(&self) {
        let mut admin = self.front.direct();
        for sql in [
            "DROP USER {alice}@'%'",
            "DROP USER {alice}@'10.0.0.1'",
            "DROP ROLE {readers}",
        ] {
            // Whatever an earlier case has left.
            let _ = admin.query(&self.fill_in(sql));
        }
        let create = format!(
            "CREATE USER {{alice}}@'%' {}",
            self.kind().identified_by("alice-password")
        );
        self.run(&mut admin, &[&create]);
    }

    fn alice(&self, through: bool) -> ConnectOptions {
        let at = if through {
            self.front.remora().address()
        } else {
            self.front.options().address
        };
        ConnectOptions::new(at, &self.name("alice"), "alice-password")
    }

    fn session(&self, through: bool, loss: &Loss) -> Result<Client, ClientError> {
        let mut client = self.alice(through).connect()?;
        for sql in loss.first {
            // It fails once the privilege is gone.
            let _ = client.query(&self.fill_in(sql));
        }
        Ok(client)
    }

    /// What a new session gets, or that there is none.
    fn new_session_reads(&self, through: bool, loss: &Loss) -> Vec<u8> {
        match self.session(through, loss) {
            Ok(mut client) => self.read(&mut client, loss),
            Err(error) => format!("{:?}", error.code()).into_bytes(),
        }
    }

    fn read(&self, client: &mut Client, loss: &Loss) -> Vec<u8> {
        client
            .query_bytes(&self.fill_in(loss.query))
            .unwrap()
            .to_vec()
    }

    fn warm(&self, client: &mut Client, loss: &Loss, expected: &[u8]) {
        let hits = self.front.hits();
        let begun = Instant::now();
        while self.front.hits() < hits + 2 {
            assert_same(loss.what, &self.read(client, loss), expected);
            assert!(
                begun.elapsed() < remora_behaviour::front::PATIENCE,
                "{}: no hits",
                loss.what
            );
        }
    }

    /// One loss, made through Remora or past it.
    fn check(&self, loss: &Loss, admin_is_through: bool) {
        self.begin();
        let mut admin = if admin_is_through {
            let options = self.front.options();
            options.at(self.front.remora().address()).connect().unwrap()
        } else {
            self.front.direct()
        };
        self.run(&mut admin, loss.give);
        let given_at = Instant::now();
        let mut direct = self.session(false, loss).unwrap();
        let allowed = self.read(&mut direct, loss);
        assert_ne!(allowed[4], 0xff, "{}: {allowed:?}", loss.what);
        // What was given elsewhere may be news to Remora.
        while self.new_session_reads(true, loss) != allowed {
            assert!(
                !admin_is_through && given_at.elapsed() < LAG,
                "{}",
                loss.what
            );
        }
        let mut through = self.session(true, loss).unwrap();
        self.warm(&mut through, loss, &allowed);
        self.run(&mut admin, loss.take);
        let taken_at = Instant::now();
        let expected_new = self.new_session_reads(false, loss);
        assert_ne!(expected_new, allowed, "{}: nothing was lost", loss.what);
        let expected_old = self.read(&mut direct, loss);
        loop {
            let new = self.new_session_reads(true, loss);
            let old = self.read(&mut through, loss);
            if new == expected_new && old == expected_old {
                break;
            }
            let may_lag = !admin_is_through && taken_at.elapsed() < LAG;
            assert!(may_lag, "{}: {new:?} {old:?}", loss.what);
        }
        if expected_old == allowed {
            // What the server still lets the old session read, it has in memory again, for itself.
            self.warm(&mut through, loss, &allowed);
        }
        for _ in 0..5 {
            assert_same(
                loss.what,
                &self.new_session_reads(true, loss),
                &expected_new,
            );
            assert_same(loss.what, &self.read(&mut through, loss), &expected_old);
        }
    }
}

#[test]
fn a_privilege_lost_through_remora_is_lost_at_once() {
    let accounts = Accounts::new("lost_through");
    for loss in LOSSES.iter().filter(|loss| (loss.has)(accounts.kind())) {
        accounts.check(loss, true);
    }
}

#[test]
fn a_privilege_lost_elsewhere_is_lost_within_the_bound() {
    let accounts = Accounts::new("lost_elsewhere");
    for loss in LOSSES.iter().filter(|loss| (loss.has)(accounts.kind())) {
        accounts.check(loss, false);
    }
}

/// The one reads and has it in memory; the other may not, and gets what the server says.
#[test]
fn accounts_roles_and_hosts_share_nothing() {
    let accounts = Accounts::new("kept_apart");
    let front = &accounts.front;
    let kind = accounts.kind();
    accounts.begin();
    let mut admin = front.direct();
    let by = kind.identified_by("bob-password");
    accounts.run(
        &mut admin,
        &[
            "GRANT SELECT ON {db}.t TO {alice}@'%'",
            &format!("CREATE USER {{bob}}@'%' {by}"),
            &format!("CREATE USER {{bob}}@'10.0.0.1' {by}"),
            "GRANT SELECT ON {db}.t TO {bob}@'10.0.0.1'",
        ],
    );
    let query = accounts.fill_in("SELECT * FROM {db}.t");
    let bob = |at| ConnectOptions::new(at, &accounts.name("bob"), "bob-password");
    let refused = bob(front.options().address)
        .connect()
        .unwrap()
        .query_bytes(&query)
        .unwrap()
        .to_vec();
    assert_eq!(refused[4], 0xff, "{refused:?}");
    let expected = front.direct().query_bytes(&query).unwrap().to_vec();
    let mut alice = front.guest_as(&accounts.alice(false));
    let mut bob = front.guest_as(&bob(front.options().address));
    for _ in 0..3 {
        alice.becomes_hit(&query, &expected);
        assert_same("bob", &bob.run(&query).bytes, &refused);
    }
    if has_roles(kind) {
        accounts.run(
            &mut admin,
            &[
                "REVOKE SELECT ON {db}.t FROM {alice}@'%'",
                "CREATE ROLE {readers}",
                "GRANT SELECT ON {db}.t TO {readers}",
                "GRANT {readers} TO {alice}@'%'",
            ],
        );
        let mut direct = accounts.alice(false).connect().unwrap();
        let mut alice = front.guest_as(&accounts.alice(false));
        for role in ["{readers}", "NONE", "{readers}", "NONE"] {
            let set = accounts.fill_in(&format!("SET ROLE {role}"));
            alice.setup(&[&set]);
            direct.query(&set).unwrap();
            let expected = direct.query_bytes(&query).unwrap().to_vec();
            assert_eq!(expected[4] == 0xff, role == "NONE");
            if role == "NONE" {
                assert_same(role, &alice.run(&query).bytes, &expected);
            } else {
                alice.becomes_hit(&query, &expected);
            }
        }
    }
}
