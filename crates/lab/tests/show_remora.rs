//! `SHOW REMORA` and `EXPLAIN REMORA`: Remora's own statements, on any connection that may ask.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod front;

use remora_lab::client::{Client, ConnectOptions};
use remora_wire::{Capabilities, StatusFlags};

use front::Front;

const TABLE: [&str; 2] = [
    "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE = InnoDB",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
];

/// Every way in which a client can ask for the end of a result set.
fn flavours(front: &Front) -> Vec<ConnectOptions> {
    let further = [
        Capabilities(0),
        Capabilities::OPTIONAL_RESULTSET_METADATA,
        Capabilities::SESSION_TRACK,
        Capabilities::QUERY_ATTRIBUTES,
        Capabilities::MARIADB_EXTENDED_METADATA,
    ];
    let both = [true, false].into_iter();
    both.flat_map(|deprecate_eof| {
        let options = front.options();
        further.map(move |further| ConnectOptions {
            deprecate_eof,
            further,
            ..options.clone()
        })
    })
    .collect()
}

/// An answer's column names and rows; NULL is empty.
fn table(client: &mut Client, sql: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let answer = client
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = answer.rows().unwrap().into_iter();
    let text = |field: Option<Vec<u8>>| String::from_utf8(field.unwrap_or_default()).unwrap();
    let rows = rows.map(|row| row.into_iter().map(text).collect());
    (answer.column_names().unwrap(), rows.collect())
}

/// An account of this test's own, which may read everything and nothing else.
fn plain(front: &Front, user: &str) -> ConnectOptions {
    let identified = front.server().kind().identified_by(user);
    let statements = [
        format!("CREATE USER {user}@'%' {identified}"),
        format!("GRANT SELECT ON {}.* TO {user}@'%'", front.schema()),
    ];
    front.server().execute(statements).unwrap();
    ConnectOptions {
        user: user.to_owned(),
        password: user.to_owned(),
        ..front.options()
    }
}

#[test]
fn reasons_are_listed_in_every_flavour() {
    let front = Front::new("show_reasons", &TABLE);
    for options in flavours(&front) {
        let mut guest = front.guest_as(&options);
        let (names, rows) = table(guest.client(), "SHOW REMORA REASONS");
        assert_eq!(names, ["reason", "count", "meaning"]);
        assert_eq!(rows.len(), remora::reason::Outcome::COUNT);
        let (_, hit) = table(
            guest.client(),
            "show /* a */ remora reasons like 'HI_' limit 3;",
        );
        assert_eq!(hit[0][0], "hit");
        assert_eq!(hit[0][2], "Answered from memory.");
        assert_eq!(
            guest.client().query_value("SELECT 7").unwrap().unwrap(),
            "7"
        );
    }
}

#[test]
fn an_unknown_word_is_answered_with_those_that_are_known() {
    let front = Front::new("show_unknown", &TABLE);
    let mut guest = front.guest();
    for sql in ["SHOW REMORA", "SHOW REMORA FOO", "SHOW REMORA foo bar"] {
        let error = guest.client().query(sql).map(drop).unwrap_err().to_string();
        assert!(
            error.contains("1064") && error.contains("REASONS"),
            "{sql}: {error}"
        );
    }
    assert_eq!(
        guest.client().query_value("SELECT 7").unwrap().unwrap(),
        "7"
    );
}

#[test]
fn who_may_not_see_others_is_refused_by_the_server() {
    let front = Front::new("show_refused", &TABLE);
    let plain = plain(&front, "plain_show");
    for options in flavours(&front) {
        let options = ConnectOptions {
            user: plain.user.clone(),
            password: plain.password.clone(),
            ..options
        };
        let mut guest = front.guest_as(&options);
        for sql in ["SHOW REMORA REASONS", "SHOW REMORA"] {
            let error = guest.client().query(sql).map(drop).unwrap_err().to_string();
            assert!(
                error.contains("1227") && error.contains("PROCESS"),
                "{sql}: {error}"
            );
        }
        assert_eq!(
            guest.client().query_value("SELECT 7").unwrap().unwrap(),
            "7"
        );
    }
}

#[test]
fn it_stays_in_the_transaction() {
    let front = Front::new("show_transaction", &TABLE);
    for options in flavours(&front) {
        let mut guest = front.guest_as(&options);
        guest.setup(&["BEGIN", "INSERT INTO t VALUES (9, 90)"]);
        for sql in ["SHOW REMORA REASONS"] {
            let status = guest.client().query(sql).unwrap().status();
            assert!(status.has(StatusFlags::IN_TRANSACTION), "{sql}");
        }
        guest.setup(&["ROLLBACK"]);
        let count = guest
            .client()
            .query_value("SELECT COUNT(*) FROM t")
            .unwrap();
        assert_eq!(count.unwrap(), "3");
    }
}
