//! The accounts of the bank, and the statements that read them.

use std::collections::BTreeSet;

use remora_testkit::client::{Client, ClientError};
use remora_testkit::load::Random;
use remora_testkit::mixed::asking::{Asking, filled_in};
use remora_testkit::servers::Kind;
use remora_wire::rows::Row;

/// What each account holds at first.
const BALANCE: i64 = 1_000;
/// Of accounts that are read one by one, at most so many are. The others are read by a list.
const ALONE_MAX: usize = 8;
/// Pockets of one owner.
const POCKETS_EACH: usize = 4;
/// A chunk is read in its own way, but once in so many times in any other.
const ANY_FORM: usize = 5;

/// Where an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    /// Known by its primary key.
    Checking,
    /// With a branch, which has an index. A trigger adds each branch up in another table.
    Savings,
    /// With a primary key of two columns, of which one follows the owner's key (`ON UPDATE
    /// CASCADE`). A pocket can be closed, and isn't there then.
    Pockets,
}

/// An account. Locks are taken in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Account {
    pub(super) table: Table,
    pub(super) id: usize,
}

impl Account {
    /// The condition that names it.
    pub(super) fn condition(self) -> String {
        filled_in(self.condition_form(), &self.key())
    }

    fn condition_form(self) -> &'static str {
        match self.table {
            Table::Checking | Table::Savings => "id = ?",
            Table::Pockets => "owner = ? AND number = ?",
        }
    }

    /// Its primary key.
    pub(super) fn key(self) -> Vec<i64> {
        match self.table {
            Table::Checking | Table::Savings => vec![number(self.id)],
            Table::Pockets => vec![
                number(self.id / POCKETS_EACH),
                number(self.id % POCKETS_EACH),
            ],
        }
    }

    /// Reads what it holds.
    pub(super) fn question(self) -> Question {
        let form = format!(
            "SELECT balance FROM {} WHERE {}",
            self.table.name(),
            self.condition_form()
        );
        Question {
            text: form,
            numbers: self.key(),
        }
    }
}

impl Table {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Checking => "checking",
            Table::Savings => "savings",
            Table::Pockets => "pockets",
        }
    }
}

/// A statement that reads balances only, with a number for each `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    text: String,
    numbers: Vec<i64>,
}

impl Question {
    /// Asks; gives all that it read together.
    pub(super) fn ask(&self, client: &mut Client, asking: &mut Asking) -> Result<i64, ClientError> {
        let rows = asking.ask_with(client, &self.text, &self.numbers)?;
        Ok(rows.iter().map(sum_of).sum())
    }

    /// A text that asks it, and has other statements around it.
    pub(super) fn among_others(&self) -> String {
        let text = filled_in(&self.text, &self.numbers);
        format!("DO 1; {text}; SET @a = 1")
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&filled_in(&self.text, &self.numbers))
    }
}

/// The fields of a row together. A sum of no rows is NULL.
fn sum_of(row: &Row) -> i64 {
    let number = |field: &Option<Vec<u8>>| {
        let text = field.as_deref().map(String::from_utf8_lossy);
        text.map_or(0, |text| text.parse().expect("a balance is a number"))
    };
    row.iter().map(number).sum()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).expect("there are few accounts")
}

/// How a chunk of one table is read.
#[derive(Debug, Clone, Copy)]
enum Form {
    OneByOne,
    List,
    Range,
    Sum,
    /// By what only this table has: a view, an index, an owner.
    Own,
    /// Added up by the trigger.
    Total,
}

const FORMS: [Form; 6] = [
    Form::List,
    Form::Range,
    Form::Sum,
    Form::OneByOne,
    Form::Own,
    Form::Total,
];

const TABLES: [&str; 7] = [
    "CREATE TABLE checking (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE VIEW seen AS SELECT id AS number, balance AS amount FROM checking",
    "CREATE TABLE savings (id INT PRIMARY KEY, branch INT NOT NULL, balance BIGINT NOT NULL, \
     KEY (branch)) ENGINE=InnoDB",
    "CREATE TABLE branches (branch INT PRIMARY KEY, total BIGINT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE owners (owner INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE pockets (owner INT, number INT, balance BIGINT NOT NULL, \
     PRIMARY KEY (owner, number), FOREIGN KEY (owner) REFERENCES owners (owner) \
     ON UPDATE CASCADE) ENGINE=InnoDB",
    "CREATE TRIGGER adds_up AFTER UPDATE ON savings FOR EACH ROW \
     UPDATE branches SET total = total + NEW.balance - OLD.balance WHERE branch = NEW.branch",
];

/// What can be done to the tables again and again, while they are read and written.
const ALTERATIONS: [&str; 8] = [
    "ALTER TABLE checking COMMENT 'altered'",
    "ALTER TABLE savings ADD COLUMN more INT",
    "ALTER TABLE checking ADD KEY by_balance (balance)",
    "ALTER TABLE savings DROP COLUMN more",
    "CREATE OR REPLACE VIEW seen AS SELECT id AS number, balance + 0 AS amount FROM checking",
    "ALTER TABLE checking DROP KEY by_balance",
    REBUILD,
    "CREATE OR REPLACE VIEW seen AS SELECT id AS number, balance AS amount FROM checking",
];

const REBUILD: &str = "ALTER TABLE pockets ENGINE = InnoDB";

/// Those of [`ALTERATIONS`] that the server itself stands. With the rebuild MariaDB loses rows from
/// snapshots, or shows some twice, if keys of the table change meanwhile: without Remora, too.
pub(super) fn alterations(kind: Kind) -> impl Iterator<Item = &'static str> {
    let is_mariadb = matches!(kind, Kind::MariaDb1011 | Kind::MariaDb114);
    ALTERATIONS
        .into_iter()
        .filter(move |&text| !(is_mariadb && text == REBUILD))
}

/// How many accounts there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bank {
    /// Accounts of a table that are read together.
    chunk: usize,
    /// Chunks of checking accounts, of savings, and twice those of pockets.
    chunks: usize,
}

impl Bank {
    /// One with so many accounts, or a few less, of which so many are read together.
    pub(super) fn new(accounts: usize, chunk: usize) -> Bank {
        assert_eq!(chunk % POCKETS_EACH, 0, "an owner is in one chunk");
        let chunks = accounts / (chunk * 5) * 2;
        Bank { chunk, chunks }
    }

    /// About how many statements a sum takes, for the pace of the writers. More accounts in a
    /// result count as more statements: each change outdates more of what is in memory.
    pub(super) fn statements(self) -> u64 {
        let weight = 1 + self.chunk / 50;
        (self.accounts() / self.chunk * ALONE_MAX * weight) as u64
    }

    /// How many accounts there are.
    pub(super) fn accounts(self) -> usize {
        let tables = [Table::Checking, Table::Savings, Table::Pockets];
        tables.iter().map(|table| self.size(*table)).sum()
    }

    fn size(self, table: Table) -> usize {
        match table {
            Table::Checking | Table::Savings => self.chunks * self.chunk,
            Table::Pockets => self.chunks / 2 * self.chunk,
        }
    }

    /// What they always hold together.
    pub(super) fn total(self) -> i64 {
        number(self.accounts()) * BALANCE
    }

    /// What the tables hold now, as words: whether money is lost for good.
    pub(super) fn told_now(client: &mut Client) -> Result<String, ClientError> {
        let parts = [
            "(SELECT SUM(balance) FROM checking)",
            "(SELECT SUM(balance) FROM savings)",
            "(SELECT SUM(balance) FROM savings FORCE INDEX (branch) WHERE branch >= 0)",
            "(SELECT SUM(total) FROM branches)",
            "(SELECT SUM(balance) FROM pockets)",
        ];
        let text = format!("SELECT CONCAT_WS(', ', {})", parts.join(", "));
        let told = client.query_value(&text)?.unwrap_or_default();
        Ok(format!(
            "checking, savings, the same by branches, their totals, pockets: {told}"
        ))
    }

    /// One of a table's accounts.
    pub(super) fn account(self, table: Table, random: &mut Random) -> Account {
        Account {
            table,
            id: random.below(self.size(table)),
        }
    }

    /// Makes the tables.
    pub(super) fn create(self, client: &mut Client) -> Result<(), ClientError> {
        for text in TABLES {
            client.query(text)?;
        }
        let total = number(self.chunk) * BALANCE;
        fill(client, "branches", self.chunks, |branch| {
            format!("({branch}, {total})")
        })?;
        let row = |owner| format!("({owner})");
        fill(client, "owners", self.owners(), row)?;
        for table in [Table::Checking, Table::Savings, Table::Pockets] {
            let row = |id: usize| match table {
                Table::Checking => format!("({id}, {BALANCE})"),
                Table::Savings => format!("({id}, {}, {BALANCE})", id / self.chunk),
                Table::Pockets => {
                    let (owner, pocket) = (id / POCKETS_EACH, id % POCKETS_EACH);
                    format!("({owner}, {pocket}, {BALANCE})")
                }
            };
            fill(client, table.name(), self.size(table), row)?;
        }
        Ok(())
    }

    /// How many have pockets, or could.
    pub(super) fn owners(self) -> usize {
        self.size(Table::Pockets) / POCKETS_EACH
    }

    /// Statements that read each account once, in any order. Who has written himself can't go by
    /// totals: the row that he has changed shows what others have changed in the branch.
    pub(super) fn all(self, goes_by_totals: bool, random: &mut Random) -> Vec<Question> {
        let mut all = Vec::new();
        let forms = FORMS.len() - usize::from(!goes_by_totals);
        for chunk in 0..self.chunks {
            // In some chunks both tables are read by one statement.
            if choose(forms + 1, chunk, random) == forms {
                all.push(self.joined(chunk));
            } else {
                for table in [Table::Checking, Table::Savings] {
                    let form = FORMS[choose(forms, chunk, random)];
                    all.extend(self.questions(table, chunk, form));
                }
            }
        }
        for chunk in 0..self.chunks / 2 {
            let form = FORMS[choose(forms, chunk, random)];
            all.extend(self.questions(Table::Pockets, chunk, form));
        }
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all
    }

    fn joined(self, chunk: usize) -> Question {
        let first = number(chunk * self.chunk);
        Question {
            text: "SELECT c.balance, s.balance FROM checking c JOIN savings s ON s.id = c.id \
                   WHERE c.id BETWEEN ? AND ?"
                .to_owned(),
            numbers: vec![first, first + number(self.chunk) - 1],
        }
    }

    /// The statements that read a chunk of a table.
    fn questions(self, table: Table, chunk: usize, form: Form) -> Vec<Question> {
        let ids = chunk * self.chunk..(chunk + 1) * self.chunk;
        // The first column of the primary key.
        let (column, first, last) = match table {
            Table::Checking | Table::Savings => ("id", ids.start, ids.end - 1),
            Table::Pockets => (
                "owner",
                ids.start / POCKETS_EACH,
                (ids.end - 1) / POCKETS_EACH,
            ),
        };
        let name = table.name();
        let bounds = vec![number(first), number(last)];
        let list = |numbers: Vec<i64>| {
            let marks = vec!["?"; numbers.len()].join(", ");
            let text = format!("SELECT balance FROM {name} WHERE {column} IN ({marks})");
            Question { text, numbers }
        };
        let one = |text: String, numbers| vec![Question { text, numbers }];
        match (form, table) {
            (Form::OneByOne, _) => {
                let alone = ids.clone().take(ALONE_MAX);
                let mut all: Vec<_> = alone.map(|id| Account { table, id }.question()).collect();
                let others = ids.skip(ALONE_MAX).map(|id| Account { table, id }.key()[0]);
                let others: BTreeSet<_> = others.collect();
                if !others.is_empty() {
                    all.push(list(others.into_iter().collect()));
                }
                all
            }
            (Form::List, _) => vec![list((first..=last).map(number).collect())],
            (Form::Own, Table::Checking) => {
                let text = "SELECT amount FROM seen WHERE number BETWEEN ? AND ?";
                one(text.to_owned(), bounds)
            }
            (Form::Own, Table::Savings) => {
                let text = "SELECT SUM(balance) FROM savings WHERE branch = ?";
                one(text.to_owned(), vec![number(chunk)])
            }
            (Form::Own, Table::Pockets) => {
                let marks = vec!["?"; last - first + 1].join(", ");
                let text = format!(
                    "SELECT p.balance FROM owners o JOIN pockets p ON p.owner = o.owner \
                     WHERE o.owner IN ({marks})"
                );
                one(text, (first..=last).map(number).collect())
            }
            (Form::Total, Table::Savings) => {
                let text = "SELECT total FROM branches WHERE branch = ?";
                one(text.to_owned(), vec![number(chunk)])
            }
            (Form::Sum | Form::Total, _) => {
                let text =
                    format!("SELECT SUM(balance) FROM {name} WHERE {column} BETWEEN ? AND ?");
                one(text, bounds)
            }
            (Form::Range, _) => {
                let text = format!(
                    "SELECT balance FROM {name} WHERE {column} BETWEEN ? AND ? ORDER BY {column}"
                );
                one(text, bounds)
            }
        }
    }
}

/// Mostly the same for a chunk, so that texts repeat.
fn choose(bound: usize, chunk: usize, random: &mut Random) -> usize {
    if random.below(ANY_FORM) == 0 {
        random.below(bound)
    } else {
        chunk % bound
    }
}

fn fill(
    client: &mut Client,
    table: &str,
    rows: usize,
    row: impl Fn(usize) -> String,
) -> Result<(), ClientError> {
    let rows: Vec<_> = (0..rows).map(row).collect();
    let text = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
    client.query(&text).map(drop)
}
