//! What was measured, by workload, arm and place on the x axis.

use crate::results::{Cell, Coordinate, Repetition, Results};
use crate::statistics::bootstrap::{self, Estimate, Good};

/// The arm that the others are compared with.
pub(super) const BASELINE: &str = "direct";

/// The arm that the lab is about.
pub(super) const OURS: &str = "remora";

/// Who sends a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// sysbench, each of whose clients waits for an answer before it asks again; and beside it
    /// perhaps a load at a set rate.
    Sysbench,
    /// `remora-lab replay`, with the captured timing or as fast as it is answered.
    Replay,
}

/// The cells that share a chart.
#[derive(Debug)]
pub(super) struct Workload<'a> {
    pub(super) name: &'a str,
    pub(super) sending: Sending,
    /// The x axis: its name and its unit.
    pub(super) axis: Option<(&'a str, &'a str)>,
    /// The places on it, ascending. One place, 0, if there is no axis.
    pub(super) places: Vec<f64>,
    /// The arms in the order of the results.
    pub(super) arms: Vec<&'a str>,
    cells: Vec<&'a Cell>,
}

/// The workloads in the order of the results.
pub(super) fn workloads(results: &Results) -> Vec<Workload<'_>> {
    let sending = if results.experiment == "replay" {
        Sending::Replay
    } else {
        Sending::Sysbench
    };
    let mut workloads: Vec<Workload<'_>> = Vec::new();
    for cell in &results.cells {
        let found = workloads.iter_mut().find(|workload| {
            workload.name == cell.workload && workload.axis == axis(cell.x.as_ref())
        });
        if let Some(workload) = found {
            workload.add(cell);
        } else {
            let mut workload = Workload {
                name: &cell.workload,
                sending,
                axis: axis(cell.x.as_ref()),
                places: Vec::new(),
                arms: Vec::new(),
                cells: Vec::new(),
            };
            workload.add(cell);
            workloads.push(workload);
        }
    }
    workloads
}

fn axis(x: Option<&Coordinate>) -> Option<(&str, &str)> {
    x.map(|x| (x.axis.as_str(), x.unit.as_str()))
}

fn place(cell: &Cell) -> f64 {
    cell.x.as_ref().map_or(0.0, |x| x.value)
}

impl<'a> Workload<'a> {
    fn add(&mut self, cell: &'a Cell) {
        if !self.arms.contains(&cell.arm.as_str()) {
            self.arms.push(&cell.arm);
        }
        let x = place(cell);
        let at = self.places.partition_point(|&other| other < x);
        if self.places.get(at).is_none_or(|&other| other > x) {
            self.places.insert(at, x);
        }
        self.cells.push(cell);
    }

    /// Whether the x axis is of this name.
    pub(super) fn is_over(&self, axis: &str) -> bool {
        self.axis.is_some_and(|(name, _)| name == axis)
    }

    /// Whether it is drawn with lines: of a single place there are bars.
    pub(super) fn has_lines(&self) -> bool {
        self.axis.is_some() && self.places.len() > 1
    }

    /// The repetitions of an arm at a place.
    pub(super) fn repetitions(&self, arm: &str, x: f64) -> Vec<&'a Repetition> {
        self.cells
            .iter()
            .filter(|cell| cell.arm == arm && place(cell).total_cmp(&x).is_eq())
            .flat_map(|cell| &cell.repetitions)
            .collect()
    }

    /// A measure of each repetition of an arm at a place.
    pub(super) fn values(&self, arm: &str, x: f64, measure: Measure) -> Vec<f64> {
        let repetitions = self.repetitions(arm, x);
        repetitions
            .iter()
            .filter_map(|repetition| measure.of(repetition))
            .collect()
    }

    /// The median of a measure of an arm at a place.
    pub(super) fn median(&self, arm: &str, x: f64, measure: Measure) -> Option<Estimate> {
        bootstrap::median(&self.values(arm, x, measure))
    }

    /// Whether any arm has such a measure.
    pub(super) fn has(&self, measure: Measure) -> bool {
        let mut repetitions = self.cells.iter().flat_map(|cell| &cell.repetitions);
        repetitions.any(|repetition| measure.of(repetition).is_some())
    }
}

/// What is measured of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Queries,
    Transactions,
    Mean,
    P50,
    P95,
    P99,
    Longest,
    OpenMean,
    OpenP50,
    OpenP95,
    OpenP99,
    OpenLongest,
    OpenRate,
    OpenReached,
    ServerCpu,
    ProxyCpu,
    HitPercent,
}

impl Measure {
    /// Its value, if it was measured.
    pub(super) fn of(self, repetition: &Repetition) -> Option<f64> {
        let latency = &repetition.latency_ms;
        let open = repetition.open_loop.as_ref();
        match self {
            Measure::Queries => Some(repetition.queries_per_s),
            Measure::Transactions => Some(repetition.transactions_per_s),
            Measure::Mean => Some(latency.mean),
            Measure::P50 => latency.p50,
            Measure::P95 => Some(latency.p95),
            Measure::P99 => latency.p99,
            Measure::Longest => Some(latency.max),
            Measure::OpenMean => open.map(|open| open.latency_ms.mean),
            Measure::OpenP50 => open.and_then(|open| open.latency_ms.p50),
            Measure::OpenP95 => open.map(|open| open.latency_ms.p95),
            Measure::OpenP99 => open.and_then(|open| open.latency_ms.p99),
            Measure::OpenLongest => open.map(|open| open.latency_ms.max),
            Measure::OpenRate => open.map(|open| open.rate_per_s),
            Measure::OpenReached => open.map(|open| open.reached_per_s),
            Measure::ServerCpu => repetition.server_cpu_us,
            Measure::ProxyCpu => repetition.proxy_cpu_us,
            Measure::HitPercent => repetition.hit_ratio.map(|share| share * 100.0),
        }
    }

    /// Which values of it are good ones.
    pub(super) fn good(self) -> Good {
        match self {
            Measure::Queries
            | Measure::Transactions
            | Measure::OpenRate
            | Measure::OpenReached
            | Measure::HitPercent => Good::High,
            _ => Good::Low,
        }
    }

    /// What it is called, with its unit.
    pub(super) fn title(self) -> &'static str {
        match self {
            Measure::Queries => "queries/s",
            Measure::Transactions => "transactions/s",
            Measure::Mean | Measure::OpenMean => "mean, ms",
            Measure::P50 | Measure::OpenP50 => "median, ms",
            Measure::P95 | Measure::OpenP95 => "95th percentile, ms",
            Measure::P99 | Measure::OpenP99 => "99th percentile, ms",
            Measure::Longest | Measure::OpenLongest => "longest, ms",
            Measure::OpenRate => "queries/s due",
            Measure::OpenReached => "queries/s answered",
            Measure::ServerCpu => "server CPU, µs/query",
            Measure::ProxyCpu => "proxy CPU, µs/query",
            Measure::HitPercent => "hits, %",
        }
    }
}
