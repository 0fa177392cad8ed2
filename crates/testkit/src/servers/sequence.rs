//! Numbers in a row, which only MariaDB has built in.

/// A derived table named `numbers` whose column `seq` has the numbers from 1 to `last`, at most
/// 10,000.
pub fn numbers(last: u32) -> String {
    let digits = (1..10).fold("SELECT 0 AS d".to_owned(), |all, digit| {
        format!("{all} UNION ALL SELECT {digit}")
    });
    format!(
        "(SELECT 1 + ones.d + 10 * tens.d + 100 * hundreds.d + 1000 * thousands.d AS seq \
         FROM ({digits}) ones, ({digits}) tens, ({digits}) hundreds, ({digits}) thousands \
         HAVING seq <= {last}) AS numbers"
    )
}
