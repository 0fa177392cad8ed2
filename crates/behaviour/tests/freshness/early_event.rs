//! The event that comes before its rows: what is read in between is not kept.
//!
//! The server's commits are held back ([`LateRows`]): each is in the log and at Remora's follower,
//! and its rows are invisible, for as long as the test wants.

use std::time::{Duration, Instant};

use remora_cache::{BrokenRules, Position};
use remora_testkit::client::{Client, ConnectOptions};
use remora_testkit::late_rows::LateRows;
use remora_testkit::process::wait_for;
use remora_testkit::proxies::{InProcessRemora, RemoraOptions};
use remora_testkit::semisync::Acknowledge;
use remora_testkit::servers::{Kind, Server, ServerOptions, numbers};

const READ: &str = "SELECT value FROM counters WHERE id = 1";
const SUM: &str = "SELECT SUM(value) FROM counters";
const PATIENCE: Duration = remora_testkit::process::PATIENCE;
/// So many reads are sent between the event and its rows.
const READS_BETWEEN: usize = 50;

struct World {
    // Dropped in this order: everybody is let go first.
    late: LateRows,
    remora: InProcessRemora,
    server: Server,
}

impl World {
    /// `None` where commits can't be held back.
    fn new(broken: BrokenRules) -> Option<World> {
        let kind = Kind::from_environment().unwrap();
        if kind.skips(
            !LateRows::are_possible(kind),
            "it can't hold commits back between their event and their rows",
        ) {
            return None;
        }
        let server = Server::start(ServerOptions::default()).unwrap();
        server
            .execute([
                "CREATE TABLE counters (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB",
                "INSERT INTO counters VALUES (1, 1), (2, 10)",
            ])
            .unwrap();
        let options = RemoraOptions::following();
        let remora = InProcessRemora::start_broken(&server, &options, broken).unwrap();
        let late = LateRows::begin(&server, Acknowledge::WhenTold).unwrap();
        Some(World {
            late,
            remora,
            server,
        })
    }

    fn through(&self) -> ConnectOptions {
        self.server.app().at(self.remora.address())
    }

    fn applied(&self) -> Position {
        self.remora.app().unwrap().shared().timeline.applied()
    }

    fn visible(&self) -> Position {
        self.remora.app().unwrap().shared().timeline.visible()
    }

    fn hits(&self) -> f64 {
        self.remora.metrics().unwrap().sum("remora_hits_total")
    }

    /// A commit that changes another row than [`READ`]'s, acknowledged at once.
    fn commit_elsewhere(&mut self, root: &mut Client) {
        self.late
            .wait_for(Acknowledge::After(Duration::ZERO))
            .unwrap();
        root.query("UPDATE lab.counters SET value = value + 1 WHERE id = 2")
            .unwrap();
    }

    /// Asks until an answer comes from memory; gives it.
    fn wait_for_hit(&self, client: &mut Client, text: &str) -> String {
        wait_for("a hit", PATIENCE, || {
            let before = self.hits();
            let value = client.query_value(text)?.unwrap();
            Ok((self.hits() > before).then_some(value))
        })
        .unwrap()
    }

    /// Has `writer` send an update. Returns when its event has been applied and its rows are still
    /// invisible; calls `between` then; lets the commit go and waits for the writer's answer. Where
    /// there is a limit to that, it may pass before.
    fn write_slowly<T>(&self, writer: &ConnectOptions, between: impl FnOnce() -> T) -> T {
        let before = self.applied();
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut client = writer.connect().unwrap();
                client
                    .query("UPDATE counters SET value = value + 1 WHERE id = 1")
                    .map(drop)
            });
            self.late.wait_until_held().unwrap();
            wait_for("the event at the follower", PATIENCE, || {
                Ok((self.applied() > before).then_some(()))
            })
            .unwrap();
            let is_held = || self.late.limit().is_some() || !writing.is_finished();
            assert!(is_held());
            let seen = between();
            assert!(is_held());
            self.late.let_go().unwrap();
            writing.join().unwrap().unwrap();
            seen
        })
    }

    /// Rounds, numbered from 0, until five had reads while the rows were invisible.
    fn rounds(&self, mut round: impl FnMut(i32) -> bool) {
        let mut left = 5;
        let mut number = 0;
        wait_for("reads between an event and its rows", PATIENCE, || {
            left -= i32::from(round(number));
            number += 1;
            assert!(left == 0 || number < 5 || self.late.limit().is_some());
            Ok((left == 0).then_some(()))
        })
        .unwrap();
    }

    /// Has `writer` update a row while the server is at work on `slow`. What `slow` gave, and
    /// whether that came after the update.
    fn read_beside_write(&self, slow: &str, writer: &ConnectOptions) -> (String, bool) {
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut client = self.through().connect().unwrap();
                client.query_value(slow).unwrap().unwrap()
            });
            self.wait_until_running(slow, || reading.is_finished());
            let mut client = writer.connect().unwrap();
            client
                .query("UPDATE counters SET value = value + 1 WHERE id = 1")
                .unwrap();
            let is_overtaken = !reading.is_finished();
            (reading.join().unwrap(), is_overtaken)
        })
    }

    /// Waits until the server has been at work on a statement for a while, or `is_over`.
    fn wait_until_running(&self, text: &str, is_over: impl Fn() -> bool) {
        let mut root = self.server.root().unwrap();
        let question = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = '{text}' \
             AND STATE IN ('Sending data', 'executing')"
        );
        let mut seen_at = None;
        wait_for("a running statement", PATIENCE, || {
            if is_over() {
                return Ok(Some(()));
            }
            let running = root.query_value(&question)?;
            if running.as_deref() != Some("1") {
                seen_at = None;
                return Ok(None);
            }
            let seen_at: Instant = *seen_at.get_or_insert_with(Instant::now);
            Ok((seen_at.elapsed() > Duration::from_millis(50)).then_some(()))
        })
        .unwrap();
    }

    /// Reads while the rows are invisible. Gives whether they were at a read at least.
    fn read_between(&self, text: &str, old: &str) -> bool {
        let mut direct = self.server.app().connect().unwrap();
        let mut reader = self.through().connect().unwrap();
        let began = Instant::now();
        // There may be no more time for it.
        let limit = self.late.limit().map(|limit| limit / 4);
        for number in 0..READS_BETWEEN {
            if number > 0 && limit.is_some_and(|limit| began.elapsed() >= limit) {
                break;
            }
            // The server is asked last: what it doesn't show then wasn't visible before.
            let through = reader.query_value(text).unwrap();
            let is_behind = self.visible() < self.applied();
            let truth = direct.query_value(text).unwrap();
            if limit.is_some() && truth.as_deref() != Some(old) {
                return number > 0;
            }
            assert_eq!([truth.as_deref(), through.as_deref()], [Some(old); 2]);
            // It says itself that it isn't there yet.
            assert!(is_behind);
        }
        true
    }
}

fn is_mysql(because: &str) -> bool {
    let kind = Kind::from_environment().unwrap();
    kind.skips(kind.is_mysql(), because)
}

#[test]
fn a_read_between_a_direct_writers_event_and_its_rows_is_not_kept() {
    let Some(world) = World::new(BrokenRules::default()) else {
        return;
    };
    let mut reader = world.through().connect().unwrap();
    let direct = world.server.app();
    world.rounds(|round| {
        let (old, new) = ((1 + round).to_string(), (2 + round).to_string());
        assert_eq!(world.wait_for_hit(&mut reader, READ), old);
        let was_between = world.write_slowly(&direct, || world.read_between(READ, &old));
        // The follower knows of the change already, so even a direct writer is not followed by an
        // old row.
        assert_eq!(reader.query_value(READ).unwrap().unwrap(), new);
        assert_eq!(world.wait_for_hit(&mut reader, READ), new);
        assert_eq!(
            world.wait_for_hit(&mut reader, SUM),
            (12 + round).to_string()
        );
        was_between
    });
}

#[test]
fn a_read_between_the_event_and_the_rows_of_a_write_through_remora_is_not_kept() {
    let Some(world) = World::new(BrokenRules::default()) else {
        return;
    };
    let mut reader = world.through().connect().unwrap();
    world.rounds(|round| {
        let (old, new) = ((1 + round).to_string(), (2 + round).to_string());
        assert_eq!(world.wait_for_hit(&mut reader, READ), old);
        // One text that is in memory, and one that isn't yet.
        let fresh = format!("SELECT value FROM counters WHERE id = 1 AND {round} = {round}");
        let was_between = world.write_slowly(&world.through(), || {
            world.read_between(READ, &old) && world.read_between(&fresh, &old)
        });
        for text in [READ, &fresh] {
            assert_eq!(reader.query_value(text).unwrap().unwrap(), new);
            assert_eq!(world.wait_for_hit(&mut reader, text), new);
        }
        was_between
    });
}

/// The read is sent before the write and sees the old row; its answer comes when the write is long
/// visible.
#[test]
fn a_read_that_is_overtaken_by_a_write_is_not_kept() {
    let Some(mut world) = World::new(BrokenRules::default()) else {
        return;
    };
    world
        .late
        .wait_for(Acknowledge::After(Duration::ZERO))
        .unwrap();
    world
        .server
        .execute([
            "CREATE TABLE many (n INT) ENGINE=InnoDB".to_owned(),
            format!("INSERT INTO many SELECT seq FROM {}", numbers(3_000)),
        ])
        .unwrap();
    let mut reader = world.through().connect().unwrap();
    let mut value = 1;
    for writer in [world.server.app(), world.through()] {
        wait_for("a read that lasts longer than a write", PATIENCE, || {
            assert_eq!(world.wait_for_hit(&mut reader, READ), value.to_string());
            // Another text each time: the one before is in memory.
            let slow = &format!(
                "SELECT MIN(c.value) FROM counters c, many a, many b WHERE c.id = 1 AND a.n + b.n > {value}"
            );
            let (before, is_overtaken) = world.read_beside_write(slow, &writer);
            assert_eq!(before, value.to_string());
            value += 1;
            assert_eq!(reader.query_value(slow)?.unwrap(), value.to_string());
            assert_eq!(world.wait_for_hit(&mut reader, slow), value.to_string());
            Ok(is_overtaken.then_some(()))
        })
        .unwrap();
    }
}

/// The log goes on in the next file while a commit of the old one is still invisible. The server's
/// position is one of the next file then, and after the commit it is the old file's offset with the
/// new file's name.
#[test]
fn a_read_between_event_and_rows_is_not_kept_when_the_log_goes_on_in_the_next_file() {
    if is_mysql("it begins the next file only when all of the old one is visible") {
        return;
    }
    let Some(world) = World::new(BrokenRules::default()) else {
        return;
    };
    let mut reader = world.through().connect().unwrap();
    assert_eq!(world.wait_for_hit(&mut reader, READ), "1");
    std::thread::scope(|scope| {
        world.write_slowly(&world.server.app(), || {
            // It is answered when the commit is visible.
            let flush = || world.server.execute(["FLUSH BINARY LOGS"]).unwrap();
            scope.spawn(flush);
            let mut between = world.through().connect().unwrap();
            wait_for("the next file", PATIENCE, || {
                assert_eq!(between.query_value(READ)?.unwrap(), "1");
                Ok((world.applied().file_number() == 2).then_some(()))
            })
            .unwrap();
            // Remora asks for the position every 250 ms. The server may not answer while it waits
            // to close the file, so there is no count to wait for.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(600) {
                assert_eq!(between.query_value(READ).unwrap().unwrap(), "1");
            }
        });
    });
    assert_eq!(reader.query_value(READ).unwrap().unwrap(), "2");
    assert_eq!(world.wait_for_hit(&mut reader, READ), "2");
    // The offset of the old file doesn't vouch for what comes in the new one.
    world.write_slowly(&world.server.app(), || world.read_between(READ, "2"));
    assert_eq!(reader.query_value(READ).unwrap().unwrap(), "3");
    assert_eq!(world.wait_for_hit(&mut reader, READ), "3");
}

/// The checkpoint event that a server writes some time after a rotation passes a commit that is
/// still invisible, and the server's position goes with it.
#[test]
fn a_read_between_event_and_rows_is_not_kept_when_a_checkpoint_event_passes() {
    if is_mysql("it writes no checkpoint events") {
        return;
    }
    let Some(mut world) = World::new(BrokenRules::default()) else {
        return;
    };
    let mut reader = world.through().connect().unwrap();
    assert_eq!(world.wait_for_hit(&mut reader, READ), "1");
    let mut root = world.server.root().unwrap();
    world.commit_elsewhere(&mut root);
    world.late.wait_for(Acknowledge::WhenTold).unwrap();
    root.query("FLUSH BINARY LOGS").unwrap();
    world.write_slowly(&world.server.app(), || {
        let (held_at, began) = (world.applied(), Instant::now());
        let mut between = world.through().connect().unwrap();
        // The checkpoint event comes with the next flush of InnoDB's log, mostly within a second;
        // it may also have come before the commit.
        while world.applied() == held_at && began.elapsed() < Duration::from_secs(2) {
            assert_eq!(between.query_value(READ).unwrap().unwrap(), "1");
        }
        let passed_at = Instant::now();
        while passed_at.elapsed() < Duration::from_millis(600) {
            assert_eq!(between.query_value(READ).unwrap().unwrap(), "1");
        }
    });
    assert_eq!(reader.query_value(READ).unwrap().unwrap(), "2");
    // On a server that goes quiet right after a rotation, what was changed since stays uncached
    // until the next commit behind the checkpoint event, which may still be to come.
    wait_for("a hit", PATIENCE, || {
        world.commit_elsewhere(&mut root);
        let before = world.hits();
        assert_eq!(reader.query_value(READ)?.as_deref(), Some("2"));
        Ok((world.hits() > before).then_some(()))
    })
    .unwrap();
}

/// What the rule is for: with the applied position in its place, the old row is kept and served.
#[test]
fn without_the_watermark_rule_the_old_row_is_kept() {
    let rules = BrokenRules {
        watermark: true,
        ..BrokenRules::default()
    };
    let Some(world) = World::new(rules) else {
        return;
    };
    let mut reader = world.through().connect().unwrap();
    let mut direct = world.server.app().connect().unwrap();
    let mut old = 1;
    // More than once only where the commit may be over before the old row is kept.
    wait_for("the stale row", PATIENCE, || {
        assert_eq!(world.wait_for_hit(&mut reader, READ), old.to_string());
        world.write_slowly(&world.server.app(), || {
            world.wait_for_hit(&mut reader, READ);
        });
        let new = direct.query_value(READ)?;
        assert_eq!(new, Some((old + 1).to_string()));
        if world.wait_for_hit(&mut reader, READ) == old.to_string() {
            return Ok(Some(()));
        }
        old += 1;
        assert!(world.late.limit().is_some(), "the old row wasn't kept");
        Ok(None)
    })
    .unwrap();
}
