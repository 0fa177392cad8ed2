//! sysbench's own tables, `sbtest1` and on, as several experiments have them: they share what was
//! filled once.

use super::plan::Data;

/// How many and how large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sbtest {
    /// How many.
    pub(super) tables: u32,
    /// Rows of each.
    pub(super) rows: u32,
    /// Memory in which all of them have room, MiB.
    pub(super) buffer_pool_mib: u32,
}

impl Sbtest {
    /// To see that everything works.
    pub(super) const TINY: Sbtest = Sbtest {
        tables: 1,
        rows: 1_000,
        buffer_pool_mib: 64,
    };
    /// For a quick run.
    pub(super) const QUICK: Sbtest = Sbtest {
        tables: 4,
        rows: 50_000,
        buffer_pool_mib: 256,
    };
    /// For a machine of a few processors.
    pub(super) const NORMAL: Sbtest = Sbtest {
        tables: 4,
        rows: 250_000,
        buffer_pool_mib: 1_024,
    };

    /// What the servers hold.
    pub(super) fn data(self) -> Data {
        let Sbtest { tables, rows, .. } = self;
        Data::Sysbench { tables, rows }
    }

    /// What lets a server hold all of it in memory.
    pub(super) fn server_option(self) -> String {
        format!("--innodb-buffer-pool-size={}M", self.buffer_pool_mib)
    }
}
