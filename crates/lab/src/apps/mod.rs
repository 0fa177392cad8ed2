//! `make apps`: real applications, each directly and through Remora.
//!
//! They are in the repository's `applications`; each is installed into a private server, filled
//! with content, and crawled by clients that now and then write something. The two ways to the
//! server take turns, with the same requests. Between the turns pages are compared.

mod bed;
mod comparing;
mod crawl;
mod description;
mod html;
mod http;
mod report;
mod site;
mod statements;

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use remora_testkit::load::random::Random;
use remora_testkit::proxies::RemoraOptions;
use remora_testkit::servers::Kind;

use self::bed::{Bed, Way};
use self::comparing::{Compared, compare};
use self::crawl::{Block, Crawler};
use self::description::Application;
use self::site::Site;
use self::statements::{Logged, Selects};
use crate::progress::Progress;

/// A usual run of one application at the default length.
const USUAL_RUN: Duration = Duration::from_secs(100);

/// Options of `make apps`.
#[derive(Debug, Clone, clap::Args)]
pub struct AppsOptions {
    /// Only these applications: names of directories in `applications`.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// The server: one of `scripts/servers --list`, or `mariadb-10.11`.
    #[arg(long, value_parser = Kind::named)]
    pub server: Option<Kind>,
    /// How many of its pages are opened.
    #[arg(long, default_value_t = 120)]
    pub pages: usize,
    /// How many requests one way has in each round.
    #[arg(long, default_value_t = 300)]
    pub requests: usize,
    /// How many rounds there are: a turn of each way, and a comparison of pages.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// The share of requests that write something.
    #[arg(long, default_value_t = 0.04)]
    pub writes: f64,
    /// How many pages are compared after each round.
    #[arg(long, default_value_t = 30)]
    pub compared: usize,
    /// What to repeat: a seed that an earlier run printed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Options of Remora in place of its defaults, such as `cache.transaction_reads=early`.
    #[arg(long = "set", value_name = "OPTION=VALUE")]
    pub set: Vec<String>,
    /// Leaves out what shows how much could be answered from memory: a last pass with the server's
    /// log of statements, and with its own query cache if it has one.
    #[arg(long)]
    pub without_ceiling: bool,
    /// Only `wordpress`, few pages, and half of the hits verified: enough to see that pages are
    /// the same.
    #[arg(long)]
    pub quick: bool,
    /// Fills and serves the first application, says where, and waits to be interrupted.
    #[arg(long)]
    pub keep: bool,
}

/// What was found of one application.
#[derive(Debug)]
struct Outcome {
    name: String,
    what: String,
    server: String,
    pages: usize,
    /// All turns of each way.
    direct: Measured,
    through: Measured,
    /// What Remora counted of its clients' SELECTs, from the start on, when all was new to it.
    selects: Selects,
    /// The same in the last round alone.
    last_round: Selects,
    compared: Compared,
    /// Of the hits that Remora verified, the faults; `None`: it verified none.
    verified: Option<Verified>,
    ceiling: Option<Ceiling>,
}

/// What one way's turns took.
#[derive(Debug, Default)]
struct Measured {
    block: Block,
    server_time: Duration,
    remora_time: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Verified {
    hits: f64,
    faults: f64,
}

/// What could be answered from memory at best.
#[derive(Debug)]
struct Ceiling {
    logged: Logged,
    /// The share of SELECTs that the server's own query cache answered.
    query_cache: Option<f64>,
}

/// Runs the applications.
///
/// # Errors
/// A part is missing or did not start, a page differs, a verified hit was a fault, or the user
/// asked to stop.
pub fn run(options: &AppsOptions) -> anyhow::Result<()> {
    let options = &options.clone().made_quick();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../applications");
    let applications = Application::read(&sources, &options.only)?;
    let seed = options.seed.unwrap_or_else(Random::fresh_seed);
    println!("seed {seed} (`--seed {seed}` repeats it)");
    if options.keep {
        let Some(first) = applications.first() else {
            bail!("there is no application");
        };
        return bed::keep(first, options.server, &remora_options(options)?, seed);
    }
    let count = u32::try_from(applications.len())?;
    let mut progress = Progress::new(USUAL_RUN * count);
    let mut outcomes = Vec::new();
    for application in &applications {
        let outcome = run_one(application, options, seed, &mut progress)?;
        progress.done();
        println!("\n{}", report::of_one(&outcome));
        outcomes.push(outcome);
    }
    println!("\n{}", report::of_all(&outcomes));
    let faults: Vec<String> = outcomes.iter().flat_map(Outcome::faults).collect();
    if faults.is_empty() {
        return Ok(());
    }
    bail!("pages or results differ:\n  {}", faults.join("\n  "))
}

impl AppsOptions {
    fn made_quick(self) -> AppsOptions {
        if !self.quick {
            return self;
        }
        let mut set = self.set;
        // One that is verified isn't all that a hit can be.
        set.push("observe.verify_sample=0.5".to_owned());
        AppsOptions {
            only: vec!["wordpress".to_owned()],
            pages: 50,
            requests: 50,
            rounds: 2,
            writes: 0.1,
            compared: 50,
            without_ceiling: true,
            set,
            ..self
        }
    }
}

fn remora_options(options: &AppsOptions) -> anyhow::Result<RemoraOptions> {
    let mut remora = RemoraOptions::following();
    for set in &options.set {
        let Some((option, value)) = set.split_once('=') else {
            bail!("`--set {set}` has no `=`; it takes OPTION=VALUE");
        };
        remora = remora.with(option, value);
    }
    Ok(remora)
}

fn run_one(
    application: &Application,
    options: &AppsOptions,
    seed: u64,
    progress: &mut Progress,
) -> anyhow::Result<Outcome> {
    let name = &application.name;
    let mut random = Random::new(seed);
    progress.step(&format!("{name}: filling it"));
    let mut bed = Bed::start(application, options.server, &remora_options(options)?, seed)?;
    progress.step(&format!("{name}: looking for pages"));
    let direct = bed.web(Way::Direct);
    let site = Site::explore(application, direct, options.pages, &mut random)?;
    let crawlers = |way| Crawler::new(&site, bed.web(way), seed, options.writes);
    let mut ways = [
        (Way::Direct, crawlers(Way::Direct)?, Measured::default()),
        (Way::Remora, crawlers(Way::Remora)?, Measured::default()),
    ];
    let mut compared = Compared::default();
    let (mut selects, mut last_round) = (Selects::default(), Selects::default());
    for round in 0..options.rounds {
        progress.step(&format!(
            "{name}: round {} of {}",
            round + 1,
            options.rounds
        ));
        let before = bed.selects()?;
        for (way, crawler, measured) in &mut ways {
            measured.add(&bed, &site, *way, crawler, options.requests)?;
        }
        // What comparing asks for isn't the clients'.
        last_round = bed.selects()?.since(&before);
        selects.add(&last_round);
        compared.add(compare(&bed, &site, options.compared)?);
    }
    let verified = bed.verified()?;
    let [(_, _, direct), (_, _, through)] = ways;
    let server = bed.server_version()?;
    let ceiling = if options.without_ceiling {
        None
    } else {
        progress.step(&format!("{name}: what could be answered from memory"));
        Some(ceiling(&mut bed, &site, options, seed)?)
    };
    Ok(Outcome {
        name: name.clone(),
        what: application.what.clone(),
        server,
        pages: site.pages.len(),
        direct,
        through,
        selects,
        last_round,
        compared,
        verified,
        ceiling,
    })
}

/// The same requests as one way had, without Remora.
fn ceiling(
    bed: &mut Bed,
    site: &Site<'_>,
    options: &AppsOptions,
    seed: u64,
) -> anyhow::Result<Ceiling> {
    let log = bed.without_remora()?;
    let before = bed.query_cache()?;
    let mut crawler = Crawler::new(site, bed.web(Way::Direct), seed, options.writes)?;
    crawler.run(
        site,
        bed.web(Way::Direct),
        options.requests * options.rounds,
    )?;
    let after = bed.query_cache()?;
    let query_cache = after
        .zip(before)
        .map(|(after, before)| after.share_since(before));
    Ok(Ceiling {
        logged: Logged::of(&log)?,
        query_cache,
    })
}

impl Measured {
    fn add(
        &mut self,
        bed: &Bed,
        site: &Site<'_>,
        way: Way,
        crawler: &mut Crawler,
        requests: usize,
    ) -> anyhow::Result<()> {
        let before = (bed.server_time()?, bed.remora_time()?);
        self.block.add(&crawler.run(site, bed.web(way), requests)?);
        self.server_time += bed.server_time()?.saturating_sub(before.0);
        self.remora_time += bed.remora_time()?.saturating_sub(before.1);
        Ok(())
    }
}

impl Outcome {
    fn faults(&self) -> Vec<String> {
        let different = self.compared.different.iter();
        let mut faults: Vec<String> = different
            .map(|fault| format!("{}: {fault}", self.name))
            .collect();
        if let Some(verified) = self.verified.filter(|verified| verified.faults > 0.0) {
            faults.push(format!(
                "{}: {} hits were faults",
                self.name, verified.faults
            ));
        }
        if self.selects.sum().hits == 0 {
            faults.push(format!("{}: nothing was answered from memory", self.name));
        }
        faults
    }
}
