//! The machine that figures were measured on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A machine. What the system doesn't tell is empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Logical processors that this process may use.
    pub processors: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
}

impl Machine {
    /// The one that this runs on. Source: `proc(5)`.
    pub fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(String::new, |(_, name)| name.trim().to_owned());
        let memory_kib: u64 = read("/proc/meminfo")
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or_default();
        Machine {
            processor,
            processors: u32::try_from(processors()).unwrap_or(u32::MAX),
            memory_bytes: memory_kib << 10,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = match self.processor.as_str() {
            "" => "an unknown processor",
            name => name,
        };
        let (processors, gib) = (self.processors, self.memory_bytes >> 30);
        write!(
            f,
            "{processors} cores of {processor}, {gib} GiB, Linux {}",
            self.kernel
        )
    }
}

/// Logical processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(
            machine.processors > 0 && machine.memory_bytes > 1 << 20,
            "{machine:?}"
        );
        assert!(machine.to_string().ends_with(&machine.kernel));
    }
}
