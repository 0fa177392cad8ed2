//! How busy the processors are, as Linux tells in `/proc/stat`.

/// Time that all processors together have spent since the machine was started, ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Processors {
    idle: u64,
    all: u64,
}

/// The fields of the first line that are idle time: idle, and waiting for a disk.
const IDLE_FIELDS: [usize; 2] = [3, 4];
/// Those that count: user, nice, system, idle, iowait, irq, softirq, steal. What follows is
/// contained in them.
const FIELDS: usize = 8;

impl Processors {
    /// Up to now; `None` where the system doesn't tell.
    pub(crate) fn now() -> Option<Processors> {
        Processors::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Processors> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields = line.split_whitespace().take(FIELDS).map(str::parse);
        let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
        let mut idle = 0;
        for field in IDLE_FIELDS {
            idle += fields.get(field)?;
        }
        Some(Processors {
            idle,
            all: fields.iter().sum(),
        })
    }

    /// The share of the time since `then` in which they had nothing to do, per cent.
    pub(crate) fn idle_percent_since(self, then: Processors) -> u64 {
        let all = self.all.saturating_sub(then.all);
        let idle = self.idle.saturating_sub(then.idle);
        (idle * 100).checked_div(all).unwrap_or(0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_read_from_what_linux_tells() {
        let then = Processors::read("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3\n").unwrap();
        assert_eq!(
            then,
            Processors {
                idle: 850,
                all: 1_000
            }
        );
        let now = Processors::read("cpu  170 0 50 820 60 0 0 0 7 7\n").unwrap();
        assert_eq!(now.idle_percent_since(then), 30);
        assert_eq!(then.idle_percent_since(then), 0);
        assert_eq!(Processors::read("cpu one two"), None);
        assert_eq!(Processors::read(""), None);
    }
}
