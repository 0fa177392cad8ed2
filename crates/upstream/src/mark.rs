//! A mark by which a session's further connections know the server that its first one reached.
//!
//! Servers can take each other's place at an address while all of them run: an address that moves,
//! a name that is given another meaning, a balancer. They may be alike in all that they tell of
//! themselves ([`Instance`](remora_engine::facts::Instance)): copies in containers have the same
//! number, host name, port and file names. A user-level lock is known to one running server only.
//! So the first connection holds one whose name nobody else takes. Who sees it held by that
//! connection speaks to the same server: the session's further connections, and the sessions of
//! clients, which ask for it with their settings.

use std::time::{SystemTime, UNIX_EPOCH};

use remora_engine::settings::FollowedMark;

use super::client::{Client, ClientError, literal, text};

/// The lock, and who holds it.
#[derive(Debug)]
pub(super) struct Mark {
    name: String,
    holder: String,
}

impl Mark {
    /// Takes the lock. The server frees it when the connection ends.
    pub(super) async fn set(client: &mut Client, server_id: u32) -> Result<Mark, ClientError> {
        let holder = value(client, "SELECT CONNECTION_ID()").await?;
        let holder = holder.ok_or(ClientError::Answer("a connection without a number"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.unwrap_or_default().as_nanos();
        // At most 64 characters.
        let name = format!("remora {server_id} {holder} {now_ns}");
        let sql = format!("SELECT GET_LOCK({}, 0)", literal(&name));
        if value(client, &sql).await?.as_deref() != Some("1") {
            return Err(ClientError::Answer(
                "a lock that nobody else takes is taken",
            ));
        }
        Ok(Mark { name, holder })
    }

    /// What the sessions of clients must see, under a number that no other mark has.
    pub(super) fn shown(&self, number: u64) -> FollowedMark {
        FollowedMark {
            number,
            name: self.name.clone(),
            holder: self.holder.clone(),
        }
    }

    /// Whether a connection reaches the server on which the mark was set. Not once the connection
    /// that set it has ended.
    pub(super) async fn is_seen_by(&self, client: &mut Client) -> Result<bool, ClientError> {
        let sql = format!("SELECT IS_USED_LOCK({})", literal(&self.name));
        let holder = value(client, &sql).await?;
        Ok(holder.as_ref() == Some(&self.holder))
    }
}

/// The only field of an answer; `None` if it is NULL.
async fn value(client: &mut Client, sql: &str) -> Result<Option<String>, ClientError> {
    let rows = client.query(sql, 1).await?;
    let row = rows.first().ok_or(ClientError::Answer("no row"))?;
    Ok(text(row, 0).map(str::to_owned))
}
