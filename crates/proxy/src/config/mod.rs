//! Configuration: the options, where they come from, and the [`Settings`] they become.
//!
//! [`options`] describes each option once. [`Settings::load`] reads a file and the command line's
//! overrides, and gives either values that fit or one line that says what doesn't.

pub mod options;

mod error;
mod host_name;
mod in_force;
mod merge;
mod opentelemetry;
mod print;
mod rules;
mod secret;
mod settings;
mod source;
mod spec;
mod transport;
mod value;

pub(crate) use error::one_line;
pub use error::{ConfigError, Origin};
pub use host_name::HostName;
pub use in_force::OptionInForce;
pub use merge::Override;
pub use opentelemetry::{Collector, OpenTelemetryOptions};
pub(crate) use options::ListenOptions;
pub use options::Options;
pub use print::{example_toml, reference_markdown};
pub(crate) use secret::{open_file_warning, read_secret};
pub use settings::Settings;
pub use source::{Reread, Source};
pub use transport::{Network, server_link};
pub use value::{AdminListen, ByteSize, LogLevel, NotAValue, Storing};
