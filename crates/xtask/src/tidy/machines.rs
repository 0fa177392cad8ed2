//! No file is about somebody's machine: none has an absolute path of a home or of a build machine,
//! and none names a host from which packages are downloaded. A build takes its packages from
//! wherever the person's own settings say.

use super::Violation;
use super::repository::Repository;

/// Files in which the format asks for the hosts.
const LOCK_FILES: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

// Put together here, so that this file isn't found itself.
const PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
/// A name follows.
const HOMES: [&str; 2] = [concat!("/ho", "me/"), concat!("/Us", "ers/")];
const HOSTS: [&str; 9] = [
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("repo1.maven", ".org"),
    concat!("repo.maven", ".apache.org"),
    concat!("proxy.", "golang.org"),
    concat!("deb.", "debian.org"),
];

/// Finds them.
pub(super) fn violations(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        let is_lock = LOCK_FILES.contains(&file.name());
        for (number, line) in file.lines() {
            if let Some(path) = path_in(line) {
                found.push(Violation::new(
                    &file.path,
                    number,
                    format!("'{path}' is a path of somebody's machine"),
                    "say it from the repository's root, or take it from a variable",
                ));
            }
            if let Some(host) = HOSTS.into_iter().find(|host| line.contains(host))
                && !is_lock
            {
                found.push(Violation::new(
                    &file.path,
                    number,
                    format!("'{host}' is a host of packages"),
                    "leave it to the person's own settings",
                ));
            }
        }
    }
    found
}

fn path_in(line: &str) -> Option<&'static str> {
    let is_there = |path: &str, ok: fn(char) -> bool| {
        line.match_indices(path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + path.len()..].chars().next();
            !before.is_some_and(is_of_path) && after.is_none_or(ok)
        })
    };
    let fixed = PATHS.into_iter().find(|path| is_there(path, |_| true));
    fixed.or_else(|| {
        HOMES
            .into_iter()
            .find(|path| is_there(path, |c| c.is_ascii_alphanumeric()))
    })
}

/// Whether a `/` behind it goes on with a path or an address, rather than begin one.
fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "._-}$)~*".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        violations(&Repository::of(&[(path, text)])).len()
    }

    #[test]
    fn paths_of_machines_are_found() {
        let [home, _] = HOMES;
        let [work, root] = PATHS;
        assert_eq!(found("a.sh", &format!("cd {work}b\n")), 1);
        assert_eq!(found("a.rs", &format!("let a = \"{root}b\";\n")), 1);
        assert_eq!(found("a.md", &format!("In `{home}ann/b`.\n{home}bob\n")), 2);
    }

    #[test]
    fn parts_of_other_paths_and_places_for_a_name_are_not() {
        let [home, _] = HOMES;
        let [work, _] = PATHS;
        assert_eq!(found("a.md", &format!("src{work}b and $DIR{work}b\n")), 0);
        assert_eq!(
            found("a.md", &format!("{home}<you>/b and {home}$USER/b\n")),
            0
        );
        assert_eq!(found("a.md", "remora --listen unix:/tmp/a.sock\n"), 0);
    }

    #[test]
    fn hosts_of_packages_are_found_but_in_lock_files() {
        for host in HOSTS {
            let line = format!("\"resolved\": \"https://{host}/a\"\n");
            assert_eq!(found("b/package.json", &line), 1, "{host}");
            assert_eq!(found("b/package-lock.json", &line), 0, "{host}");
        }
    }
}
