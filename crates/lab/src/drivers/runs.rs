//! The servers that the matrix is run against.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use remora_testkit::servers::Kind;

/// The plugin of MariaDB's server that Debian packs apart.
const ED25519: &str = "auth_ed25519";

/// One run of all drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// What the server is.
    pub kind: Kind,
    /// Whether clients use TLS, directly and towards Remora, and Remora towards the server.
    pub tls: bool,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            kind: Kind::ALL[0],
            tls: false,
        }
    }
}

impl Run {
    /// The runs of `make drivers`, if nobody chooses.
    pub(super) fn defaults() -> Vec<Run> {
        let kinds = [Kind::MariaDb1011, Kind::MySql80];
        let both = kinds.map(|kind| [false, true].map(|tls| Run { kind, tls }));
        both.concat()
    }

    /// What the server is started with, beyond what all are.
    pub(super) fn server_arguments(self, installed: &Path) -> Vec<String> {
        let mut arguments = vec![
            "--max-allowed-packet=64M".to_owned(),
            "--local-infile=ON".to_owned(),
        ];
        let plugins = match self.kind.base() {
            Some(base) => base.join("lib/plugin"),
            None => installed.join("mariadb-plugins"),
        };
        if plugins.join(format!("{ED25519}.so")).is_file() {
            arguments.push(format!("--plugin-dir={}", plugins.display()));
            arguments.push(format!("--plugin-load-add={ED25519}"));
        }
        arguments
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        if self.tls {
            f.write_str("+tls")
        } else {
            Ok(())
        }
    }
}

impl FromStr for Run {
    type Err = String;

    fn from_str(text: &str) -> Result<Run, String> {
        let (name, tls) = match text.strip_suffix("+tls") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.map(|kind| Run { kind, tls }).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::as_str).join(", ");
            format!("there is no server {name}, but {names}")
        })
    }
}
