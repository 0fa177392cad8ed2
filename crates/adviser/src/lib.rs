//! What limits a server, and what to change: rules over what it says of itself.
//!
//! A [`Reading`] is what a server said a few times in a row: its counters, its variables, the state
//! of InnoDB. Each [`Rule`] judges it on its own. A rule that can't tell says why: it never takes
//! what isn't known for good.
//!
//! `remora advise` gathers a reading. Nothing here asks a server or reads a clock, so each rule can
//! be tested with numbers, too.

mod innodb_status;
mod number;
mod reading;
mod report;
mod rule;
mod rules;

pub use innodb_status::InnodbStatus;
pub use reading::{
    Brand, NoShapes, OpenTransaction, Reading, ReadingError, STATUS_VARIABLES, Sample, Server,
    Shape, Values,
};
pub use report::{
    Evidence, Finding, Judgement, Report, Setting, Takeover, TakeoverSeen, Unit, Verdict,
};
pub use rule::{Rule, Unjudged};
pub use rules::advise;
