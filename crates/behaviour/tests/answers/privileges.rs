//! Nobody sees a row through the cache that the server would refuse.

use std::time::{Duration, Instant};

use remora_testkit::client::{Client, ClientError, ConnectOptions};
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;
use remora_wire::command::ResponseKind;

use remora_behaviour::front::{Front, PATIENCE, assert_same, lease};

/// For how long what was changed elsewhere may be unknown to Remora: `follow.lag_ms_max`, and some
/// more for the reading itself.
const LAG: Duration = Duration::from_millis(1_500);

fn options() -> RemoraOptions {
    RemoraOptions::following()
        .with("follow.lag_ms_max", "1000")
        .with("follow.heartbeat_ms", "200")
        .with("follow.check_age_ms_max", "2000")
}

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
            front: Front::with(schema, options(), &T),
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
        loop {
            let may_lag = !admin_is_through && given_at.elapsed() < LAG;
            if self.new_session_reads(true, loss) == allowed {
                break;
            }
            assert!(may_lag, "{}", loss.what);
        }
        let mut through = self.session(true, loss).unwrap();
        self.warm(&mut through, loss, &allowed);
        self.run(&mut admin, loss.take);
        let taken_at = Instant::now();
        let expected_new = self.new_session_reads(false, loss);
        assert_ne!(expected_new, allowed, "{}: nothing was lost", loss.what);
        let expected_old = self.read(&mut direct, loss);
        loop {
            let may_lag = !admin_is_through && taken_at.elapsed() < LAG;
            let new = self.new_session_reads(true, loss);
            let old = self.read(&mut through, loss);
            if new == expected_new && old == expected_old {
                break;
            }
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

/// After an error Remora knows nothing of a session's transaction, and asks the server everything,
/// until this has been answered.
const CERTAIN: &str = "DO 0";

/// Ways to have the server read the tables of privileges again.
#[derive(Debug, Clone, Copy)]
enum Reading {
    Statement(&'static str),
    Prepared(&'static str),
    Command,
}

const READINGS: [Reading; 6] = [
    Reading::Statement("FLUSH PRIVILEGES"),
    Reading::Statement("FLUSH LOCAL PRIVILEGES"),
    Reading::Statement("FLUSH NO_WRITE_TO_BINLOG PRIVILEGES"),
    Reading::Statement("DO 1; FLUSH LOCAL PRIVILEGES"),
    Reading::Prepared("FLUSH LOCAL PRIVILEGES"),
    Reading::Command,
];

impl Reading {
    fn run(self, admin: &mut Client) {
        /// `COM_REFRESH`, and its bit for privileges.
        const REFRESH: (u8, &[u8]) = (0x07, &[0x01]);
        match self {
            Reading::Statement(sql) => drop(admin.query(sql).unwrap()),
            Reading::Prepared(sql) => {
                let id = admin.prepare(sql.as_bytes()).unwrap();
                admin.execute(id, &[]).unwrap();
            }
            Reading::Command => {
                let (byte, body) = REFRESH;
                admin.command(byte, body, ResponseKind::Single).unwrap();
            }
        }
    }
}

/// What is edited, and what that takes away once the tables are read again: from whom?
fn edits(kind: Kind) -> [(&'static str, Loss, bool); 2] {
    let loss = |what, give, query| Loss {
        what,
        give,
        take: &[],
        first: &[],
        query,
        has: any,
    };
    let globally = if kind.is_mysql() {
        "UPDATE mysql.user SET Select_priv = 'N' WHERE User = '{alice}'"
    } else {
        "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.access', 0) WHERE User = '{alice}'"
    };
    [
        (
            "DELETE FROM mysql.tables_priv WHERE User = '{alice}'",
            loss(
                "a table's privilege is edited",
                &["GRANT SELECT ON {db}.t TO {alice}@'%'"],
                "SELECT a + 12 FROM {db}.t",
            ),
            true,
        ),
        (
            globally,
            loss(
                "a global privilege is edited",
                &["GRANT SELECT ON *.* TO {alice}@'%'"],
                "SELECT a + 13 FROM {db}.t",
            ),
            // Sessions keep what they had when they logged in.
            false,
        ),
    ]
}

/// The edit is in the log, what puts it in force perhaps isn't. Between the two all is as before,
/// and is kept again.
#[test]
fn privileges_that_are_read_again_through_remora_drop_what_was_kept_before() {
    let accounts = Accounts::new("read_again");
    let front = &accounts.front;
    for reading in READINGS {
        for (edit, loss, old_lose) in edits(accounts.kind()) {
            accounts.begin();
            let mut admin = front.guest();
            accounts.run(admin.client(), loss.give);
            front.catch_up();
            let mut direct = accounts.session(false, &loss).unwrap();
            let allowed = accounts.read(&mut direct, &loss);
            let mut before = accounts.session(true, &loss).unwrap();
            accounts.run(admin.client(), &[edit]);
            front.catch_up();
            let mut after = accounts.session(true, &loss).unwrap();
            for session in [&mut before, &mut after] {
                accounts.warm(session, &loss, &allowed);
            }

            reading.run(admin.client());
            let what = format!("{}, {reading:?}", loss.what);
            let mut new = accounts.session(true, &loss).unwrap();
            let refused = accounts.new_session_reads(false, &loss);
            assert_eq!(refused[4], 0xff, "{what}: {refused:?}");
            let expected_old = accounts.read(&mut direct, &loss);
            assert_eq!(expected_old == refused, old_lose, "{what}");
            for _ in 0..3 {
                // Those that may have it in memory again come first.
                for session in [&mut before, &mut after] {
                    assert_same(&what, &accounts.read(session, &loss), &expected_old);
                }
                assert_same(&what, &accounts.read(&mut new, &loss), &refused);
                for session in [&mut before, &mut after, &mut new] {
                    session.query(CERTAIN).unwrap();
                }
                front.catch_up();
            }
        }
    }
}

/// Settings by which MySQL judges what accounts may do, and back.
const JUDGEMENTS: [[&str; 2]; 4] = [
    [
        "SET GLOBAL mandatory_roles = '{readers}'",
        "SET GLOBAL mandatory_roles = ''",
    ],
    [
        "SET @@global.activate_all_roles_on_login = ON",
        "SET GLOBAL activate_all_roles_on_login = OFF",
    ],
    [
        "SET PERSIST mandatory_roles = '{readers}'",
        "SET PERSIST mandatory_roles = ''",
    ],
    [
        "SET GLOBAL partial_revokes = ON",
        "SET GLOBAL partial_revokes = OFF",
    ],
];

/// For how long it may be unknown to Remora that one was changed elsewhere:
/// `follow.check_age_ms_max`, and some more for the reading itself.
const CHECK_AGE: Duration = Duration::from_millis(2_500);

#[test]
fn a_setting_of_privileges_changed_through_remora_drops_what_was_kept_before() {
    let accounts = Accounts::new("judged");
    let kind = accounts.kind();
    if kind.skips(!is_mysql_with_roles(kind), "it has no such settings") {
        return;
    }
    let front = &accounts.front;
    accounts.begin();
    let mut admin = front.guest();
    let give = [
        "CREATE ROLE {readers}",
        "GRANT SELECT ON {db}.t TO {alice}@'%'",
    ];
    accounts.run(admin.client(), &give);
    let query = accounts.fill_in("SELECT a + 16 FROM {db}.t");
    let expected = front.direct().query_bytes(&query).unwrap().to_vec();
    let mut alice = front.guest_as(&accounts.alice(false));
    for pair in JUDGEMENTS {
        for statement in pair {
            alice.becomes_hit(&query, &expected);
            accounts.run(admin.client(), &[statement]);
            let seen = alice.run(&query);
            assert_same(statement, &seen.bytes, &expected);
            assert_ne!(seen.outcome, "hit", "{statement}");
        }
    }
    accounts.run(admin.client(), &["RESET PERSIST mandatory_roles"]);
}

#[test]
fn what_a_setting_of_privileges_takes_away_is_lost_within_the_bound_of_the_checks() {
    let accounts = Accounts::new("judged_late");
    let kind = accounts.kind();
    if kind.skips(!is_mysql_with_roles(kind), "it has no such settings") {
        return;
    }
    let loss = Loss {
        what: "a role is no longer everybody's",
        give: &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON {db}.t TO {readers}",
            "SET GLOBAL mandatory_roles = '{readers}'",
        ],
        take: &["SET GLOBAL mandatory_roles = ''"],
        first: &["SET ROLE {readers}"],
        query: "SELECT a + 17 FROM {db}.t",
        has: is_mysql_with_roles,
    };
    accounts.begin();
    let mut admin = accounts.front.direct();
    accounts.run(&mut admin, loss.give);
    // What is changed and changed back between two checks goes unseen. The next but one has begun
    // when the next has seen what is given.
    let checks = || {
        let metrics = accounts.front.remora().metrics();
        metrics.unwrap().sum("remora_server_checks_total")
    };
    let checked = checks();
    wait_for("the setting to be seen", PATIENCE, || {
        Ok((checks() > checked + 1.5).then_some(()))
    })
    .unwrap();
    accounts.front.catch_up();
    let mut direct = accounts.session(false, &loss).unwrap();
    let mut through = accounts.session(true, &loss).unwrap();
    let allowed = accounts.read(&mut direct, &loss);
    assert_ne!(allowed[4], 0xff, "{allowed:?}");
    accounts.warm(&mut through, &loss, &allowed);
    accounts.run(&mut admin, loss.take);
    let taken_at = Instant::now();
    let refused = accounts.read(&mut direct, &loss);
    assert_eq!(refused[4], 0xff, "nothing was lost: {refused:?}");
    loop {
        let may_lag = taken_at.elapsed() < CHECK_AGE;
        let seen = [
            accounts.new_session_reads(true, &loss),
            accounts.read(&mut through, &loss),
        ];
        if seen.iter().all(|seen| *seen == refused) {
            break;
        }
        assert!(may_lag, "{seen:?}");
    }
}

/// Without the privilege nothing happens, and nothing is dropped.
#[test]
fn privileges_are_not_read_again_for_those_who_may_not() {
    let accounts = Accounts::new("no_reload");
    let front = &accounts.front;
    accounts.begin();
    let mut admin = front.direct();
    accounts.run(&mut admin, &["GRANT SELECT ON {db}.t TO {alice}@'%'"]);
    front.catch_up();
    let mut alice = front.guest_as(&accounts.alice(false));
    let query = accounts.fill_in("SELECT * FROM {db}.t");
    let expected = front.direct().query_bytes(&query).unwrap().to_vec();
    alice.becomes_hit(&query, &expected);
    // After an error a session knows nothing of its transaction: so in another one.
    let mut other = front.guest_as(&accounts.alice(false));
    let refused = other.run("FLUSH LOCAL PRIVILEGES");
    assert_eq!(refused.bytes[4], 0xff, "{refused:?}");
    front.catch_up();
    alice.still_hits(&query, &expected);
}

/// The server looks at a role's global privileges when the role is taken up.
#[test]
fn a_role_taken_up_before_it_lost_a_privilege_shares_nothing_with_one_taken_up_afterwards() {
    let accounts = Accounts::new("role_before");
    let kind = accounts.kind();
    if kind.skips(!has_roles(kind), "it has no roles") {
        return;
    }
    let front = &accounts.front;
    accounts.begin();
    let mut admin = front.guest();
    accounts.run(
        admin.client(),
        &[
            "CREATE ROLE {readers}",
            "GRANT SELECT ON *.* TO {readers}",
            "GRANT {readers} TO {alice}@'%'",
        ],
    );
    front.catch_up();
    let set = accounts.fill_in("SET ROLE {readers}");
    let query = accounts.fill_in("SELECT a + 14 FROM {db}.t");
    let mut sessions: Vec<Client> = [false, true, false, true]
        .into_iter()
        .map(|through| accounts.alice(through).connect().unwrap())
        .collect();
    for early in &mut sessions[..2] {
        early.query(&set).unwrap();
    }
    accounts.run(admin.client(), &["REVOKE SELECT ON *.* FROM {readers}"]);
    for late in &mut sessions[2..] {
        late.query(&set).unwrap();
    }
    for _ in 0..5 {
        front.catch_up();
        let answers: Vec<Vec<u8>> = sessions
            .iter_mut()
            .map(|session| {
                session.query(CERTAIN).unwrap();
                session.query_bytes(&query).unwrap().to_vec()
            })
            .collect();
        assert_same("the role's earlier user", &answers[1], &answers[0]);
        assert_same("the role's later user", &answers[3], &answers[2]);
    }
}

/// MariaDB goes on with the other accounts, and logs nothing if one of them isn't there.
#[test]
fn a_privilege_that_a_statement_took_although_it_failed_is_lost() {
    let accounts = Accounts::new("half");
    let front = &accounts.front;
    for form in [
        "REVOKE SELECT ON {db}.t FROM {alice}@'%', nobody@'%'",
        "REVOKE SELECT ON {db}.* FROM {alice}@'%', nobody@'%'",
        "DO 1; REVOKE SELECT ON {db}.* FROM {alice}@'%', nobody@'%'",
    ] {
        accounts.begin();
        let mut admin = front.guest();
        accounts.run(
            admin.client(),
            &[
                "GRANT SELECT ON {db}.* TO {alice}@'%'",
                "GRANT SELECT ON {db}.t TO {alice}@'%'",
            ],
        );
        let other = if form.contains(".t ") {
            "REVOKE SELECT ON {db}.* FROM {alice}@'%'"
        } else {
            "REVOKE SELECT ON {db}.t FROM {alice}@'%'"
        };
        accounts.run(admin.client(), &[other]);
        front.catch_up();
        let query = accounts.fill_in("SELECT a + 17 FROM {db}.t");
        let mut direct = accounts.alice(false).connect().unwrap();
        let mut guest = front.guest_as(&accounts.alice(false));
        let allowed = direct.query_bytes(&query).unwrap().to_vec();
        guest.becomes_hit(&query, &allowed);
        let failed = admin.client().query(&accounts.fill_in(form));
        assert!(failed.is_err(), "{form}");
        for _ in 0..3 {
            front.catch_up();
            let expected = direct.query_bytes(&query).unwrap().to_vec();
            assert_same(form, &guest.run(&query).bytes, &expected);
            guest.setup(&[CERTAIN]);
        }
    }
}

/// Sends a statement, or only has it prepared. That it fails is fine.
fn run(client: &mut Client, sql: &str, is_prepared: bool) {
    if is_prepared {
        let _ = client.prepare(sql.as_bytes());
    } else {
        let _ = client.query(sql);
    }
}

/// The server looks at an account's privileges on the default schema when that is chosen. Code of
/// another schema makes it choose that one and then the default again.
#[test]
fn code_of_another_schema_ends_what_the_default_schema_still_allowed() {
    let accounts = Accounts::new("by_code");
    let front = &accounts.front;
    let mut admin = front.direct();
    let other = |sql: &str| sql.replace("{other}", "of_other_code");
    for sql in [
        "CREATE DATABASE IF NOT EXISTS {other}",
        "DROP FUNCTION IF EXISTS {other}.f",
        "DROP PROCEDURE IF EXISTS {other}.p",
        "CREATE FUNCTION {other}.f() RETURNS INT NO SQL RETURN 1",
        "CREATE PROCEDURE {other}.p() BEGIN END",
    ] {
        admin.query(&other(sql)).unwrap();
    }
    let codes = [
        "SELECT {other}.f()",
        "DO {other}.f()",
        "SET @a = {other}.f()",
        "CALL {other}.p()",
        "EXPLAIN SELECT {other}.f()",
        "PREPARE s FROM 'SELECT {other}.f()'",
        "PREPARE s FROM 'CALL {other}.p()'",
        "SHOW CREATE FUNCTION {other}.f",
        "SHOW CREATE PROCEDURE {other}.p",
        "SHOW CREATE PROCEDURE {other}.p; DO 1",
    ];
    let prepared = ["SELECT {other}.f()", "CALL {other}.p()"];
    let as_text = codes.map(|code| (code, false)).into_iter();
    let mut refused = 0;
    for (code, is_prepared) in as_text.chain(prepared.map(|code| (code, true))) {
        accounts.begin();
        let grant = other("GRANT EXECUTE ON {other}.* TO {alice}@'%'");
        let on_default = "GRANT SELECT ON {db}.* TO {alice}@'%'";
        accounts.run(&mut admin, &[on_default, &grant]);
        front.catch_up();
        let mut direct = accounts.alice(false).connect().unwrap();
        let mut guest = front.guest_as(&accounts.alice(false));
        // Which runs no such code, and keeps what it reads.
        let mut beside = front.guest_as(&accounts.alice(false));
        let choose = accounts.fill_in("USE {db}");
        direct.query(&choose).unwrap();
        guest.setup(&[&choose]);
        beside.setup(&[&choose]);
        let query = "SELECT a + 16 FROM t";
        let allowed = direct.query_bytes(query).unwrap().to_vec();
        guest.becomes_hit(query, &allowed);
        accounts.run(&mut admin, &["REVOKE SELECT ON {db}.* FROM {alice}@'%'"]);
        front.catch_up();
        guest.becomes_hit(query, &allowed);
        let text = accounts.fill_in(&other(code));
        run(&mut direct, &text, is_prepared);
        run(guest.client(), &text, is_prepared);
        // Which of these texts make the server look is its own affair.
        let expected = direct.query_bytes(query).unwrap().to_vec();
        refused += usize::from(expected[4] == 0xff);
        for _ in 0..3 {
            beside.becomes_hit(query, &allowed);
            assert_same(code, &guest.run(query).bytes, &expected);
            guest.setup(&[CERTAIN]);
        }
    }
    assert!(refused >= 8, "{refused}");
}

/// Whoever logs in between the server's answer and the log's word of it belongs behind the change.
#[test]
fn a_login_right_after_a_privilege_was_lost_shares_nothing_with_earlier_ones() {
    let options = RemoraOptions::following();
    let (front, gate) = Front::behind_gate(lease(), "lost_login", options, &T);
    let accounts = Accounts { front };
    let front = &accounts.front;
    accounts.begin();
    let mut admin = front.guest();
    accounts.run(admin.client(), &["GRANT SELECT ON *.* TO {alice}@'%'"]);
    front.catch_up();
    let query = accounts.fill_in("SELECT a + 15 FROM {db}.t");
    let mut early = front.guest_as(&accounts.alice(false));
    let allowed = early.run(&query).bytes;
    gate.hold(true);
    accounts.run(admin.client(), &["REVOKE SELECT ON *.* FROM {alice}@'%'"]);
    let mut late = front.guest_as(&accounts.alice(false));
    gate.hold(false);
    front.catch_up();
    // The server looks at what an account may do everywhere when it logs in.
    early.becomes_hit(&query, &allowed);
    for _ in 0..3 {
        let refused = late.run(&query).bytes;
        assert_eq!(refused[4], 0xff, "{refused:?}");
        late.setup(&[CERTAIN]);
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
