//! What a test program says of itself, in the documentation at its top:
//!
//! ```text
//! //! Servers: every | none | mariadb-10.11, mysql-8.0
//! //! Load: waits           its tests mostly wait: more of them run at once
//! //! Tier: test            `make check` leaves it out
//! //! Tier: test on mariadb-10.11, mysql-8.0
//! //!                       and `make test` runs it on these; on its other servers, `.ci/run` does
//! ```

use anyhow::{Context as _, bail};

/// The servers that there are; the first is the one that everything runs on.
pub(crate) const KINDS: [&str; 5] = [
    "mariadb-10.11",
    "mariadb-11.4",
    "mysql-8.0",
    "mysql-5.7",
    "mysql-5.6",
];

/// On which servers a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Servers {
    /// It starts none.
    None,
    /// Once on each of these.
    These(Vec<&'static str>),
}

/// What a program does with the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// It keeps them busy: as many tests at once as there are processors.
    Computes,
    /// It mostly waits: more at once.
    Waits,
}

/// Who runs a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Everybody.
    Check,
    /// `make test`, not `make check`.
    Test,
    /// `make test` runs it on these of its servers. `.ci/run` and whoever asks for the program or
    /// for a server run it on all.
    TestOn(Vec<&'static str>),
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) servers: Servers,
    pub(crate) load: Load,
    pub(crate) tier: Tier,
}

impl Statement {
    /// What holds for the unit tests inside a library or a program.
    pub(crate) const UNIT_TESTS: Statement = Statement {
        servers: Servers::None,
        load: Load::Waits,
        tier: Tier::Check,
    };

    /// Reads it from a program's source.
    ///
    /// # Errors
    /// It doesn't say on which servers it runs, or says something else than what it could.
    pub(crate) fn read(source: &str) -> anyhow::Result<Statement> {
        let head: Vec<&str> = source
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line[3..].trim())
            .collect();
        let said = |name: &str| head.iter().find_map(|line| line.strip_prefix(name));
        let servers = said("Servers: ").context(
            "its first lines don't say on which servers it runs; \
             write `//! Servers: every`, `//! Servers: none` or their names",
        )?;
        Ok(Statement {
            servers: servers_of(servers)?,
            load: match said("Load: ") {
                None => Load::Computes,
                Some("waits") => Load::Waits,
                Some(other) => bail!("`Load: {other}` is not known; there is `Load: waits`"),
            },
            tier: match said("Tier: ") {
                None => Tier::Check,
                Some("test") => Tier::Test,
                Some(tier) => Tier::TestOn(kinds_of(tier.strip_prefix("test on ").with_context(
                    || format!("`Tier: {tier}` is not known; there are `test` and `test on …`"),
                )?)?),
            },
        })
    }
}

fn servers_of(text: &str) -> anyhow::Result<Servers> {
    match text {
        "none" => return Ok(Servers::None),
        "every" => return Ok(Servers::These(KINDS.to_vec())),
        _ => {}
    }
    Ok(Servers::These(kinds_of(text)?))
}

fn kinds_of(text: &str) -> anyhow::Result<Vec<&'static str>> {
    let kinds = text.split(", ").map(|name| {
        let known = KINDS.into_iter().find(|kind| *kind == name);
        known.with_context(|| format!("'{name}' is no server; there are {}", KINDS.join(", ")))
    });
    kinds.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The kit has them as an enum, the script as what can be fetched.
    #[test]
    fn the_servers_are_those_of_the_test_kit_and_of_the_script() {
        let kit = include_str!("../../../testkit/src/servers/kind.rs");
        let (_, names) = kit.split_once("fn as_str").unwrap();
        let named: Vec<&str> = names
            .lines()
            .take_while(|line| *line != "    }")
            .filter_map(|line| line.trim().strip_prefix("Kind::")?.split_once(" => \""))
            .filter_map(|(_, rest)| rest.strip_suffix("\","))
            .collect();
        assert_eq!(named, KINDS);
        let script = include_str!("../../../../scripts/servers");
        let list = format!("\nkinds=({})\n", KINDS[1..].join(" "));
        assert!(script.contains(&list), "scripts/servers lacks `{list}`");
    }

    #[test]
    fn a_program_says_where_it_runs_and_how_busy_it_is() {
        let stated = Statement::read("//! It does.\n//!\n//! Servers: every\n//! Load: waits\n");
        let stated = stated.unwrap();
        assert_eq!(stated.servers, Servers::These(KINDS.to_vec()));
        assert_eq!((stated.load, stated.tier), (Load::Waits, Tier::Check));
        let stated = Statement::read("//! Servers: mysql-8.0, mariadb-11.4\n//! Tier: test\n");
        let stated = stated.unwrap();
        let two = vec!["mysql-8.0", "mariadb-11.4"];
        assert_eq!(stated.servers, Servers::These(two));
        assert_eq!((stated.load, stated.tier), (Load::Computes, Tier::Test));
        let stated = Statement::read("//! Servers: every\n//! Tier: test on mysql-8.0\n");
        assert_eq!(stated.unwrap().tier, Tier::TestOn(vec!["mysql-8.0"]));
    }

    #[test]
    fn a_program_that_says_nothing_or_something_unknown_is_refused() {
        for source in [
            "//! It does.\nmod a;\n//! Servers: every\n",
            "//! Servers: oracle\n",
            "//! Servers: every\n//! Load: sleeps\n",
            "//! Servers: every\n//! Tier: gold\n",
            "//! Servers: every\n//! Tier: test on oracle\n",
        ] {
            assert!(Statement::read(source).is_err(), "{source}");
        }
    }
}
