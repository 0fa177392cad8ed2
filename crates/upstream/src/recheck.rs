//! Checks again and again that the server is still the one that was checked.
//!
//! What [`check`] looks at can change while the server runs: replication is started that the log
//! doesn't show, an account loses a privilege, a setting is changed, the address leads elsewhere.
//! So what was found has a date, the moment before its questions were sent, and counts for
//! `check_age_ms_max`. A new check is made four times as often, and at once when the log shows that
//! accounts have changed. While the last good one is too old nothing is served and nothing is kept:
//! [`CheckDate`](crate::check_date::CheckDate) bounds the date of each of the follower's proofs, on
//! which hits rest.
//!
//! The questions go over a connection of their own, so that an answer that takes long holds up
//! nothing else. It is made anew from time to time. That the address leads elsewhere shows there:
//! then the session ends, everything is forgotten, and the next one follows the server that the
//! address leads to.
//!
//! Every further connection of a session is made by [`Checked::connect`], and so is on the server
//! that was checked. What an account may do everywhere is settled when it connects; so those that
//! look at definitions are checked when they are made ([`Checked::look`]).

use std::time::Duration;

use remora_cache::BrokenSurroundings;
use remora_engine::reason::RestartReason;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::check::privileges::grants_processes;
use super::check::{check, is_caching_off};
use super::check_date::AskedAt;
use super::client::{Client, ClientError};
use super::lost::Lost;
use super::mark::Mark;
use super::progress::Progress;
use super::server_facts::{ServerFacts, ask_instance, sees_processes};
use super::state::{UpstreamShared, count};
use super::{UpstreamConfig, connect};

/// However often accounts change, there is this much time between two checks.
const CHECKS_APART: Duration = Duration::from_millis(50);

/// A session's server, as it was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) facts: ServerFacts,
    pub(super) mark: Mark,
    /// What a test has broken.
    pub(super) broken: BrokenSurroundings,
}

impl Checked {
    /// A further connection to this server.
    pub(super) async fn connect(&self, config: &UpstreamConfig) -> Result<Client, Lost> {
        let mut client = connect(config).await?;
        if self.mark.is_seen_by(&mut client).await? {
            return Ok(client);
        }
        let instance = ask_instance(&mut client).await?;
        if instance == self.facts.instance {
            // Or another one that can't be told from it; the log shows that.
            let what = "the session's first connection has ended";
            return Err(ClientError::Answer(what).into());
        }
        let what = format!(
            "the address now leads to {instance}, not to {}",
            self.facts.instance
        );
        Err(Lost::restart(RestartReason::LogChanged, what))
    }

    /// Asks again for what can change, and looks at it. Gives the answers.
    pub(super) async fn look(
        &self,
        client: &mut Client,
        config: &UpstreamConfig,
    ) -> Result<ServerFacts, Lost> {
        let facts = self.facts.ask_again(client).await?;
        let findings = check(&facts, config.server_id);
        if is_caching_off(&findings) && self.broken != BrokenSurroundings::Facts {
            return Err(Lost::Unsuitable(findings.into()));
        }
        if facts.replication_trace() != self.facts.replication_trace() {
            // Replication may have run for a moment that no check saw.
            let what = "gtid_slave_pos, or the count of START and STOP SLAVE, has changed, and \
                        log_slave_updates is off";
            return Err(Lost::restart(RestartReason::ChangesUnlogged, what));
        }
        Ok(facts)
    }
}

/// The connection for checks.
struct Opened {
    client: Client,
    at: Instant,
}

/// The checks of one session with the server.
pub(super) struct Recheck<'a> {
    config: &'a UpstreamConfig,
    shared: &'a UpstreamShared,
    progress: &'a Progress,
    checked: &'a Checked,
}

impl<'a> Recheck<'a> {
    pub(super) fn new(
        config: &'a UpstreamConfig,
        shared: &'a UpstreamShared,
        progress: &'a Progress,
        checked: &'a Checked,
    ) -> Recheck<'a> {
        Recheck {
            config,
            shared,
            progress,
            checked,
        }
    }

    fn age_max(&self) -> Duration {
        Duration::from_millis(self.config.check_age_ms_max)
    }

    fn interval(&self) -> Duration {
        self.age_max() / 4
    }

    /// Checks until something is found.
    pub(super) async fn run(&self) -> Lost {
        let mut opened = None;
        loop {
            let began = self.progress.check_date().asked_at();
            sleep_until(began + CHECKS_APART.min(self.interval())).await;
            let next = began + self.interval();
            let _ = timeout_at(next, self.shared.check_bell.notified()).await;
            if let Err(lost) = self.check_in_time(&mut opened).await {
                return lost;
            }
        }
    }

    /// One check. When the last one is too old before its answer is there, everything stops until
    /// it is.
    async fn check_in_time(&self, opened: &mut Option<Opened>) -> Result<(), Lost> {
        let checking = self.check_until_answered(opened);
        tokio::pin!(checking);
        tokio::select! {
            biased;
            result = &mut checking => return result,
            () = sleep_until(self.progress.check_date().expires()) => {}
        }
        self.stop();
        checking.await
    }

    /// The last good check is too old.
    fn stop(&self) {
        let age_ms_max = self.config.check_age_ms_max;
        tracing::warn!(
            "the server could not be checked again within {age_ms_max} ms, nothing is served from memory"
        );
        count(&self.shared.counters.checks_late, 1);
        self.progress.check_date().expire();
        self.progress.resume_when_proven();
        self.shared.timeline.suspend();
    }

    async fn check_until_answered(&self, opened: &mut Option<Opened>) -> Result<(), Lost> {
        let mut wait_ms = self.config.reconnect_ms_min;
        let mut is_news = true;
        loop {
            let error = match self.check_once(opened).await {
                Err(Lost::Connection(error)) => error,
                other => return other,
            };
            count(&self.shared.counters.checks_failed, 1);
            *opened = None;
            // The server answers, and won't have it: the next session says so to everybody.
            if self.progress.check_date().is_too_old() && error.server_code().is_some() {
                return Err(error.into());
            }
            if std::mem::take(&mut is_news) {
                tracing::warn!(%error, "a check of the server failed; trying again");
            }
            sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms.max(1) * 2).min(self.config.reconnect_ms_max);
        }
    }

    async fn check_once(&self, opened: &mut Option<Opened>) -> Result<(), Lost> {
        self.renew_connection(opened).await?;
        let Some(opened) = opened else {
            return Err(ClientError::Answer("no connection for checks").into());
        };
        let asked = AskedAt::now(self.shared);
        count(&self.shared.counters.checks, 1);
        let facts = self.checked.look(&mut opened.client, self.config).await?;
        self.look_for_processes(&mut opened.client, &facts).await?;
        self.shared
            .set_logins(facts.logins_run_code(), facts.logins_set_next_transaction());
        self.shared
            .saw_privilege_settings(facts.privilege_settings());
        let was_too_late = self.progress.check_date().renew(asked);
        self.shared.checked(asked.at_ms());
        if was_too_late {
            tracing::info!("the server has been checked again");
            // What waited for it can be settled, and a proof of now is wanted.
            self.shared.applied_bell.notify_one();
            self.shared.wake();
        }
        Ok(())
    }

    /// If the account has been granted `PROCESS`, the session's connections don't have it yet. The
    /// follower reconnects once a newer connection does: this one, after it has been replaced.
    async fn look_for_processes(
        &self,
        client: &mut Client,
        facts: &ServerFacts,
    ) -> Result<(), Lost> {
        let is_news = !self.checked.facts.sees_processes && grants_processes(facts);
        if is_news && sees_processes(client).await? {
            return Err(Lost::PrivilegeGiven);
        }
        Ok(())
    }

    /// Connects anew when the connection has become old, to see where the address leads. If that
    /// can't be found out, the old connection does.
    async fn renew_connection(&self, opened: &mut Option<Opened>) -> Result<(), Lost> {
        let at = Instant::now();
        let is_due = |opened: &Opened| opened.at.elapsed() >= self.age_max() / 2;
        let client = if opened.is_none() {
            self.checked.connect(self.config).await?
        } else if opened.as_ref().is_some_and(is_due) {
            match timeout(self.interval(), self.checked.connect(self.config)).await {
                Ok(Ok(client)) => client,
                Err(_) | Ok(Err(Lost::Connection(_))) => return Ok(()),
                Ok(Err(lost)) => return Err(lost),
            }
        } else {
            return Ok(());
        };
        if let Some(old) = opened.replace(Opened { client, at }) {
            old.client.quit().await;
        }
        Ok(())
    }
}
