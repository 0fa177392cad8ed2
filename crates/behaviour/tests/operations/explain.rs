//! What `remora explain` says of statements, of what is held and of wrong questions.
//! docs/what-is-cached.md shows it.

use remora::admin::client::{AskError, Request, ask};
use remora_testkit::client::ConnectOptions;
use remora_testkit::metrics::get;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::RemoraOptions;
use serde_json::Value;

use remora_behaviour::front::{Front, PATIENCE, lease};

const TABLES: [&str; 7] = [
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8 COLLATE utf8_general_ci)",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT, status VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_general_ci, \
     total DECIMAL(8,2), placed DATE, note VARCHAR(20))",
    "CREATE TABLE items (id INT PRIMARY KEY, order_id INT, \
     FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE)",
    "CREATE TABLE hours (id INT PRIMARY KEY, at TIME)",
    "INSERT INTO customers VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO orders VALUES (5, 1, 'paid', 9.50, '2024-02-01', ''), (6, 2, 'new', 3, '2024-03-01', '')",
    "INSERT INTO items VALUES (1, 5)",
];

fn request(schema: &str, statement: &str) -> Request {
    Request {
        statement: statement.to_owned(),
        schema: Some(schema.to_owned()),
        ..Request::default()
    }
}

/// The explanation once the tables are known.
fn explain(front: &Front, statement: &str) -> Value {
    let request = Request {
        json: true,
        ..request(front.schema(), statement)
    };
    let known = wait_for("the definitions", PATIENCE, || {
        let page = ask(front.remora().admin(), &request).unwrap();
        let answer: Value = serde_json::from_str(&page).unwrap();
        let is_waiting = matches!(
            answer["because"]["reason"].as_str(),
            Some("table_loading" | "follower_not_live" | "table_unknown")
        );
        // Other tests' commits on the same server can make a kind of read too young for a moment.
        let is_waiting = is_waiting || page.contains("\"too_young\"");
        Ok((!is_waiting).then_some(answer))
    });
    known.unwrap()
}

fn words(answer: &Value, list: &str, field: Option<&str>) -> Vec<String> {
    let one = |item: &Value| {
        field
            .map_or(item, |field| &item[field])
            .as_str()
            .unwrap()
            .to_owned()
    };
    answer[list].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn what_a_result_depends_on_is_said_in_words() {
    let front = Front::new("explain_words", &TABLES);
    for (statement, expected) in [
        (
            "SELECT total, status FROM orders WHERE id = 5",
            &["orders: id = 5 (reads status, total)"][..],
        ),
        (
            "SELECT * FROM orders WHERE id IN (5, 6) AND status = 'paid'",
            &["orders: id in (5, 6) and status = 'paid' (reads all columns)"],
        ),
        (
            "SELECT total FROM orders WHERE id BETWEEN 10 AND 99",
            &["orders: id from 10 to 99, in 7 intervals of 16 (reads total)"],
        ),
        (
            "SELECT total FROM orders WHERE placed >= '2024-02-01' AND placed < '2024-02-09'",
            &[
                "orders: placed from '2024-02-01' to '2024-02-09', in one interval of 16 (reads total)",
            ],
        ),
        (
            "SELECT COUNT(*) FROM orders",
            &["orders: all rows (reads no column)"],
        ),
        (
            "SELECT COUNT(*) FROM orders WHERE id = 5",
            &["orders: id = 5 (reads no other column)"],
        ),
        (
            "SELECT SUM(total) FROM orders",
            &["orders: all rows (reads total)"],
        ),
        (
            "SELECT id FROM orders WHERE customer_id IS NULL",
            &["orders: customer_id is NULL (reads id)"],
        ),
        (
            "SELECT total FROM orders WHERE id = ?",
            &["orders: id = ? (reads total)"],
        ),
        (
            "SELECT total FROM orders WHERE id BETWEEN ? AND ?",
            &[
                "orders: all rows (reads id, total); the values of a range that are bound narrow each execution",
            ],
        ),
        (
            "SELECT * FROM orders",
            &[
                "orders: any change of the table, because all of its columns are read, and no condition narrows it with certainty",
            ],
        ),
        (
            "SELECT name, total FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = 1 AND o.id = 5",
            &[
                "customers: id = 1 (reads name)",
                "orders: id = 5 and customer_id = 1 (reads total)",
            ],
        ),
        (
            "SELECT order_id FROM items WHERE id = 1",
            &[
                "items: id = 1 (reads order_id)",
                "orders: all rows (reads id), because changes of it can cascade to items",
            ],
        ),
    ] {
        let answer = explain(&front, statement);
        assert_eq!(answer["cacheable"], true, "{statement}: {answer}");
        assert_eq!(
            words(&answer, "depends_on", Some("words")),
            expected,
            "{statement}"
        );
    }
}

#[test]
fn what_drops_a_result_is_said_in_words() {
    let front = Front::new("explain_drops", &TABLES);
    for (statement, expected) in [
        (
            "SELECT total FROM orders WHERE id = 5",
            "rows of orders with id = 5: inserted, deleted, or updated in id or total",
        ),
        (
            "SELECT total FROM orders WHERE id BETWEEN 10 AND 99",
            "rows of orders with id from 0 to 111: inserted, deleted, or updated in id or total",
        ),
        (
            "SELECT COUNT(*) FROM orders",
            "rows of orders: inserted or deleted",
        ),
        (
            "SELECT * FROM orders WHERE id = 5",
            "rows of orders with id = 5: inserted, deleted or updated",
        ),
        ("SELECT * FROM orders", "any change of orders"),
    ] {
        let answer = explain(&front, statement);
        assert_eq!(
            words(&answer, "dropped_by", None)[0],
            expected,
            "{statement}: {answer}"
        );
    }
}

#[test]
fn a_statement_that_is_not_cached_is_given_its_reason() {
    let front = Front::new("explain_reasons", &TABLES);
    for (statement, reason, table) in [
        ("SELECT NOW() FROM orders", "statement_clock_function", None),
        ("DELETE FROM orders", "statement_not_select", None),
        (
            "SELECT MAX(at) FROM hours",
            "table_time_columns",
            Some("explain_reasons.hours"),
        ),
        (
            "SELECT 1 FROM nothing",
            "table_missing",
            Some("explain_reasons.nothing"),
        ),
    ] {
        let answer = explain(&front, statement);
        assert_eq!(answer["cacheable"], false, "{statement}");
        assert_eq!(answer["because"]["reason"], reason, "{statement}: {answer}");
        assert_eq!(
            answer["because"]["table"].as_str(),
            table,
            "{statement}: {answer}"
        );
        assert!(words(&answer, "dropped_by", None).is_empty());
        let page = ask(front.remora().admin(), &request(front.schema(), statement)).unwrap();
        assert!(
            page.starts_with(&format!("not cacheable ({reason})")),
            "{page}"
        );
    }
}

#[test]
fn what_is_held_is_counted_until_it_is_dropped() {
    let front = Front::new("explain_held", &TABLES);
    let statement = "SELECT total FROM orders WHERE id = 5";
    let held = || explain(&front, statement)["held"].clone();
    assert_eq!(held()["results"], 0);

    let mut guest = front.guest();
    let expected = front.direct().query_bytes(statement).unwrap().to_vec();
    guest.becomes_hit(statement, &expected);
    let one = held();
    assert_eq!(
        (&one["results"], &one["servable"]),
        (&1.into(), &1.into()),
        "{one}"
    );
    assert_eq!(one["shown"][0]["was_asked_for"], true, "{one}");
    assert!(one["bytes"].as_u64().unwrap() > 0);
    let page = ask(front.remora().admin(), &request(front.schema(), statement)).unwrap();
    assert!(
        page.contains("held: 1 result") && page.contains("can be served now"),
        "{page}"
    );

    // Another account has a result of its own.
    let address = front.server().address();
    let options = ConnectOptions::new(
        address,
        remora_behaviour::front::OTHER_USER,
        remora_behaviour::front::OTHER_PASSWORD,
    );
    let mut other = front.guest_as(&options.schema(front.schema()));
    other.becomes_hit(statement, &expected);
    assert_eq!(held()["results"], 2);
    // Another text is another result, a comment is none.
    let held_of = |text: &str| explain(&front, text)["held"]["results"].clone();
    assert_eq!(held_of(&statement.replace("id = 5", "id=5")), 0);
    assert_eq!(held_of(&format!("{statement} /* request 7 */")), 2);

    front
        .direct()
        .query("UPDATE orders SET total = 1 WHERE id = 6")
        .unwrap();
    front
        .direct()
        .query("UPDATE orders SET total = 1 WHERE id = 5")
        .unwrap();
    // It is outdated first, and then swept.
    let gone = wait_for("the change", PATIENCE, || {
        let held = held();
        let is_outdated = held["shown"]
            .as_array()
            .unwrap()
            .iter()
            .any(|result| result["unservable"]["reason"] == "changed");
        Ok((held["servable"] == 0).then_some((is_outdated, held)))
    });
    let (is_outdated, held) = gone.unwrap();
    assert!(is_outdated || held["results"] == 0, "{held}");
}

#[test]
fn an_execution_is_found_by_its_statements_text() {
    let front = Front::new("explain_execution", &TABLES);
    let statement = "SELECT total FROM orders WHERE id = ?";
    let mut client = front.guest();
    let client = client.client();
    let prepared = client.prepare(statement.as_bytes()).unwrap();
    let results = wait_for("an execution to be held", PATIENCE, || {
        client
            .execute(prepared, &[remora_testkit::client::Value::Int(5)])
            .unwrap();
        let held = &explain(&front, statement)["held"];
        Ok((held["results"] == 1).then(|| held.clone()))
    });
    assert_eq!(results.unwrap()["shown"][0]["is_prepared"], true);
}

#[test]
fn kinds_of_reads_beyond_the_limit_are_told() {
    let options = RemoraOptions::following().with("cache.table_shapes_max", "2");
    // Definitions that others change on a shared server would free the room again.
    let front = Front::on(lease(), "explain_shapes", options, &TABLES);
    let mut guest = front.guest();
    for statement in [
        "SELECT total FROM orders WHERE id = 5",
        "SELECT total FROM orders WHERE customer_id = 1",
    ] {
        let expected = front.direct().query_bytes(statement).unwrap().to_vec();
        guest.becomes_hit(statement, &expected);
    }
    let second = explain(&front, "SELECT total FROM orders WHERE customer_id = 1");
    assert_eq!(
        words(&second, "depends_on", Some("words")),
        [
            "orders: customer_id = 1 (reads all columns), all of them for want of room for more kinds of reads"
        ]
    );
    let third = explain(&front, "SELECT total FROM orders WHERE status = 'paid'");
    assert_eq!(
        third["depends_on"][0]["coarse"]["reason"], "too_many_shapes",
        "{third}"
    );
}

#[test]
fn a_wrong_question_is_told_what_is_accepted() {
    let front = Front::new("explain_wrong", &TABLES);
    let admin = front.remora().admin();
    for (path, expected) in [
        ("/explain", "sql: got nothing, accepts a statement"),
        ("/explain?sql=SELECT+1+FROM+orders", "schema: got nothing"),
        ("/explain?sql=SELECT+1&schema=%ff", "schema: got bytes"),
        (
            "/explain?sql=SELECT+1&ansi_quotes=yes",
            "ansi_quotes: got \"yes\"",
        ),
        ("/explain?query=SELECT+1", "query: does not exist"),
    ] {
        let page = get(admin, path).unwrap();
        assert_eq!(page.status, 400, "{path}: {}", page.body);
        assert!(page.body.starts_with(expected), "{path}: {}", page.body);
    }
    let long = format!(
        "SELECT 1 FROM orders WHERE note = '{}'",
        "x".repeat(300 << 10)
    );
    let Err(AskError::Refused(why)) = ask(admin, &request("explain_wrong", &long)) else {
        panic!("it is too long");
    };
    assert!(why.contains("cache.statement_bytes_max"), "{why}");
    let nobody = remora_testkit::ports::free().unwrap();
    let Err(error @ AskError::Unreachable { .. }) = ask(nobody, &request("s", "SELECT 1")) else {
        panic!("nothing listens there");
    };
    assert!(error.to_string().contains("--admin"), "{error}");
}

#[test]
fn quotes_are_read_as_the_question_says() {
    let front = Front::new("explain_quotes", &TABLES);
    let statement = "SELECT total FROM orders WHERE status = \"paid\"";
    let answer = explain(&front, statement);
    assert_eq!(
        words(&answer, "depends_on", Some("words")),
        ["orders: status = 'paid' (reads total)"]
    );
    let request = Request {
        ansi_quotes: true,
        ..request(front.schema(), statement)
    };
    let page = ask(front.remora().admin(), &request).unwrap();
    assert!(page.contains("orders: all rows (reads "), "{page}");
}
