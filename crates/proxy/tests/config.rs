//! Configuration: what is accepted, what is refused and how, and that the documents tell the truth.
//!
//! Servers: none
//! Load: waits

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use remora::config::{
    ByteSize, ConfigError, Options, Override, Settings, example_toml, reference_markdown,
};
use remora_net::Endpoint;

use remora::metrics;
use remora_engine::reason;
use tempfile::TempDir;

fn file_with(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("remora.toml");
    fs::write(&path, text).unwrap();
    (directory, path)
}

fn load(text: &str) -> Result<Settings, ConfigError> {
    let (_directory, path) = file_with(text);
    Settings::load(Some(&path), &[])
}

/// The error's text, checked to be one line, without the temporary path.
fn refusal(text: &str) -> String {
    let (_directory, path) = file_with(text);
    let error = Settings::load(Some(&path), &[])
        .expect_err(text)
        .to_string();
    assert!(!error.contains('\n'), "{error}");
    error.replace(&path.display().to_string(), "remora.toml")
}

fn given(flag: &str, option: &str, value: &str) -> Override {
    Override {
        flag: flag.to_owned(),
        option: option.to_owned(),
        value: value.to_owned(),
    }
}

#[test]
fn an_empty_file_and_no_file_mean_the_defaults() {
    let settings = load("").unwrap();
    assert_eq!(settings.cache, Options::default().cache);
    let settings = Settings::load(None, &[]).unwrap();
    assert_eq!(settings.listen, Options::default().listen);
    assert_eq!(settings.cache.memory_bytes_max.bytes(), 256 << 20);
    assert!(settings.account.is_none());
}

#[test]
fn the_printed_example_reads_back_as_the_defaults() {
    let options: Options = toml::from_str(&example_toml()).unwrap();
    assert_eq!(options, Options::default());
    load(&example_toml()).unwrap();
}

#[test]
fn the_printed_example_without_comment_marks_is_accepted() {
    let (directory, password) = file_with("secret\n");
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let example = example_toml().replace("# user = ", "user = ").replace(
        "# password_file = \"/etc/remora/password\"",
        &format!("password_file = {:?}", password.display().to_string()),
    );
    let path = directory.path().join("example.toml");
    fs::write(&path, example).unwrap();
    let account = Settings::load(Some(&path), &[]).unwrap().account.unwrap();
    assert_eq!(
        (account.user.as_str(), account.password.as_str()),
        ("remora", "secret")
    );
}

#[test]
fn what_means_choose_for_me_has_been_chosen() {
    let settings = load("").unwrap();
    assert!(settings.workers.threads >= 1);
    assert!(settings.follow.server_id >= 1 << 31);
    assert_eq!(
        settings.follow.server_id,
        load("").unwrap().follow.server_id
    );
    let elsewhere = load("listen.addresses = ['127.0.0.1:4407']").unwrap();
    assert_ne!(settings.follow.server_id, elsewhere.follow.server_id);
    assert_eq!(load("follow.server_id = 77").unwrap().follow.server_id, 77);
}

#[test]
fn addresses_are_hosts_with_ports_or_sockets() {
    let settings = load(
        "[listen]\naddresses = ['[::1]:3307', 'unix:/run/remora.sock']\n\
         [upstream]\naddress = 'db.example:3306'\n[admin]\nlisten = 'off'",
    )
    .unwrap();
    let expected = [
        Endpoint::Tcp {
            host: "::1".to_owned(),
            port: 3307,
        },
        Endpoint::Unix(PathBuf::from("/run/remora.sock")),
    ];
    assert_eq!(settings.listen.addresses, expected);
    assert_eq!(settings.upstream.address.to_string(), "db.example:3306");
    assert_eq!(settings.admin_listen, None);
}

#[test]
fn a_wrong_value_is_refused_with_the_option_what_it_got_and_what_it_accepts() {
    for (text, expected) in [
        (
            "cache.memory_bytes_max = 'lots'",
            "remora.toml: cache.memory_bytes_max: got \"lots\", accepts a size from 1MiB to 16TiB, such as \"8MiB\"",
        ),
        (
            "follow.lag_ms_max = 1",
            "remora.toml: follow.lag_ms_max: got 1, accepts a whole number from 10 to 3600000",
        ),
        (
            "follow.lag_ms_max = -1",
            "remora.toml: follow.lag_ms_max: got -1, accepts a whole number from 10 to 3600000",
        ),
        (
            "cache.enabled = 'yes'",
            "remora.toml: cache.enabled: got \"yes\", accepts true or false",
        ),
        (
            "upstream.address = '127.0.0.1'",
            "remora.toml: upstream.address: got \"127.0.0.1\", accepts host:port or unix:/path",
        ),
        (
            "listen.addresses = []",
            "remora.toml: listen.addresses: got [], accepts a list of one or more of host:port or unix:/path",
        ),
        (
            "log.level = 'verbose'",
            "remora.toml: log.level: got \"verbose\", accepts one of error, warn, info, debug, trace",
        ),
        (
            "admin.listen = 'localhost:1'",
            "remora.toml: admin.listen: got \"localhost:1\", accepts an IP address and port, or off",
        ),
        (
            "cache = 7",
            "remora.toml: cache: got 7, accepts a section, [cache]",
        ),
        (
            "upstream.tls_mode = 'sometimes'",
            "remora.toml: upstream.tls_mode: got \"sometimes\", accepts one of as_client, disabled, preferred, required, verify_ca, verify_identity",
        ),
        (
            "listen.proxy_protocol_from = ['10.0.0.0/33']",
            "remora.toml: listen.proxy_protocol_from: got [\"10.0.0.0/33\"], accepts a list of networks such as 10.0.0.0/8, or of addresses",
        ),
        (
            "follow.user = ''",
            "remora.toml: follow.user: got \"\", accepts text that is not empty",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn networks_are_a_list_in_the_file_and_with_commas_on_the_command_line() {
    let settings = load("listen.proxy_protocol_from = ['10.0.0.0/8', '::1']").unwrap();
    let written: Vec<String> = settings
        .listen
        .proxy_protocol_from
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(written, ["10.0.0.0/8", "::1/128"]);
    let option = "listen.proxy_protocol_from";
    for (value, count) in [("", 0), ("10.0.0.1", 1), ("10.0.0.0/8, 127.0.0.1", 2)] {
        let settings = Settings::load(None, &[given("--set", option, value)]).unwrap();
        assert_eq!(settings.listen.proxy_protocol_from.len(), count, "{value}");
    }
}

#[test]
fn a_private_key_that_others_can_read_is_warned_of() {
    let (_directory, key) = file_with("key\n");
    let text = format!(
        "[listen]\ntls_certificate_file = '/none.pem'\ntls_key_file = '{}'",
        key.display()
    );
    for (mode, warns) in [(0o600, false), (0o640, true)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let warnings = load(&text).unwrap().warnings;
        let is_warned = warnings.iter().any(|warning| {
            warning.contains("listen.tls_key_file") && warning.contains("chmod 600")
        });
        assert_eq!(is_warned, warns, "{mode:o}: {warnings:?}");
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_known_one() {
    for (text, expected) in [
        (
            "cache.memory_bytes = 1",
            "remora.toml: cache.memory_bytes does not exist; did you mean cache.memory_bytes_max?",
        ),
        (
            "workers.lag_ms_max = 1",
            "remora.toml: workers.lag_ms_max does not exist; did you mean follow.lag_ms_max?",
        ),
        (
            "memory_bytes_max = 1",
            "remora.toml: memory_bytes_max does not exist; did you mean cache.memory_bytes_max?",
        ),
        (
            "[cach]",
            "remora.toml: cach does not exist; did you mean cache?",
        ),
        (
            "[frobnication]",
            "remora.toml: frobnication does not exist; `remora config` prints what does",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let error = refusal("[cache]\nenabled = = true\n");
    assert!(error.starts_with("remora.toml, line 2: "), "{error}");
    assert!(error.ends_with("; accepts TOML"), "{error}");
}

#[test]
fn options_that_contradict_one_another_are_refused() {
    for (text, expected) in [
        (
            "listen.tls_certificate_file = '/c.pem'",
            "listen.tls_key_file: got nothing, though listen.tls_certificate_file is given, accepts the file that belongs to it",
        ),
        (
            "upstream.tls_key_file = '/k.pem'",
            "upstream.tls_certificate_file: got nothing, though upstream.tls_key_file is given, accepts the file that belongs to it",
        ),
        (
            "upstream.tls_mode = 'verify_ca'",
            "upstream.tls_ca_file: got nothing, though upstream.tls_mode is to verify the server, accepts a file with the certificates of the authorities to trust",
        ),
        (
            "[upstream]\naddress = 'unix:/db.sock'\ntls_mode = 'verify_identity'\ntls_ca_file = '/ca.pem'",
            "remora.toml: upstream.tls_mode: got verify_identity for a Unix socket, which has no host name, accepts another mode, or a host:port in upstream.address",
        ),
        (
            "[upstream]\naddress = 'unix:/db.sock'\nproxy_protocol = 'v2'",
            "remora.toml: upstream.proxy_protocol: got a version for a Unix socket, where no server takes it, accepts off, or a host:port in upstream.address",
        ),
        (
            "cache.result_bytes_max = '64MiB'",
            "remora.toml: cache.result_bytes_max: got 64MiB, accepts at most an eighth of cache.memory_bytes_max (256MiB)",
        ),
        // The option that clashes was not given: there is no file to blame for its default.
        (
            "cache.memory_bytes_max = '4MiB'",
            "cache.result_bytes_max: got 1MiB, accepts at most an eighth of cache.memory_bytes_max (4MiB)",
        ),
        (
            "follow.heartbeat_ms = 900",
            "remora.toml: follow.heartbeat_ms: got 900, accepts at most half of follow.lag_ms_max (1000)",
        ),
        (
            "follow.reconnect_ms_max = 5",
            "remora.toml: follow.reconnect_ms_max: got 5, accepts at least follow.reconnect_ms_min (100)",
        ),
        (
            "cache.shards = 3",
            "remora.toml: cache.shards: got 3, accepts a power of two",
        ),
        (
            "upstream.address = '127.0.0.1:3307'",
            "listen.addresses: got 127.0.0.1:3307, accepts addresses other than upstream.address, or Remora would connect to itself",
        ),
        (
            "listen.addresses = ['h:1', 'h:1']",
            "remora.toml: listen.addresses: got h:1 twice, accepts each address once",
        ),
        (
            "follow.password_file = '/x'",
            "follow.user: got nothing, though follow.password_file is given, accepts the name of an account on the server",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn the_command_line_takes_precedence_over_the_file() {
    let (_directory, path) = file_with("[cache]\nmemory_bytes_max = '64MiB'\nshards = 8\n");
    let overrides = [
        given("--memory", "cache.memory_bytes_max", "128MiB"),
        given(
            "--listen",
            "listen.addresses",
            "127.0.0.1:1,unix:/run/r.sock",
        ),
        given("--set", "cache.enabled", "false"),
    ];
    let settings = Settings::load(Some(&path), &overrides).unwrap();
    assert_eq!(settings.cache.memory_bytes_max, ByteSize::new(128 << 20));
    assert_eq!(settings.cache.shards, 8);
    assert_eq!(settings.listen.addresses.len(), 2);
    assert!(!settings.cache.enabled);
}

#[test]
fn a_wrong_value_on_the_command_line_names_its_option_there() {
    let wrong = [given("--memory", "cache.memory_bytes_max", "lots")];
    let error = Settings::load(None, &wrong).unwrap_err().to_string();
    let expected = "--memory (cache.memory_bytes_max): got \"lots\", accepts a size from 1MiB to 16TiB, such as \"8MiB\"";
    assert_eq!(error, expected);
    let unknown = [given("--set", "cache.memory_max", "1")];
    let error = Settings::load(None, &unknown).unwrap_err().to_string();
    assert_eq!(
        error,
        "--set (cache.memory_max) does not exist; did you mean cache.memory_bytes_max?"
    );
}

fn with_password_file(path: &Path) -> Result<Settings, ConfigError> {
    let path = path.display().to_string();
    Settings::load(
        None,
        &[
            given("--follow-user", "follow.user", "remora"),
            given("--follow-password-file", "follow.password_file", &path),
        ],
    )
}

#[test]
fn a_password_is_the_files_text_without_its_line_break() {
    for (text, password) in [
        ("pa ss\n", "pa ss"),
        ("pa\r\n", "pa"),
        (" p", " p"),
        ("", ""),
    ] {
        let (_directory, path) = file_with(text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let settings = with_password_file(&path).unwrap();
        assert_eq!(settings.account.as_ref().unwrap().password, password);
        assert!(!format!("{settings:?}").contains("pa ss"));
        assert!(
            !settings
                .warnings
                .iter()
                .any(|warning| warning.contains("chmod"))
        );
    }
}

#[test]
fn a_password_that_others_can_read_is_warned_about() {
    let (_directory, path) = file_with("secret\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = with_password_file(&path).unwrap().warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains("chmod 600")),
        "{warnings:?}"
    );
}

#[test]
fn a_password_file_that_is_missing_or_no_password_is_refused() {
    let (directory, path) = file_with("one\ntwo\n");
    let error = with_password_file(&path).unwrap_err().to_string();
    assert!(error.contains("more than one line"), "{error}");
    let missing = directory.path().join("missing");
    let error = with_password_file(&missing).unwrap_err().to_string();
    let expected = format!(
        "--follow-password-file (follow.password_file): got {}, which can't be read",
        missing.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    let error = with_password_file(directory.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("can't be read"), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_missing_configuration_file_is_refused() {
    let error = Settings::load(Some(Path::new("/nonexistent/remora.toml")), &[]).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("--config: got /nonexistent/remora.toml, which can't be read"));
}

#[test]
fn nothing_but_a_plain_proxy_is_warned_about() {
    let mentions = |settings: Settings| {
        settings
            .warnings
            .iter()
            .any(|warning| warning.contains("nothing will be cached"))
    };
    assert!(mentions(load("").unwrap()));
    assert!(!mentions(load("cache.enabled = false").unwrap()));
    assert!(!mentions(load("follow.user = 'remora'").unwrap()));
}

/// A page of the repository's documentation is what the code prints.
fn assert_committed(page: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(format!("{page}.md"));
    let command = if page == "configuration" {
        "config"
    } else {
        page
    };
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/{page}.md is out of date: cargo run -p remora -- {command} --markdown > docs/{page}.md"
    );
}

#[test]
fn the_configurations_page_is_what_the_code_prints() {
    assert_committed("configuration", &reference_markdown());
}

#[test]
fn the_metrics_page_is_what_the_code_prints() {
    assert_committed("metrics", &metrics::reference_markdown());
}

#[test]
fn the_reasons_page_is_what_the_code_prints() {
    assert_committed("reasons", &reason::reference_markdown());
}

#[test]
fn every_limit_is_labelled_with_an_option_that_exists() {
    let defaults = toml::Table::try_from(Options::default()).unwrap();
    for limit in reason::Limit::ALL {
        let (section, option) = limit.as_str().split_once('.').unwrap();
        assert!(
            defaults[section].get(option).is_some(),
            "{}",
            limit.as_str()
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_file_makes_loading_panic_or_fill_more_than_a_line(text in "[a-z_.= '\\[\\]\n0-9]{0,80}") {
        if let Err(error) = load(&text) {
            proptest::prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn no_text_makes_an_option_panic_or_fill_more_than_a_line(value in "\\PC{0,40}|[\n\r\t\0a]{0,5}") {
        let defaults = toml::Table::try_from(Options::default()).unwrap();
        for (section, options) in &defaults {
            for option in options.as_table().unwrap().keys() {
                let option = format!("{section}.{option}");
                if let Err(error) = Settings::load(None, &[given("--set", &option, &value)]) {
                    proptest::prop_assert!(!error.to_string().contains('\n'));
                }
            }
        }
    }
}

/// What a rule is refused with, without the file's name.
fn rule_refusal(rule: &str) -> String {
    refusal(&format!("# A comment.\n[[rules]]\n{rule}\n"))
}

#[test]
fn rules_keep_their_order_and_their_lines() {
    let rules = load(
        "[cache]\nresult_bytes_max = \"1MiB\"\n\n[[rules]]\ntable = \"shop.log_*\"\ncache = false\n\n\
         [[rules]] # another\naccount = \"report@%\"\ntime_to_live_ms = 500\nresult_bytes_max = \"64KiB\"\n\n\
         [[rules]]\ndigest = \"00000000000000aB\"\nschema = \"shop\"\ncache = true\n",
    )
    .unwrap()
    .rules;
    let told: Vec<_> = rules
        .iter()
        .map(|rule| (rule.line, rule.to_string()))
        .collect();
    let expected = [
        (4, "never cached, where table = \"shop.log_*\""),
        (
            8,
            "cached for at most 500 ms up to 65536 bytes, where account = \"report@%\"",
        ),
        (
            13,
            "cached, where digest = \"00000000000000ab\" and schema = \"shop\"",
        ),
    ];
    assert_eq!(told, expected.map(|(line, words)| (line, words.to_owned())));
}

#[test]
fn a_rule_about_transactions_says_nothing_else() {
    for (rule, said) in [
        (
            "transaction_reads = \"on\"",
            "remora.toml, line 3: rules.transaction_reads: got \"on\", accepts off, after_snapshot or early",
        ),
        (
            "table = \"a.b\"\ntransaction_reads = \"off\"",
            "remora.toml, line 2: rules: got a rule with transaction_reads and more, accepts",
        ),
        (
            "cache = true\ntransaction_reads = \"off\"",
            "remora.toml, line 2: rules: got a rule with transaction_reads and more, accepts",
        ),
    ] {
        let refused = rule_refusal(rule);
        assert!(refused.starts_with(said), "{refused}");
    }
}

#[test]
fn a_rule_that_is_written_wrongly_is_refused_with_its_line() {
    for (rule, said) in [
        (
            "table = \"shop\"\ncache = false",
            "remora.toml, line 3: rules.table: got \"shop\", accepts schema.table;",
        ),
        (
            "cache = false\ntable = 5",
            "remora.toml, line 4: rules.table: got 5, accepts schema.table;",
        ),
        (
            "cache = \"no\"",
            "remora.toml, line 3: rules.cache: got \"no\", accepts true or false",
        ),
        (
            "digest = \"abc\"\ncache = false",
            "remora.toml, line 3: rules.digest: got \"abc\", accepts 16 hexadecimal digits",
        ),
        (
            "account = \"'a'@'b'\"\ncache = false",
            "remora.toml, line 3: rules.account: got \"'a'@'b'\", accepts user or user@host",
        ),
        (
            "schema = \"sh*\"\ncache = false",
            "remora.toml, line 3: rules.schema: got \"sh*\", accepts the name of a schema",
        ),
        (
            "time_to_live_ms = 0",
            "remora.toml, line 3: rules.time_to_live_ms: got 0, accepts a whole number from 1",
        ),
        (
            "time_to_live_ms = -5",
            "remora.toml, line 3: rules.time_to_live_ms: got -5, accepts",
        ),
        (
            "time_to_live_ms = 99999999999999",
            "remora.toml, line 3: rules.time_to_live_ms: got 99999999999999, accepts",
        ),
        (
            "result_bytes_max = \"1GiB\"",
            "remora.toml, line 3: rules.result_bytes_max: got 1GiB, accepts at most cache.result_bytes_max (1MiB)",
        ),
        (
            "result_bytes_max = 0",
            "remora.toml, line 3: rules.result_bytes_max: got 0, accepts a size",
        ),
        (
            "tabel = \"a.b\"",
            "remora.toml, line 3: rules.tabel does not exist; did you mean table?",
        ),
        (
            "cache = false\nwhy = 1",
            "remora.toml, line 4: rules.why does not exist; ",
        ),
        (
            "table = \"a.b\"",
            "remora.toml, line 2: rules: got a rule that says nothing, accepts",
        ),
        (
            "cache = false\ntime_to_live_ms = 5",
            "remora.toml, line 2: rules: got a rule with cache = false and a bound, accepts",
        ),
    ] {
        let refused = rule_refusal(rule);
        assert!(refused.starts_with(said), "{refused}");
    }
    assert!(refusal("rules = 3").starts_with("remora.toml, line 1: rules: got 3, accepts tables"));
    assert!(
        refusal("\nrules = [1]").starts_with("remora.toml, line 2: rules: got 1, accepts tables")
    );
}

#[test]
fn rules_are_bounded() {
    let rule = "[[rules]]\ncache = false\n";
    load(&rule.repeat(128)).unwrap();
    let refused = refusal(&rule.repeat(129));
    assert_eq!(
        refused,
        "remora.toml, line 257: rules: got 129, accepts at most cache.rules_max (128)"
    );
    load(&format!("[cache]\nrules_max = 129\n{}", rule.repeat(129))).unwrap();
}

#[test]
fn what_differs_from_the_start_is_named_when_the_file_is_read_again() {
    let (_directory, path) = file_with("[cache]\nshards = 4\n");
    let overrides = [given("--memory", "cache.memory_bytes_max", "64MiB")];
    let source = Settings::load(Some(&path), &overrides).unwrap().source;
    assert_eq!(
        source.reread().unwrap().unwrap().needs_restart,
        Vec::<String>::new()
    );
    // What the command line says still takes precedence.
    let text = "[cache]\nmemory_bytes_max = \"1GiB\"\nrules_max = 5\n[admin]\ntoken_file = \"/t\"\n[[rules]]\ncache = false\n";
    fs::write(&path, text).unwrap();
    let reread = source.reread().unwrap().unwrap();
    assert_eq!(reread.needs_restart, ["admin.token_file", "cache.shards"]);
    assert_eq!(reread.rules.len(), 1);
    fs::write(&path, "[cache]\nshards = \"many\"\n").unwrap();
    assert!(source.reread().is_err());
    assert_eq!(Settings::load(None, &[]).unwrap().source.reread(), Ok(None));
}
