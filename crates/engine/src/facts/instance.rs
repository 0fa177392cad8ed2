//! Which running server answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whose process answers: equal for two connections to the same running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// `@@server_id`.
    pub server_id: u32,
    /// `@@hostname`.
    pub hostname: String,
    /// `@@port`.
    pub port: String,
    /// `@@pid_file`.
    pub pid_file: String,
    /// MySQL's `@@server_uuid`; empty on MariaDB.
    pub uuid: String,
}

/// What a session asks to know the instance that it speaks to, in the order in which
/// [`Instance::of_fields`] reads it.
pub const INSTANCE_FIELDS: [&str; 5] = [
    "@@GLOBAL.server_id",
    "@@hostname",
    "@@port",
    "@@pid_file",
    UUID_FIELD,
];
/// Of those, the one that MariaDB lacks.
pub const UUID_FIELD: &str = "@@server_uuid";

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instance {
            server_id,
            hostname,
            port,
            ..
        } = self;
        write!(f, "server {server_id} at {hostname}:{port}")
    }
}

impl Instance {
    /// From the answer to [`INSTANCE_FIELDS`]; `None` if it can't be read.
    pub fn of_fields(fields: &[Option<Vec<u8>>]) -> Option<Instance> {
        let [server_id, hostname, port, pid_file, uuid] = fields else {
            return None;
        };
        let text = |field: &Option<Vec<u8>>| match field {
            None => Some(String::new()),
            Some(bytes) => String::from_utf8(bytes.clone()).ok(),
        };
        Some(Instance {
            server_id: text(server_id)?.parse().ok()?,
            hostname: text(hostname)?,
            port: text(port)?,
            pid_file: text(pid_file)?,
            uuid: text(uuid)?,
        })
    }
}
