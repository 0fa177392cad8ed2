//! From a plan to a directory of results, and on after an interruption.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::arms::Way;
use super::directory::{Identity, RunDirectory};
use super::measure::{Job, Measured, measure};
use super::plan::{Arm, Experiment, Plan, Point, Script};
use super::schedule::{Turn, turns};
use super::stage::Stage;
use super::{checker, choice, data, machine, scripts};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::results::{Cell, Results, SCHEMA_VERSION, Scale, State};
use crate::{report, usage};
use remora_testkit::load::Random;
use remora_testkit::scratch::Scratch;
use remora_testkit::servers::Kind;
use remora_testkit::{interrupt, programs};

/// A run to be done.
#[derive(Clone)]
pub struct Request {
    /// What.
    pub experiment: &'static dyn Experiment,
    /// How large.
    pub scale: Scale,
    /// On which server.
    pub kind: Kind,
    /// Through which arms, by their labels or by the beginnings of them; none for all.
    pub arms: Vec<String>,
    /// Only the points at these places on the x axis; none for all.
    pub at: Vec<f64>,
    /// How often each point is measured through each arm; `None`: as often as the plan says.
    pub repetitions: Option<u32>,
    /// The Remora to be measured; `None`: that of [`remora_testkit::programs::remora`].
    pub remora: Option<PathBuf>,
    /// The order of the measurements; `None`: that of the run in the directory, or a new one.
    pub seed: Option<u64>,
    /// Where to.
    pub directory: PathBuf,
}

/// A run under way.
struct Run {
    plan: Plan,
    directory: RunDirectory,
    results: Results,
    turns: Vec<Turn>,
    /// The program, if there is an arm for it.
    remora: Option<PathBuf>,
    progress: Progress,
}

/// Measures what isn't measured yet; gives all that is. What is measured is kept also when this
/// fails.
///
/// # Errors
/// A program is missing, the directory holds another run, something broke in mid-run, or the user
/// asked to stop.
pub fn measure_into(request: &Request) -> anyhow::Result<Results> {
    usage::raise_open_files_limit();
    let mut plan = request.experiment.plan(request.scale);
    let left_out = choice::arms(&mut plan, request)?;
    choice::points(&mut plan, request)?;
    let mut run = Run::open(request, plan, &left_out)?;
    let outcome = run.measure_all(request.kind).map_err(|error| {
        // A signal also breaks off what waits for the network, which then tells of a failure of its
        // own.
        if interrupt::is_set() {
            interrupt::Interrupted.into()
        } else {
            error
        }
    });
    run.progress.done();
    run.results.state = match &outcome {
        Ok(()) => State::Complete,
        Err(error) => State::Incomplete {
            why: format!("{error:#}"),
        },
    };
    let kept = run.directory.keep(&run.results).and_then(|()| {
        if run.results.cells.is_empty() {
            return Ok(());
        }
        report::write(&request.directory)
    });
    outcome.with_context(|| {
        format!(
            "{} is incomplete; the same command with --directory {} measures the rest",
            run.results.experiment,
            request.directory.display()
        )
    })?;
    kept?;
    Ok(run.results)
}

impl Run {
    fn open(request: &Request, plan: Plan, left_out: &[String]) -> anyhow::Result<Run> {
        let about = request.experiment.about();
        let remora = remora(request, &plan)?;
        let versions = machine::versions(&plan.arms, remora.as_deref())?;
        request.kind.program()?;
        let wanted = Identity {
            experiment: about.id.to_owned(),
            scale: request.scale,
            server: request.kind.as_str().to_owned(),
            arms: plan.arms.iter().map(|arm| arm.label()).collect(),
            changed: choice::changed(request),
            seed: Random::fresh_seed(),
        };
        let directory = RunDirectory::open(&request.directory, wanted, request.seed)?;
        let seed = directory.identity().seed;
        let mut turns = turns(
            plan.points.len(),
            plan.arms.len(),
            plan.pace.repetitions,
            seed,
        );
        let results = if let Some(results) = directory.results()? {
            require_same_programs(&results, &versions)?;
            let cells = results.cells.iter().flat_map(|cell| &cell.repetitions);
            let done: HashSet<u32> = cells.map(|repetition| repetition.turn).collect();
            turns.retain(|turn| !done.contains(&turn.number));
            results
        } else {
            let mut results = new_results(request, versions);
            results.configuration = lab_configuration(&plan, seed, left_out);
            let program = remora
                .iter()
                .map(|path| ("remora program".to_owned(), path.display().to_string()));
            results.configuration.extend(program);
            results.commands.extend(data::command(&plan.data));
            results
        };
        eprintln!(
            "{}: {} of {} measurements to go, seed {seed}",
            about.id,
            turns.len(),
            plan.measurements()
        );
        for line in left_out {
            eprintln!("left out: {line}");
        }
        Ok(Run {
            plan,
            directory,
            results,
            turns,
            remora,
            progress: Progress::new(Duration::ZERO),
        })
    }

    fn measure_all(&mut self, kind: Kind) -> anyhow::Result<()> {
        if self.turns.is_empty() {
            return Ok(());
        }
        let directory = self.results.experiment.clone();
        self.expect(None);
        let progress = &mut self.progress;
        let mut say = |what: &str| progress.step(&format!("{directory}: {what}"));
        let kept = data::get(kind, &self.plan, &mut say)?;
        let mut stage = Stage::start(kind, &self.plan, &kept, &mut say)?;
        let version = BTreeMap::from([("server".to_owned(), stage.version()?)]);
        require_same_programs(&self.results, &version)?;
        self.results.versions.extend(version);
        self.results.configuration.extend(stage.configuration());
        let scripts = Scratch::new()?;
        scripts::write_to(scripts.path())?;
        let began = Instant::now();
        for (done, turn) in (0_u32..).zip(self.turns.clone()) {
            if done > 0 {
                self.expect(Some((done, began.elapsed())));
            }
            let measured = self.measure_one(&stage, turn, scripts.path());
            // That a server is gone says more than what its clients saw of it.
            let measured = match measured {
                Err(error) if !error.is::<interrupt::Interrupted>() => {
                    stage.require_servers()?;
                    Err(error)
                }
                other => other,
            };
            self.keep(turn, measured?)?;
        }
        Ok(())
    }

    fn measure_one(
        &mut self,
        stage: &Stage,
        turn: Turn,
        scripts: &Path,
    ) -> anyhow::Result<Measured> {
        interrupt::check()?;
        // The servers' disk and that of the results.
        for directory in [std::env::temp_dir().as_path(), self.directory.path()] {
            machine::require_space(directory, machine::FREE_BYTES_TO_BEGIN)?;
        }
        let (point, arm) = (&self.plan.points[turn.point], self.plan.arms[turn.arm]);
        let place = point.x.as_ref().map_or_else(String::new, |x| {
            format!(", {} {}{}", x.axis, x.value, x.unit)
        });
        let head = format!(
            "{}: {}{place}, {}",
            self.results.experiment,
            point.workload,
            arm.label()
        );
        self.progress.step(&head);
        let server = stage.server(arm)?;
        checker::make_table(server)?;
        stage.prepare(arm, point)?;
        let way = Way::start(arm, server, point, self.remora.as_deref())?;
        self.results.configuration.extend(way.configuration());
        let job = Job {
            plan: &self.plan,
            point,
            arm,
            turn: turn.number,
            scripts,
            seed: self.directory.identity().seed ^ u64::from(turn.number),
        };
        let progress = &mut self.progress;
        let mut say = |what: &str| progress.update(&format!("{head}: {what}"));
        measure(&job, &way, &mut say).map_err(|error| {
            if error.is::<interrupt::Interrupted>() {
                return error;
            }
            error.context(format!("measuring {head}"))
        })
    }

    fn keep(&mut self, turn: Turn, mut measured: Measured) -> anyhow::Result<()> {
        let (point, arm) = (&self.plan.points[turn.point], self.plan.arms[turn.arm]);
        let label = arm.label();
        measured.repetition.series = self.directory.keep_series(
            turn.number,
            &label,
            &measured.warm_up,
            &measured.seconds,
        )?;
        if let (Some(stale), Arm::Remora { .. } | Arm::Direct | Arm::Hop | Arm::Builtin { .. }) =
            (&measured.first_stale, arm)
        {
            eprintln!("\nSTALE READ through {label}: {stale}");
        }
        if !self.results.commands.contains(&measured.command) {
            self.results.commands.push(measured.command);
        }
        let cells = &mut self.results.cells;
        if let Some(cell) = cells.iter_mut().find(|cell| is_cell_of(cell, point, arm)) {
            cell.repetitions.push(measured.repetition);
        } else {
            cells.push(Cell {
                workload: point.workload.clone(),
                x: point.x.clone(),
                arm: label,
                repetitions: vec![measured.repetition],
            });
            let plan = &self.plan;
            cells.sort_by_key(|cell| place_in(plan, cell));
        }
        self.directory.keep(&self.results)
    }

    /// Says how long the rest takes, by how long so many measurements took or else by the plan.
    fn expect(&mut self, so_far: Option<(u32, Duration)>) {
        let turns = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        let left = match so_far {
            None => self.plan.expected(turns),
            Some((done, took)) => (took / done) * turns.saturating_sub(done),
        };
        self.progress.expect_left(left);
    }
}

/// The program to be measured, if there is an arm for it.
fn remora(request: &Request, plan: &Plan) -> anyhow::Result<Option<PathBuf>> {
    let is_remora = |arm: &Arm| matches!(arm, Arm::Remora { .. });
    match &request.remora {
        Some(path) => programs::other_remora(path).map(Some),
        None if plan.arms.iter().any(is_remora) => programs::remora().map(Some),
        None => Ok(None),
    }
}

fn is_cell_of(cell: &Cell, point: &Point, arm: Arm) -> bool {
    cell.workload == point.workload && cell.x == point.x && cell.arm == arm.label()
}

/// Where a cell stands in the plan.
fn place_in(plan: &Plan, cell: &Cell) -> Option<(usize, usize)> {
    let arms = |point| (0..plan.arms.len()).map(move |arm| (point, arm));
    let mut places = (0..plan.points.len()).flat_map(arms);
    places.find(|&(point, arm)| is_cell_of(cell, &plan.points[point], plan.arms[arm]))
}

fn new_results(request: &Request, versions: BTreeMap<String, String>) -> Results {
    let about = request.experiment.about();
    Results {
        schema_version: SCHEMA_VERSION,
        experiment: about.id.to_owned(),
        title: about.title.to_owned(),
        question: about.question.to_owned(),
        published: about.published,
        scale: request.scale,
        started: machine::now(),
        state: State::Incomplete {
            why: "it is still running, or was killed".to_owned(),
        },
        machine: Machine::this(),
        versions,
        configuration: BTreeMap::new(),
        commands: Vec::new(),
        cells: Vec::new(),
    }
}

/// What the lab itself was told: lengths, the seed, arms left out, the scripts that aren't
/// sysbench's own.
fn lab_configuration(plan: &Plan, seed: u64, left_out: &[String]) -> BTreeMap<String, String> {
    let lab = format!(
        "seed {seed}\nrepetitions {}\nlength {} s\nlongest warm-up {} s\ndata {}",
        plan.pace.repetitions,
        plan.pace.length.as_secs_f64(),
        plan.pace.warm_up_max.as_secs_f64(),
        data::about(&plan.data).trim_end(),
    );
    let mut all = BTreeMap::from([("lab".to_owned(), lab)]);
    if !left_out.is_empty() {
        all.insert("arms left out".to_owned(), left_out.join("\n"));
    }
    for point in &plan.points {
        if let Script::Ours(name) = point.load.script
            && let Some(text) = scripts::text(name)
        {
            all.insert(format!("{name}.lua"), text.to_owned());
        }
    }
    all
}

/// Half a run with one program and half with another would say nothing of either.
fn require_same_programs(
    results: &Results,
    versions: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for (name, version) in versions {
        let before = results.versions.get(name);
        if before.is_some_and(|before| before != version) {
            bail!(
                "the run in the directory was begun with {}, and this is {version}; choose another --directory",
                before.map_or("", String::as_str)
            );
        }
    }
    Ok(())
}
