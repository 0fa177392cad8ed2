//! What each list held one after the other, and what single reads show to be wrong.

use std::collections::{HashMap, HashSet};

use super::{Anomaly, Element, Key, Kind, Step, Transaction, describe};

/// Who appended an element.
#[derive(Debug, Clone, Copy)]
struct Author {
    transaction: usize,
    key: Key,
    /// Whether it appended nothing to that list afterwards.
    is_last: bool,
}

/// A read of a list to which the transaction had not appended: it shows the snapshot.
#[derive(Debug, Clone, Copy)]
pub(super) struct SnapshotRead {
    pub(super) transaction: usize,
    pub(super) key: Key,
    /// How many elements the list had.
    pub(super) length: usize,
}

/// All lists of a history.
#[derive(Debug, Default)]
pub(super) struct Lists {
    authors: HashMap<Element, Author>,
    /// The longest that was read of each key.
    longest: HashMap<Key, Vec<Element>>,
    /// The transactions that were committed, and whose appends to a key nobody read.
    unseen: HashMap<Key, Vec<usize>>,
    /// Those that fit the lists.
    pub(super) reads: Vec<SnapshotRead>,
}

impl Lists {
    /// Finds out, and what is wrong with single reads on the way.
    pub(super) fn of(history: &[Transaction]) -> (Lists, Vec<Anomaly>) {
        let mut lists = Lists::default();
        let mut anomalies = Vec::new();
        lists.find_authors(history);
        for (number, transaction) in history.iter().enumerate() {
            let found = check_own(transaction).map(|(kind, what)| Anomaly {
                kind,
                words: format!("{what}\n{}", describe(history, number)),
            });
            anomalies.extend(found);
            anomalies.extend(lists.check_elements(history, number));
            lists.find_longest(transaction, number);
        }
        for number in 0..history.len() {
            anomalies.extend(lists.find_reads(history, number));
        }
        lists.find_unseen(history);
        (lists, anomalies)
    }

    /// The keys of which something was read.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.longest.keys().copied()
    }

    /// The transactions that made a list what it last was, one for each element; none for an
    /// element that isn't right.
    pub(super) fn authors(
        &self,
        key: Key,
        history: &[Transaction],
    ) -> impl Iterator<Item = Option<usize>> {
        let elements = self.longest.get(&key).into_iter().flatten();
        elements.map(|element| {
            let author = self.authors.get(element)?.transaction;
            history[author].commit.map(|_| author)
        })
    }

    /// The committed transactions whose appends to this list nobody read.
    pub(super) fn unseen(&self, key: Key) -> &[usize] {
        self.unseen.get(&key).map_or(&[], Vec::as_slice)
    }

    fn find_authors(&mut self, history: &[Transaction]) {
        for (number, transaction) in history.iter().enumerate() {
            let mut appended = HashSet::new();
            // From the end: the first that is met is the last.
            for step in transaction.steps.iter().rev() {
                if let Step::Append(key, element) = step {
                    let author = Author {
                        transaction: number,
                        key: *key,
                        is_last: appended.insert(*key),
                    };
                    let other = self.authors.insert(*element, author);
                    assert!(other.is_none(), "{element} is appended twice");
                }
            }
        }
    }

    /// Whether all that a transaction read may be seen by it at all.
    fn check_elements(&self, history: &[Transaction], number: usize) -> Vec<Anomaly> {
        let mut anomalies = Vec::new();
        for (key, list) in reads(&history[number]) {
            let mut seen = HashSet::new();
            for (at, element) in list.iter().enumerate() {
                let is_end = at + 1 == list.len();
                let kind = if seen.insert(element) {
                    self.check_element(history, number, key, *element, is_end)
                } else {
                    Some(Kind::Twice)
                };
                anomalies.extend(kind.map(|kind| Anomaly {
                    kind,
                    words: format!(
                        "{element} in list {key}\n{}{}",
                        describe(history, number),
                        self.describe_author(history, *element)
                    ),
                }));
            }
        }
        anomalies
    }

    fn check_element(
        &self,
        history: &[Transaction],
        reader: usize,
        key: Key,
        element: Element,
        is_end: bool,
    ) -> Option<Kind> {
        match self.authors.get(&element) {
            None => Some(Kind::NeverWritten),
            Some(author) if author.key != key => Some(Kind::NeverWritten),
            Some(author) if author.transaction == reader => None,
            Some(author) if history[author.transaction].commit.is_none() => Some(Kind::AbortedRead),
            Some(author) if is_end && !author.is_last => Some(Kind::IntermediateRead),
            Some(_) => None,
        }
    }

    fn describe_author(&self, history: &[Transaction], element: Element) -> String {
        let author = self.authors.get(&element);
        author.map_or_else(String::new, |author| {
            format!("\n{}", describe(history, author.transaction))
        })
    }

    /// What a transaction has appended itself and then rolled back was never in the list.
    fn committed<'l>(
        &self,
        list: &'l [Element],
        transaction: &Transaction,
        number: usize,
    ) -> &'l [Element] {
        if transaction.commit.is_some() {
            return list;
        }
        let is_own = |element| {
            let author = self.authors.get(element);
            author.is_some_and(|author| author.transaction == number)
        };
        let own = list.iter().rev().take_while(|element| is_own(*element));
        &list[..list.len() - own.count()]
    }

    fn find_longest(&mut self, transaction: &Transaction, number: usize) {
        for (key, list) in reads(transaction) {
            let list = self.committed(list, transaction, number).to_vec();
            let longest = self.longest.entry(key).or_default();
            if list.len() > longest.len() {
                *longest = list;
            }
        }
    }

    /// Notes the reads that show the snapshot, and tells of those that fit no order.
    fn find_reads(&mut self, history: &[Transaction], number: usize) -> Vec<Anomaly> {
        let transaction = &history[number];
        let mut appended = HashSet::new();
        let mut anomalies = Vec::new();
        for step in &transaction.steps {
            let (key, list) = match step {
                Step::Append(key, _) => {
                    appended.insert(*key);
                    continue;
                }
                Step::Read(key, list) => (*key, list),
            };
            let longest = &self.longest[&key];
            if !longest.starts_with(self.committed(list, transaction, number)) {
                anomalies.push(Anomaly {
                    kind: Kind::IncompatibleOrder,
                    words: format!(
                        "list {key} was also {longest:?}\n{}",
                        describe(history, number)
                    ),
                });
            } else if !appended.contains(&key) {
                self.reads.push(SnapshotRead {
                    transaction: number,
                    key,
                    length: list.len(),
                });
            }
        }
        anomalies
    }

    fn find_unseen(&mut self, history: &[Transaction]) {
        let seen: HashSet<Element> = self.longest.values().flatten().copied().collect();
        for (element, author) in &self.authors {
            if !seen.contains(element) && history[author.transaction].commit.is_some() {
                let unseen = self.unseen.entry(author.key).or_default();
                unseen.push(author.transaction);
            }
        }
    }
}

fn reads(transaction: &Transaction) -> impl Iterator<Item = (Key, &Vec<Element>)> {
    transaction.steps.iter().filter_map(|step| match step {
        Step::Read(key, list) => Some((*key, list)),
        Step::Append(..) => None,
    })
}

/// What a transaction knows of one list.
#[derive(Default)]
struct Known {
    /// What it last read, and what it has appended since.
    list: Option<Vec<Element>>,
    /// All that it has appended.
    own: Vec<Element>,
    /// Whether it read before its first append, and not since: others may have appended between.
    is_of_snapshot: bool,
}

/// Whether a transaction saw the same each time, and what it had itself appended.
fn check_own(transaction: &Transaction) -> Option<(Kind, String)> {
    let mut known: HashMap<Key, Known> = HashMap::new();
    for step in &transaction.steps {
        match step {
            Step::Append(key, element) => {
                let known = known.entry(*key).or_default();
                known.own.push(*element);
                known.list.iter_mut().for_each(|list| list.push(*element));
            }
            Step::Read(key, list) => {
                let known = known.entry(*key).or_default();
                if !list.ends_with(&known.own) {
                    let what = format!("{list:?} of key {key}");
                    return Some((Kind::OwnAppendMissing, what));
                }
                let is_free = known.is_of_snapshot && !known.own.is_empty();
                if !is_free && known.list.as_ref().is_some_and(|before| before != list) {
                    let what = format!("{list:?} of key {key}");
                    return Some((Kind::UnrepeatableRead, what));
                }
                known.is_of_snapshot = known.own.is_empty();
                known.list = Some(list.clone());
            }
        }
    }
    None
}
