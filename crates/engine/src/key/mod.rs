//! What identifies a stored result, and what stands beside it.
//!
//! | file | what it holds |
//! |---|---|
//! | `scope` | the number under which the sessions that share results find them |
//! | `text` | the text by which a statement is looked up |
//! | `note` | what a result says of itself |
//! | `label` | what it is counted under |

mod label;
mod note;
mod scope;
mod text;

pub use self::label::Label;
pub use self::note::Note;
pub use self::scope::{
    RowFormat, fingerprint_of, is_binary, scope_of, status_bits, with_fingerprint,
};
pub use self::text::{may_be_select, text_of_key};
