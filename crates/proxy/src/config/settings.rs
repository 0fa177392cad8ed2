//! The validated configuration: typed values that no one has to look at twice.

use std::net::SocketAddr;
use std::path::Path;

use remora_engine::rules::Rule;
use remora_net::Endpoint;
use remora_upstream::client::Account;

use super::error::{ConfigError, Origin};
use super::merge::{Merged, Override, merge};
use super::opentelemetry::{Collector, OpenTelemetryOptions};
use super::options::{
    AdminOptions, CacheOptions, DigestOptions, FollowOptions, ListenOptions, ObserveOptions,
    QueryCacheOptions, ShutdownOptions, UpstreamOptions, WorkerOptions,
};
use super::secret::{open_file_warning, read_secret};
use super::source::Source;
use super::transport;
use super::value::{AdminListen, LogLevel};

/// A configuration that can be used: each value is in its range and they fit one another.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where clients connect to. `addresses` is not empty.
    pub listen: ListenOptions,
    /// The server.
    pub upstream: UpstreamOptions,
    /// The follower's account; none: nothing can be cached.
    pub account: Option<Account>,
    /// The follower. `server_id` is no longer 0.
    pub follow: FollowOptions,
    /// The cache.
    pub cache: CacheOptions,
    /// The workers. `threads` is no longer 0.
    pub workers: WorkerOptions,
    /// What is counted of each query.
    pub digests: DigestOptions,
    /// What is looked at more closely.
    pub observe: ObserveOptions,
    /// Where traced statements are sent to.
    pub opentelemetry: OpenTelemetryOptions,
    /// The query cache's own statements.
    pub query_cache: QueryCacheOptions,
    /// Where the admin listener listens, if there is one.
    pub admin_listen: Option<SocketAddr>,
    /// The admin listener's limits.
    pub admin: AdminOptions,
    /// Stopping.
    pub shutdown: ShutdownOptions,
    /// What the operator decides about caching, in the order in which it is asked.
    pub rules: Vec<Rule>,
    /// Where all of this comes from.
    pub source: Source,
    /// How much is logged.
    pub log_level: LogLevel,
    /// What should be said when Remora starts: nothing wrong, but hardly meant. One line each.
    pub warnings: Vec<String>,
}

impl Settings {
    /// How many processors the server has: as many as here, if it is on this machine. Else nobody
    /// says.
    pub fn processors_of_server(&self) -> Option<u32> {
        let here = std::thread::available_parallelism().ok()?;
        let is_here = self.upstream.address.is_on_this_machine();
        u32::try_from(here.get()).ok().filter(|_| is_here)
    }

    /// Reads the file, if there is one, lets the overrides take precedence, checks everything and
    /// reads the password.
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self, ConfigError> {
        let merged = merge(file, overrides)?;
        check_together(&merged)?;
        let mut warnings = Vec::new();
        let account = read_account(&merged, &mut warnings)?;
        let source = Source::new(file, overrides, &merged.options);
        let options = merged.options;
        let admin_listen = match options.admin.listen {
            AdminListen::Off => None,
            AdminListen::At(address) => Some(address),
        };
        let mut settings = Self {
            listen: options.listen,
            upstream: options.upstream,
            account,
            follow: options.follow,
            cache: options.cache,
            workers: options.workers,
            digests: options.digests,
            observe: options.observe,
            opentelemetry: options.opentelemetry,
            query_cache: options.query_cache,
            admin_listen,
            admin: options.admin,
            shutdown: options.shutdown,
            rules: merged.rules,
            source,
            log_level: options.log.level,
            warnings,
        };
        settings.fill_in();
        settings.warn();
        Ok(settings)
    }

    /// Puts values in place of those that mean "choose for me".
    fn fill_in(&mut self) {
        if self.workers.threads == 0 {
            self.workers.threads =
                std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        }
        if self.follow.server_id == 0 {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            self.follow.server_id = derived_server_id(&host, &self.listen.addresses);
        }
    }

    fn warn(&mut self) {
        let keys = transport::warnings(&self.listen, &self.upstream);
        self.warnings.extend(keys);
        if self.cache.enabled && self.account.is_none() {
            self.warnings.push(
                "follow.user is not given, so nothing will be cached: Remora only passes through; \
                 `remora check` says what the follower's account needs"
                    .to_owned(),
            );
        }
    }
}

/// A number for this Remora among the server's replicas: the same after a restart, in the upper
/// half, where hand-made numbers are rare.
fn derived_server_id(host: &str, addresses: &[Endpoint]) -> u32 {
    // FNV-1a, which will give the same number with every version of Remora.
    let mut hash: u32 = 0x811c_9dc5;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    };
    add(host.trim());
    for address in addresses {
        add(&address.to_string());
    }
    hash | 0x8000_0000
}

/// A rule between two options that a configuration breaks: the option to change, what it got, what
/// it accepts.
pub(super) struct Broken(
    pub(super) &'static str,
    pub(super) String,
    pub(super) String,
);

/// The rules that take more than one option to see.
pub(super) fn check_together(merged: &Merged) -> Result<(), ConfigError> {
    let options = &merged.options;
    let (cache, follow) = (&options.cache, &options.follow);
    let eighth = cache.memory_bytes_max.bytes() / 8;
    let too_large = |option, got: super::value::ByteSize| {
        let accepts = format!(
            "at most an eighth of cache.memory_bytes_max ({})",
            cache.memory_bytes_max
        );
        (got.bytes() > eighth).then(|| Broken(option, got.to_string(), accepts))
    };
    let broken = too_large("cache.result_bytes_max", cache.result_bytes_max)
        .or_else(|| too_large("cache.statement_bytes_max", cache.statement_bytes_max))
        .or_else(|| {
            let accepts = "a power of two".to_owned();
            (!cache.shards.is_power_of_two())
                .then(|| Broken("cache.shards", cache.shards.to_string(), accepts))
        })
        .or_else(|| {
            let accepts = format!("at most half of follow.lag_ms_max ({})", follow.lag_ms_max);
            (follow.heartbeat_ms * 2 > follow.lag_ms_max).then(|| {
                Broken(
                    "follow.heartbeat_ms",
                    follow.heartbeat_ms.to_string(),
                    accepts,
                )
            })
        })
        .or_else(|| {
            let accepts = format!(
                "at least follow.reconnect_ms_min ({})",
                follow.reconnect_ms_min
            );
            let got = follow.reconnect_ms_max;
            (got < follow.reconnect_ms_min)
                .then(|| Broken("follow.reconnect_ms_max", got.to_string(), accepts))
        })
        .or_else(|| {
            let accepts = format!(
                "at most half of follow.lag_ms_max ({} ms)",
                follow.lag_ms_max
            );
            let got = follow.watermark_interval_us_min;
            (got * 2 > follow.lag_ms_max * 1_000)
                .then(|| Broken("follow.watermark_interval_us_min", got.to_string(), accepts))
        })
        .or_else(|| check_observing(&options.observe, follow))
        .or_else(|| check_collector(&options.opentelemetry))
        .or_else(|| check_addresses(&options.listen.addresses, &options.upstream.address))
        .or_else(|| transport::broken_rule(options));
    match broken {
        None => Ok(()),
        Some(Broken(option, got, accepts)) => Err(ConfigError::Value {
            origin: merged.origin(option),
            option: option.to_owned(),
            got,
            accepts,
        }),
    }
}

fn check_observing(observe: &ObserveOptions, follow: &FollowOptions) -> Option<Broken> {
    let accepts = format!(
        "at least twice follow.lag_ms_max ({} ms)",
        follow.lag_ms_max
    );
    let got = observe.verify_timeout_ms;
    (observe.verify_sample > 0.0 && got < 2 * follow.lag_ms_max)
        .then(|| Broken("observe.verify_timeout_ms", got.to_string(), accepts))
}

fn check_collector(options: &OpenTelemetryOptions) -> Option<Broken> {
    let got = options.endpoint.as_deref()?;
    let accepts = "http://host:port, with a path or without";
    Collector::at(got)
        .is_none()
        .then(|| Broken("opentelemetry.endpoint", got.to_owned(), accepts.to_owned()))
}

fn check_addresses(listen: &[Endpoint], upstream: &Endpoint) -> Option<Broken> {
    let option = "listen.addresses";
    if listen.contains(upstream) {
        let accepts = "addresses other than upstream.address, or Remora would connect to itself";
        return Some(Broken(option, upstream.to_string(), accepts.to_owned()));
    }
    let is_free_choice = |address: &Endpoint| matches!(address, Endpoint::Tcp { port: 0, .. });
    let twice = listen
        .iter()
        .enumerate()
        .find(|(i, address)| !is_free_choice(address) && listen[..*i].contains(address));
    twice.map(|(_, address)| {
        Broken(
            option,
            format!("{address} twice"),
            "each address once".to_owned(),
        )
    })
}

fn read_account(
    merged: &Merged,
    warnings: &mut Vec<String>,
) -> Result<Option<Account>, ConfigError> {
    let follow = &merged.options.follow;
    match (&follow.user, &follow.password_file) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ConfigError::Value {
            origin: merged.origin("follow.user"),
            option: "follow.user".to_owned(),
            got: "nothing, though follow.password_file is given".to_owned(),
            accepts: "the name of an account on the server".to_owned(),
        }),
        (Some(user), None) => {
            warnings.push(format!(
                "follow.password_file is not given: {user} logs in without a password"
            ));
            Ok(Some(Account {
                user: user.clone(),
                password: String::new(),
            }))
        }
        (Some(user), Some(path)) => {
            let password = read_password(path, &merged.origin("follow.password_file"), warnings)?;
            Ok(Some(Account {
                user: user.clone(),
                password,
            }))
        }
    }
}

/// The file's text without the line break at its end.
fn read_password(
    path: &Path,
    origin: &Origin,
    warnings: &mut Vec<String>,
) -> Result<String, ConfigError> {
    let unreadable = |why: String| ConfigError::Unreadable {
        option: match origin {
            Origin::Flag(flag) => format!("{flag} (follow.password_file)"),
            Origin::File(file) => format!("{}: follow.password_file", file.display()),
            Origin::Default => "follow.password_file".to_owned(),
        },
        path: path.to_owned(),
        why,
    };
    let secret = read_secret(path).map_err(unreadable)?;
    if secret.is_open {
        warnings.push(open_file_warning("follow.password_file", path));
    }
    Ok(secret.text)
}
