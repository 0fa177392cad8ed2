//! The first lines of a picture: the whole Remora.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The metrics without labels, by name, and the reason why nothing is cached, if nothing is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gauges {
    values: HashMap<String, f64>,
    caching_off: Option<String>,
}

impl Gauges {
    /// Reads them from the text that Prometheus reads.
    pub(super) fn of(page: &str) -> Gauges {
        let mut gauges = Gauges::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let off = name
                .strip_prefix("remora_caching{reason=\"")
                .and_then(|rest| rest.strip_suffix("\"}"));
            if let Some(reason) = off {
                gauges.caching_off = (!reason.is_empty()).then(|| reason.to_owned());
            } else if let Ok(value) = value.parse() {
                gauges.values.insert(name.to_owned(), value);
            }
        }
        gauges
    }

    fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }
}

/// Three lines.
pub(super) fn head(address: SocketAddr, before: &Gauges, now: &Gauges, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-3);
    let rate = |name| (now.get(name) - before.get(name)).max(0.0) / seconds;
    let (hits, misses) = (rate("remora_hits_total"), rate("remora_misses_total"));
    let share = match hits + misses {
        0.0 => "-".to_owned(),
        all => format!("{:.1} %", 100.0 * hits / all),
    };
    let caching = match &now.caching_off {
        None => "on".to_owned(),
        Some(reason) => format!("OFF ({reason})"),
    };
    let mib = |name| now.get(name) / 1_048_576.0;
    format!(
        "Remora at {address}, caching {caching}, the last {seconds:.1} s\n\
         {hits:.0} hits/s and {misses:.0} misses/s: {share} from memory; {:.0} connections; lag at most {:.0} ms\n\
         {:.0} results in {:.1} of {:.1} MiB; {:.0} digests\n",
        now.get("remora_connections"),
        1e3 * now.get("remora_follower_lag_seconds"),
        now.get("remora_store_entries"),
        mib("remora_store_bytes"),
        mib("remora_store_max_bytes"),
        now.get("remora_digests"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# TYPE remora_hits counter\nremora_hits_total 100\nremora_misses_total 50\n\
        remora_caching{reason=\"\"} 1\nremora_store_bytes 1048576\nremora_store_max_bytes 4194304\n# EOF\n";

    #[test]
    fn what_happened_in_between_is_shown() {
        let now = BEFORE
            .replace("hits_total 100", "hits_total 400")
            .replace("misses_total 50", "misses_total 150");
        let address = SocketAddr::from(([127, 0, 0, 1], 9307));
        let two_seconds = Duration::from_secs(2);
        let shown = head(address, &Gauges::of(BEFORE), &Gauges::of(&now), two_seconds);
        assert!(shown.contains("caching on, the last 2.0 s"), "{shown}");
        assert!(
            shown.contains("150 hits/s and 50 misses/s: 75.0 % from memory"),
            "{shown}"
        );
        assert!(shown.contains("in 1.0 of 4.0 MiB"), "{shown}");
        assert_eq!(shown.lines().count(), 3);
    }

    #[test]
    fn that_nothing_is_cached_stands_at_the_top_with_its_reason() {
        let off = "remora_caching{reason=\"disabled\"} 0\n";
        let gauges = Gauges::of(off);
        let address = SocketAddr::from(([127, 0, 0, 1], 9307));
        let shown = head(address, &gauges, &gauges, Duration::from_secs(1));
        assert!(shown.contains("caching OFF (disabled)"), "{shown}");
        assert!(shown.contains(": - from memory"), "{shown}");
    }
}
