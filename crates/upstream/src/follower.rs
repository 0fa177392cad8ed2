//! Reads the server's binary log. [`Applier`] decides what its events mean.

use std::sync::atomic::Ordering;
use std::time::Duration;

use remora_engine::reason::RestartReason;

use super::UpstreamConfig;
use super::applier::{Applier, Start, TransactionLimits};
use super::client::{Client, ClientError};
use super::lost::Lost;
use super::place::LastEvent;
use super::progress::Progress;
use super::state::{UpstreamShared, count};

/// Without yielding, a busy log would keep the watermark task from running on the same thread.
const EVENTS_BETWEEN_YIELDS: u32 = 64;
/// `ER_MASTER_FATAL_ERROR_READING_BINLOG`: the server can't give the log from there.
const LOG_NOT_AVAILABLE: u16 = 1236;

/// The follower's side of one session with the server.
pub(super) struct Follower<'a> {
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    applier: Applier<&'a UpstreamShared, &'a Progress>,
    event_bytes_max: usize,
    quiet_max: Duration,
}

/// The UUID of a replica with this number: always the same, so that what a server still sends to a
/// lost connection ends when the next one is made.
fn uuid_of(server_id: u32) -> String {
    // Version 8 of RFC 9562: "remora", and the number.
    format!("72656d6f-7261-8000-8000-0000{server_id:08x}")
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        config: &UpstreamConfig,
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        start: Start,
    ) -> Follower<'a> {
        let limits = TransactionLimits {
            tables_max: config.transaction_tables_max,
            tags_max: config.transaction_tags_max,
        };
        Follower {
            shared,
            progress,
            applier: Applier::new(shared, progress, limits, start),
            event_bytes_max: config.event_bytes_max,
            quiet_max: Duration::from_millis((config.heartbeat_ms * 5).max(1_000)),
        }
    }

    /// What the next session may go on from.
    pub(super) fn into_last(self) -> Option<LastEvent> {
        self.applier.into_last()
    }

    /// Sets the connection up and asks for the log.
    pub(super) async fn request(
        &self,
        config: &UpstreamConfig,
        client: &mut Client,
    ) -> Result<(), Lost> {
        let (name, offset) = self.applier.place();
        let Ok(offset) = u32::try_from(offset) else {
            let what = "the log file is longer than 4 GiB and can only be followed from the next one: \
                        FLUSH BINARY LOGS";
            return Err(Lost::restart(RestartReason::PositionUnplaceable, what));
        };
        // MariaDB: send its own events as they are.
        client.execute("SET @mariadb_slave_capability = 4").await?;
        // Newer MySQL asks for the same by other names. What a server doesn't know is a variable of
        // no meaning.
        let period_ns = u128::from(config.heartbeat_ms) * 1_000_000;
        for role in ["master", "source"] {
            client
                .execute(&format!(
                    "SET @{role}_binlog_checksum = @@global.binlog_checksum, \
                     @{role}_heartbeat_period = {period_ns}"
                ))
                .await?;
        }
        // A MySQL ends the streams of all other replicas that say the same. Until 8.0 those that
        // say nothing do.
        client
            .execute(&format!(
                "SET @slave_uuid = '{0}', @replica_uuid = '{0}'",
                uuid_of(config.server_id)
            ))
            .await?;
        match client.register_replica(config.server_id).await {
            // Only so that it shows in SHOW REPLICA HOSTS.
            Ok(()) | Err(ClientError::Server(_)) => {}
            Err(error) => return Err(error.into()),
        }
        client
            .dump_binlog(&name.file(), offset, config.server_id)
            .await?;
        Ok(())
    }

    /// Follows until the connection or the log is lost.
    pub(super) async fn run(&mut self, client: &mut Client) -> Lost {
        let mut events = 0_u32;
        loop {
            let message = match client
                .next_event(self.event_bytes_max, self.quiet_max, || {
                    // Else it would be taken for stuck before a long event is there.
                    self.progress.saw_event();
                })
                .await
            {
                Ok(message) => message,
                Err(error) if error.server_code() == Some(LOG_NOT_AVAILABLE) => {
                    return Lost::restart(RestartReason::LogPurged, error.to_string());
                }
                Err(error) => return error.into(),
            };
            count(&self.shared.counters.events, 1);
            count(&self.shared.counters.event_bytes, message.payload_bytes);
            let is_whole = message.is_whole();
            let (kept, event_bytes) = (message.kept, message.payload_bytes);
            if let Err(lost) = self.applier.take(kept, event_bytes, is_whole) {
                return lost;
            }
            events = events.wrapping_add(1);
            if events.is_multiple_of(EVENTS_BETWEEN_YIELDS) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// How many events have been read since the start, for logs.
    pub(super) fn events(&self) -> u64 {
        self.shared.counters.events.load(Ordering::Relaxed)
    }
}
