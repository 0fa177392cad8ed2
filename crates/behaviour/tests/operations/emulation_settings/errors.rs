//! What can't be set, and who may not set.

use remora_testkit::client::ConnectOptions;
use remora_testkit::servers::Kind;

use super::{TABLE, Told, error_of, told, variable, variables, with_cache_of_its_own};
use remora_behaviour::front::Front;

/// A statement, and the error that a server with a query cache has for it.
const BAD: &[(&str, u16, &str, &str)] = &[
    (
        "SET query_cache_type = 5",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of '5'",
    ),
    (
        "SET GLOBAL query_cache_type = -1",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of '-1'",
    ),
    (
        "SET @@global.query_cache_type = 'maybe'",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of 'maybe'",
    ),
    (
        "SET SESSION query_cache_type = Maybe",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of 'Maybe'",
    ),
    (
        "SET GLOBAL query_cache_type = '1'",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of '1'",
    ),
    (
        "SET GLOBAL query_cache_type = ''",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of ''",
    ),
    (
        "SET GLOBAL query_cache_type = NULL",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of 'NULL'",
    ),
    (
        "SET GLOBAL query_cache_type = 1.5",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_type'",
    ),
    (
        "SET query_cache_type = 99999999999999999999",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_type'",
    ),
    (
        "SET GLOBAL query_cache_limit = 'abc'",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_limit'",
    ),
    (
        "SET GLOBAL query_cache_limit = ON",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_limit'",
    ),
    (
        "SET GLOBAL query_cache_limit = 1.5",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_limit'",
    ),
    (
        "SET GLOBAL query_cache_limit = NULL",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_limit'",
    ),
    (
        "SET GLOBAL query_cache_size = 'x'",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_size'",
    ),
    (
        "SET GLOBAL query_cache_min_res_unit = 'x'",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_min_res_unit'",
    ),
    (
        "SET query_cache_limit = 4096",
        1229,
        "HY000",
        "Variable 'query_cache_limit' is a GLOBAL variable and should be set with SET GLOBAL",
    ),
    (
        "SET SESSION query_cache_size = 0",
        1229,
        "HY000",
        "Variable 'query_cache_size' is a GLOBAL variable and should be set with SET GLOBAL",
    ),
    (
        "SET @@query_cache_size = 0",
        1229,
        "HY000",
        "Variable 'query_cache_size' is a GLOBAL variable and should be set with SET GLOBAL",
    ),
    (
        "SET LOCAL query_cache_min_res_unit = 4096",
        1229,
        "HY000",
        "Variable 'query_cache_min_res_unit' is a GLOBAL variable and should be set with SET GLOBAL",
    ),
    (
        "SET GLOBAL have_query_cache = YES",
        1238,
        "HY000",
        "Variable 'have_query_cache' is a read only variable",
    ),
    (
        "SET have_query_cache = 1",
        1238,
        "HY000",
        "Variable 'have_query_cache' is a read only variable",
    ),
    (
        "SET query_cache_wlock_invalidate = 2",
        1231,
        "42000",
        "Variable 'query_cache_wlock_invalidate' can't be set to the value of '2'",
    ),
    (
        "SET GLOBAL query_cache_wlock_invalidate = DEMAND",
        1231,
        "42000",
        "Variable 'query_cache_wlock_invalidate' can't be set to the value of 'DEMAND'",
    ),
    (
        "SET query_cache_wlock_invalidate = 1.5",
        1232,
        "42000",
        "Incorrect argument type to variable 'query_cache_wlock_invalidate'",
    ),
    (
        "SET GLOBAL query_cache_strip_comments = 2",
        1231,
        "42000",
        "Variable 'query_cache_strip_comments' can't be set to the value of '2'",
    ),
    // All or none.
    (
        "SET query_cache_type = DEMAND, query_cache_type = 7",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of '7'",
    ),
    (
        "SET GLOBAL query_cache_limit = 777, query_cache_type = 7",
        1231,
        "42000",
        "Variable 'query_cache_type' can't be set to the value of '7'",
    ),
];

#[test]
fn a_bad_value_gets_the_error_of_a_server_that_has_the_variable() {
    let front = Front::new("face_bad_values", &TABLE);
    let mut guest = front.guest();
    let kind = front.server().kind();
    let server = with_cache_of_its_own(kind);
    let mut root = server.as_ref().map(|server| server.root().unwrap());
    let before = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    for (sql, code, sql_state, message) in BAD {
        let expected: Told = (*code, (*sql_state).to_owned(), (*message).to_owned());
        if let Some(root) = &mut root
            && !(kind.is_mysql() && sql.contains("strip_comments"))
        {
            assert_eq!(told(root, sql), expected, "{sql}: the server");
        }
        assert_eq!(error_of(&mut guest, sql), expected, "{sql}");
        // It is also found afterwards.
        let warnings = guest
            .client()
            .query("SHOW WARNINGS")
            .unwrap()
            .rows()
            .unwrap();
        assert_eq!(warnings[0][2].as_deref(), Some(message.as_bytes()), "{sql}");
    }
    let after = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    assert_eq!(after, before);
}

#[test]
fn what_means_nothing_here_is_refused_with_a_remedy() {
    let front = Front::new("face_refused", &TABLE);
    let mut guest = front.guest();
    let before = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    for (sql, remedy) in [
        (
            "SET GLOBAL query_cache_limit = 99999999999",
            "cache.result_bytes_max",
        ),
        ("SET GLOBAL query_cache_wlock_invalidate = ON", "stays OFF"),
        ("SET query_cache_wlock_invalidate = 1", "stays OFF"),
        ("SET GLOBAL query_cache_min_res_unit = 512", "stays 4096"),
        ("SET GLOBAL query_cache_size = (SELECT 0)", "only a query"),
        ("SET autocommit = 1, GLOBAL query_cache_size = 0", "alone"),
    ] {
        let (_, _, message) = error_of(&mut guest, sql);
        assert!(message.contains(remedy), "{sql}: {message}");
    }
    let after = (variables(&mut guest, ""), variables(&mut guest, "GLOBAL"));
    assert_eq!(after, before);
    guest.setup(&[
        "SET GLOBAL query_cache_wlock_invalidate = OFF",
        "SET query_cache_wlock_invalidate = DEFAULT",
        "SET GLOBAL query_cache_min_res_unit = 4096",
    ]);
}

#[test]
fn global_values_need_the_servers_privilege() {
    let front = Front::new("face_privilege", &TABLE);
    let kind = front.server().kind();
    let account = |user: &str, privilege: &str| {
        let identified = kind.identified_by("secret");
        let create = format!("CREATE USER {user}@'%' {identified}");
        let read = format!("GRANT SELECT ON *.* TO {user}@'%'");
        let grant = format!("GRANT {privilege} ON *.* TO {user}@'%'");
        front.server().execute([create, read, grant]).unwrap();
        let options = ConnectOptions {
            user: user.to_owned(),
            password: "secret".to_owned(),
            ..front.options()
        };
        front.guest_as(&options)
    };
    let mut plain = account("plain", "RELOAD");
    let before = variables(&mut plain, "GLOBAL");
    for sql in [
        "SET GLOBAL query_cache_type = OFF",
        "SET GLOBAL query_cache_size = 0",
        "SET GLOBAL query_cache_limit = 4096",
        "SET GLOBAL query_cache_strip_comments = OFF",
        "SET query_cache_type = DEMAND, GLOBAL query_cache_type = OFF",
        // The privilege comes before the value, and where it can be set at all comes before both.
        "SET GLOBAL query_cache_type = 7",
    ] {
        let (code, sql_state, message) = error_of(&mut plain, sql);
        assert_eq!((code, &sql_state[..]), (1227, "42000"), "{sql}: {message}");
        assert!(message.contains("SUPER"), "{sql}: {message}");
    }
    assert_eq!(
        error_of(&mut plain, "SET GLOBAL have_query_cache = 1").0,
        1238
    );
    assert_eq!(variables(&mut plain, "GLOBAL"), before);
    assert_eq!(variable(&mut plain, "", "query_cache_type"), "ON");
    plain.setup(&["SET query_cache_type = DEMAND"]);
    assert_eq!(variable(&mut plain, "", "query_cache_type"), "DEMAND");

    let mut privileges = vec!["SUPER"];
    if kind == Kind::MySql80 {
        privileges.push("SYSTEM_VARIABLES_ADMIN");
    }
    for (number, privilege) in privileges.iter().enumerate() {
        let mut one = account(&format!("admin{number}"), privilege);
        one.setup(&["SET GLOBAL query_cache_limit = 4096"]);
        assert_eq!(variable(&mut plain, "", "query_cache_limit"), "4096");
        one.setup(&["SET GLOBAL query_cache_limit = DEFAULT"]);
        assert_eq!(variables(&mut plain, "GLOBAL"), before);
    }
}
