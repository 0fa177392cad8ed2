//! Accounts for the check of logins: two for each authentication plugin of the server at hand.

use anyhow::Context as _;

use remora_testkit::client::Client;
use remora_testkit::servers::Kind;

/// The password of all of them.
pub(super) const PASSWORD: &str = "pass word'\"";

/// A plugin that accounts are made for.
struct Plugin {
    /// The name in the matrix, short enough for user names of MySQL 5.6.
    short: &'static str,
    /// The server's name of it.
    name: &'static str,
}

impl Plugin {
    /// Whether a server of this kind can make such an account in one statement.
    fn is_known_to(&self, kind: Kind) -> bool {
        kind != Kind::MySql56 || self.short == "native"
    }
}

const PLUGINS: [Plugin; 4] = [
    Plugin {
        short: "native",
        name: "mysql_native_password",
    },
    Plugin {
        short: "caching",
        name: "caching_sha2_password",
    },
    Plugin {
        short: "sha256",
        name: "sha256_password",
    },
    Plugin {
        short: "ed25519",
        name: "ed25519",
    },
];

/// Makes `direct_X` and `remora_X` anew for each plugin that the server has, so that the server
/// remembers no login of them. Gives the short names of the plugins.
pub(super) fn make(root: &mut Client, kind: Kind) -> anyhow::Result<Vec<&'static str>> {
    let mut made = Vec::new();
    for plugin in PLUGINS.iter().filter(|plugin| plugin.is_known_to(kind)) {
        let active = format!(
            "SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = '{}' AND PLUGIN_STATUS = 'ACTIVE'",
            plugin.name
        );
        if root.query_value(&active)?.is_none() {
            continue;
        }
        for side in ["direct", "remora"] {
            let account = format!("{side}_{}@'%'", plugin.short);
            // There is no DROP USER IF EXISTS in MySQL 5.6; that there is nothing to drop is no
            // failure.
            let _ = root.query(&format!("DROP USER {account}"));
            let create = creation(&account, plugin, kind);
            root.query(&create).with_context(|| create.clone())?;
            root.query(&format!("GRANT ALL ON *.* TO {account}"))
                .with_context(|| format!("GRANT to {account}"))?;
        }
        made.push(plugin.short);
    }
    Ok(made)
}

fn creation(account: &str, plugin: &Plugin, kind: Kind) -> String {
    let password = PASSWORD.replace('\'', "''");
    let name = plugin.name;
    match kind {
        Kind::MariaDb1011 | Kind::MariaDb114 => {
            format!("CREATE USER {account} IDENTIFIED VIA {name} USING PASSWORD('{password}')")
        }
        Kind::MySql80 | Kind::MySql57 => {
            format!("CREATE USER {account} IDENTIFIED WITH {name} BY '{password}'")
        }
        Kind::MySql56 => format!("CREATE USER {account} IDENTIFIED BY '{password}'"),
    }
}
