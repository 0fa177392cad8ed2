//! Clients that open pages and now and then write something.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::bail;
use remora_testkit::interrupt;
use remora_testkit::load::random::{Random, Zipf};

use super::http::Browser;
use super::site::Site;
use crate::stats::Latencies;

/// Clients that open pages at the same time.
pub(super) const CLIENTS: usize = 3;
/// How unequally pages are wanted: the n-th in proportion to 1 / n^s.
const ZIPF: f64 = 0.9;

/// Clients that share a way to the server.
#[derive(Debug)]
pub(super) struct Crawler {
    clients: Vec<Client>,
    /// Of all requests, those that write.
    write_share: f64,
}

#[derive(Debug)]
struct Client {
    browser: Browser,
    random: Random,
}

/// What a number of pages took.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Of each page that was read.
    pub(super) took: Latencies,
    /// How many times something was written.
    pub(super) writes: u64,
    /// From the first request to the last answer.
    pub(super) length: Duration,
}

impl Block {
    /// All requests.
    pub(super) fn requests(&self) -> u64 {
        self.took.count() + self.writes
    }

    /// Adds what others took.
    pub(super) fn add(&mut self, other: &Block) {
        self.took.add(&other.took);
        self.writes += other.writes;
        self.length += other.length;
    }
}

impl Crawler {
    /// Clients that will do the same things as others of this seed. The first of them logs in, or
    /// all do, as the application wants.
    pub(super) fn new(
        site: &Site<'_>,
        address: SocketAddr,
        seed: u64,
        write_share: f64,
    ) -> anyhow::Result<Crawler> {
        let mut random = Random::new(seed);
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let mut browser = Browser::new()?;
            if number == 0 || site.application.everybody_logs_in {
                site.log_in(&mut browser, address)?;
            }
            let random = Random::new(random.next());
            clients.push(Client { browser, random });
        }
        Ok(Crawler {
            clients,
            write_share,
        })
    }

    /// So many requests, of all clients together.
    ///
    /// # Errors
    /// A page was no page, a form could not be sent, or the user asked to stop.
    pub(super) fn run(
        &mut self,
        site: &Site<'_>,
        address: SocketAddr,
        requests: usize,
    ) -> anyhow::Result<Block> {
        let zipf = Zipf::new(site.pages.len(), ZIPF);
        let (started, share) = (Instant::now(), self.write_share);
        let each = requests.div_ceil(self.clients.len());
        let done: Vec<anyhow::Result<Block>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .clients
                .iter_mut()
                .map(|client| scope.spawn(|| client.run(site, address, each, &zipf, share)))
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|done| done.unwrap_or_else(|_| bail!("a client has panicked")))
                .collect()
        });
        let mut block = Block::default();
        for one in done {
            block.add(&one?);
        }
        block.length = started.elapsed();
        Ok(block)
    }
}

impl Client {
    fn run(
        &mut self,
        site: &Site<'_>,
        address: SocketAddr,
        requests: usize,
        zipf: &Zipf,
        write_share: f64,
    ) -> anyhow::Result<Block> {
        let mut block = Block::default();
        for _ in 0..requests {
            interrupt::check()?;
            if self.random.unit() < write_share {
                site.write(&mut self.browser, address, &mut self.random)?;
                block.writes += 1;
                continue;
            }
            let path = &site.pages[zipf.next(&mut self.random)];
            let page = self.browser.get(address, path)?;
            page.check()?;
            block.took.record(page.took);
        }
        Ok(block)
    }
}
