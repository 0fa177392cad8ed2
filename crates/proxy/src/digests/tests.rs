use std::time::Duration;

use remora_engine::reason::{Bypass, Outcome};
use remora_sql::{Dialect, normalise};

use super::*;

const MISS: Count = Count::Miss {
    took: Duration::from_millis(3),
};

/// A worker of a table, with what belongs to its thread.
struct Client<'d> {
    digests: &'d Digests,
    worker: Arc<WorkerDigests>,
    sketch: Sketch,
    now_ms: u64,
}

impl Client<'_> {
    fn of(digests: &Digests, worker: usize) -> Client<'_> {
        Client {
            digests,
            worker: digests.worker(worker).unwrap(),
            sketch: Sketch::default(),
            now_ms: WINDOW_MS,
        }
    }

    fn label(&mut self, text: &str) -> Label {
        let mut normal = Vec::new();
        let digest = normalise(text.as_bytes(), Dialect::default(), &mut normal);
        self.digests
            .label(digest, &normal, &mut self.sketch, self.now_ms)
    }

    fn misses(&mut self, text: &str) -> Label {
        let label = self.label(text);
        self.worker.count(label, MISS);
        label
    }
}

fn of<'r>(report: &'r [DigestReport], text: &str) -> Option<&'r DigestReport> {
    report
        .iter()
        .find(|digest| digest.text.as_deref() == Some(text))
}

#[test]
fn what_workers_count_of_a_digest_is_added_up() {
    let digests = Digests::new(2, 10);
    let (mut one, mut two) = (Client::of(&digests, 0), Client::of(&digests, 1));
    let label = one.misses("SELECT a FROM t WHERE id = 1");
    assert_eq!(two.misses("select a from t where id=2"), label);
    let hit = Count::Hit {
        bytes: 100,
        took: Duration::from_micros(3),
    };
    two.worker.count(label, hit);
    one.worker.count(label, Count::Outcome(Outcome::Fill));
    let refused = Count::Outcome(Outcome::Bypass(Bypass::TableLoading));
    one.worker.count(label, refused);
    two.worker.count(label, refused);
    let report = digests.report();
    let digest = of(&report, "SELECT a FROM t WHERE id = ?").unwrap();
    assert_eq!((digest.calls, digest.hits, digest.misses), (3, 1, 2));
    assert_eq!((digest.fills, digest.hit_bytes), (1, 100));
    assert_eq!((digest.miss_us, digest.hit_us), (6_000, 3));
    assert_eq!(digest.saved_us, 2_997);
    assert_eq!(
        (digest.hit_p99_us, digest.miss_p99_us),
        (Some(4), Some(4_096))
    );
    assert_eq!(digest.refusals.len(), 1);
    assert_eq!(digest.refusals[0].count, 2);
}

#[test]
fn a_digest_that_is_asked_for_gets_the_place_of_one_that_is_not() {
    let digests = Digests::new(1, 4);
    let mut client = Client::of(&digests, 0);
    let busy = ["SELECT a FROM t", "SELECT b FROM t", "SELECT c FROM t"];
    let idle = client.misses("SELECT idle FROM t");
    let ask_busily = |client: &mut Client<'_>| {
        for text in busy.repeat(20) {
            client.misses(text);
        }
    };
    ask_busily(&mut client);
    // The first window tells nothing yet of one that was asked for once in it.
    client.now_ms += WINDOW_MS;
    assert_eq!(client.misses("SELECT new FROM t"), Label::OTHERS);
    ask_busily(&mut client);
    client.now_ms += WINDOW_MS;
    client.misses("SELECT new FROM t");
    let report = digests.report();
    assert!(of(&report, "SELECT new FROM t").is_some(), "{report:#?}");
    assert!(of(&report, "SELECT idle FROM t").is_none(), "{report:#?}");
    for text in busy {
        assert_eq!(of(&report, text).unwrap().misses, 40, "{text}");
    }
    // A result that the idle one had filled says nothing of who has its place.
    let others = digests.report().last().unwrap().misses;
    client.worker.count(idle, MISS);
    assert_eq!(digests.report().last().unwrap().misses, others + 1);
    assert_eq!(digests.len(), 4);
}

#[test]
fn many_digests_have_no_more_places_than_there_are() {
    let digests = Digests::new(1, 100);
    let mut client = Client::of(&digests, 0);
    let calls = 20_000;
    for number in 0..calls {
        client.now_ms += 10;
        client.misses(&format!("SELECT c{number} FROM t"));
    }
    assert_eq!(digests.len(), 100);
    let report = digests.report();
    assert_eq!(report.len(), 101);
    // Those that had a place and left it are in nobody's count any more.
    let counted: u64 = report.iter().map(|digest| digest.calls).sum();
    assert!(counted <= calls && counted > calls / 2, "{counted}");
}

#[test]
fn what_was_counted_between_two_reports_is_told() {
    let digests = Digests::new(1, 4);
    let mut client = Client::of(&digests, 0);
    client.misses("SELECT a FROM t");
    let before = digests.report();
    client.misses("SELECT a FROM t");
    client.misses("SELECT new FROM t");
    let lately = since(&digests.report(), &before);
    assert_eq!(of(&lately, "SELECT a FROM t").unwrap().calls, 1);
    assert_eq!(of(&lately, "SELECT new FROM t").unwrap().calls, 1);
    let nothing = since(&before, &before);
    assert!(
        nothing.iter().all(|digest| digest.calls == 0),
        "{nothing:#?}"
    );
}

#[test]
fn without_places_all_are_counted_together() {
    let digests = Digests::new(1, 0);
    let mut client = Client::of(&digests, 0);
    assert_eq!(client.misses("SELECT a FROM t"), Label::OTHERS);
    let report = digests.report();
    assert_eq!((report.len(), report[0].misses), (1, 1));
}

#[test]
fn more_reasons_than_have_room_are_counted_together() {
    let digests = Digests::new(1, 1);
    let mut client = Client::of(&digests, 0);
    let label = client.misses("SELECT a FROM t");
    let reasons: Vec<Outcome> = Outcome::all()
        .iter()
        .copied()
        .filter(|outcome| matches!(outcome, Outcome::Bypass(_)))
        .take(6)
        .collect();
    for outcome in &reasons {
        client.worker.count(label, Count::Outcome(*outcome));
    }
    let report = digests.report();
    assert_eq!(report[0].refusals.len(), 4);
    assert_eq!(report[0].refusals_of_other_reasons, 2);
}

proptest::proptest! {
    #[test]
    fn a_sketch_never_says_too_few(digests in proptest::collection::vec(0_u64..50, 1..500)) {
        let mut sketch = Sketch::default();
        let mut exact = std::collections::HashMap::new();
        for number in digests {
            let digest = Digest::from_number(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let count = exact.entry(number).or_insert(0_u64);
            *count += 1;
            proptest::prop_assert!(sketch.add(digest, 0) >= *count);
        }
    }
}
