//! Temporary tables that statements need for their own work.

use super::{Case, Found, percent};
use crate::report::{Finding, Unit};

/// So many may be written to disk in a second. Each look at the server makes up to three itself.
const ON_DISK_PER_S_MAX: f64 = 5.0;
/// This share of them may be, percent.
const ON_DISK_PERCENT_MAX: f64 = 25.0;

pub(super) fn temporary_tables_on_disk(case: &mut Case<'_>) -> Found {
    let on_disk = case.rate("Created_tmp_disk_tables")?;
    let all = case.rate("Created_tmp_tables")?;
    let share = percent(on_disk, all);
    case.note("temporary tables on disk", share, Unit::Percent);
    if on_disk < ON_DISK_PER_S_MAX || share < ON_DISK_PERCENT_MAX {
        return Ok(None);
    }
    let bytes = case.variable("tmp_table_size")?;
    let other = case.variable("max_heap_table_size")?;
    // The smaller of the two counts.
    let wanted = 2.0 * bytes.min(other);
    let mut settings = vec![
        case.set_bytes("tmp_table_size", wanted, true),
        case.set_bytes("max_heap_table_size", wanted, true),
    ];
    let engine = case
        .reading
        .variables
        .text("internal_tmp_mem_storage_engine");
    if engine == Some("TempTable") {
        // All of them together.
        let ram = case.variable("temptable_max_ram")?;
        settings.push(case.set_bytes("temptable_max_ram", 2.0 * ram, true));
    }
    Ok(Some(Finding {
        meaning: "Statements that sort or group write their rows to disk on the way.".to_owned(),
        remedy: "Find them with EXPLAIN (\"Using temporary\"). An index often makes the table \
                 needless. TEXT and BLOB columns always send it to disk on MariaDB and on MySQL \
                 before 8.0.13; larger limits don't help there. Only new connections get the new \
                 limits."
            .to_owned(),
        settings,
    }))
}
