//! The ways in which money is moved. None makes or loses any.

use remora_testkit::client::{Client, ClientError};
use remora_testkit::load::Random;

use super::accounts::{Account, Bank, Table};

const TABLES: [Table; 3] = [Table::Checking, Table::Savings, Table::Pockets];
/// The most that is moved at a time.
const AMOUNT_MAX: usize = 100;
/// One transfer in so many is rolled back.
const ROLLBACK: usize = 8;

#[derive(Debug, Clone, Copy)]
enum Form {
    /// Two statements in a transaction.
    Two,
    /// One statement that changes two rows of a table.
    One,
    /// One statement that changes rows of two tables.
    TwoTables,
    /// A pocket is emptied and closed.
    Close,
    /// A pocket is filled, and opened if there is none.
    Open,
    /// Two owners change places, and so do the contents of their pockets.
    Swap,
}

const FORMS: [Form; 7] = [
    Form::Two,
    Form::Two,
    Form::One,
    Form::TwoTables,
    Form::Close,
    Form::Open,
    Form::Swap,
];

/// Adds to what an account holds, if there is one.
pub(super) fn add(client: &mut Client, account: Account, amount: i64) -> Result<(), ClientError> {
    let text = format!(
        "UPDATE {} SET balance = balance + {amount} WHERE {}",
        account.table.name(),
        account.condition()
    );
    client.query(&text).map(drop)
}

/// What an account holds now, whatever the snapshot shows, and locks it. None: it is closed.
pub(super) fn lock(client: &mut Client, account: Account) -> Result<Option<i64>, ClientError> {
    let text = format!(
        "SELECT balance FROM {} WHERE {} FOR UPDATE",
        account.table.name(),
        account.condition()
    );
    let balance = client.query_value(&text)?;
    Ok(balance.map(|text| text.parse().expect("a balance is a number")))
}

pub(super) fn amount(random: &mut Random) -> i64 {
    i64::try_from(1 + random.below(AMOUNT_MAX)).unwrap_or(1)
}

/// Two accounts that can't be closed, in the order of locks.
pub(super) fn two_that_stay(bank: Bank, random: &mut Random) -> [Account; 2] {
    loop {
        let mut one = || bank.account(TABLES[random.below(2)], random);
        let mut two = [one(), one()];
        two.sort_unstable();
        if two[0] != two[1] {
            return two;
        }
    }
}

/// Moves money once.
///
/// # Errors
/// The transaction may have been rolled back; it is open no more only if it was.
pub(super) fn transfer(
    client: &mut Client,
    bank: Bank,
    random: &mut Random,
) -> Result<(), ClientError> {
    let amount = amount(random);
    match FORMS[random.below(FORMS.len())] {
        Form::One => {
            let table = TABLES[random.below(2)];
            let (from, to) = (bank.account(table, random), bank.account(table, random));
            if from == to {
                return Ok(());
            }
            let text = format!(
                "UPDATE {} SET balance = balance + IF(id = {}, {amount}, -{amount}) \
                 WHERE id IN ({}, {})",
                table.name(),
                to.id,
                from.id,
                to.id
            );
            client.query(&text).map(drop)
        }
        Form::TwoTables => {
            let from = bank.account(Table::Checking, random);
            let to = bank.account(Table::Savings, random);
            let text = format!(
                "UPDATE checking c, savings s SET c.balance = c.balance - {amount}, \
                 s.balance = s.balance + {amount} WHERE c.id = {} AND s.id = {}",
                from.id, to.id
            );
            client.query(&text).map(drop)
        }
        form => {
            client.query("BEGIN")?;
            match form {
                Form::Close => close(client, bank, random)?,
                Form::Open => open(client, bank, amount, random)?,
                Form::Swap => swap(client, bank, random)?,
                _ => {
                    let [from, to] = two_that_stay(bank, random);
                    add(client, from, -amount)?;
                    add(client, to, amount)?;
                }
            }
            let is_kept = random.below(ROLLBACK) > 0;
            let end = if is_kept { "COMMIT" } else { "ROLLBACK" };
            client.query(end).map(drop)
        }
    }
}

fn close(client: &mut Client, bank: Bank, random: &mut Random) -> Result<(), ClientError> {
    let to = bank.account(Table::Checking, random);
    let pocket = bank.account(Table::Pockets, random);
    lock(client, to)?;
    let Some(balance) = lock(client, pocket)? else {
        return Ok(());
    };
    client.query(&format!("DELETE FROM pockets WHERE {}", pocket.condition()))?;
    add(client, to, balance)
}

fn open(
    client: &mut Client,
    bank: Bank,
    amount: i64,
    random: &mut Random,
) -> Result<(), ClientError> {
    let from = bank.account(Table::Checking, random);
    add(client, from, -amount)?;
    let pocket = bank.account(Table::Pockets, random);
    let key: Vec<String> = pocket.key().iter().map(ToString::to_string).collect();
    let text = format!(
        "INSERT INTO pockets VALUES ({}, {amount}) \
         ON DUPLICATE KEY UPDATE balance = balance + {amount}",
        key.join(", ")
    );
    client.query(&text).map(drop)
}

fn swap(client: &mut Client, bank: Bank, random: &mut Random) -> Result<(), ClientError> {
    const NOBODY: i64 = -1;
    let mut owner = || i64::try_from(random.below(bank.owners())).unwrap_or_default();
    let (one, other) = (owner(), owner());
    if one == other {
        return Ok(());
    }
    for (from, to) in [(one, NOBODY), (other, one), (NOBODY, other)] {
        client.query(&format!(
            "UPDATE owners SET owner = {to} WHERE owner = {from}"
        ))?;
    }
    Ok(())
}
