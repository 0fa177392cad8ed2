//! Emulated statements that the server answers in other words.

use std::ops::Range;

use remora_engine::reason::{Bypass, Outcome};
use remora_sql::{
    Dialect, EmulatedSelect, EmulatedStatement, EmulatedVariable, Refusal, Statement,
    VariableScope, VariableUse,
};
use remora_upstream::clock::Instant;
use remora_wire::command::ResponseKind;
use remora_wire::packet::put_message;

use super::super::dispatch::Step;
use super::super::exchange::{OnSuccess, Plan};
use super::super::{Ended, Session};
use super::replace::Asked;

/// What a server without a query cache runs in place of `FLUSH QUERY CACHE` and
/// `RESET QUERY CACHE`: it needs the same privilege (`RELOAD`), commits likewise, and changes
/// nothing but the file that errors are written to, which is opened again.
const NEEDS_RELOAD: &[u8] = b"FLUSH LOCAL ERROR LOGS";

impl Session {
    /// Sends the server what it understands in place of an emulated statement. `None`: the
    /// statement is sent as it is.
    pub(in super::super) fn forward_emulated(
        &mut self,
        emulated: &EmulatedStatement<'_>,
        statement: &Statement,
        text: &[u8],
        dialect: Dialect,
        began: Instant,
    ) -> Option<Result<Step, Ended>> {
        if let EmulatedStatement::Set(set) = emulated {
            return Some(self.begin_assigning(set, text, dialect, began));
        }
        let asked = Asked {
            text,
            dialect,
            began,
        };
        let (text_sent, on_success) = match emulated {
            EmulatedStatement::ShowRemora(show) => return Some(self.show_remora(asked, show)),
            EmulatedStatement::ExplainRemora { analyze, statement } => {
                return Some(self.explain_remora(asked, *analyze, statement));
            }
            EmulatedStatement::Select(list) | EmulatedStatement::Save(list) => {
                (self.with_values(text, list), OnSuccess::Plain)
            }
            EmulatedStatement::Flush => (self.needing_reload(text)?, OnSuccess::Plain),
            EmulatedStatement::Reset => (self.needing_reload(text)?, OnSuccess::EmptyStore),
            _ => return None,
        };
        let label = self.label_of(text, dialect);
        let plan = Plan {
            effects: self.consequences(statement, text).effects,
            counted: Some((label, began)),
            on_success,
            ..Plan::plain(ResponseKind::Results)
        };
        let mut message = Vec::new();
        put_message(&mut message, 0, &[self.query_head(), &text_sent].concat());
        let outcome = Outcome::Bypass(Bypass::Statement(match emulated {
            EmulatedStatement::Select(_) => Refusal::SystemVariable,
            _ => Refusal::NotSelect,
        }));
        Some(self.forward(&message, plan, outcome))
    }

    /// The text itself if the server knows the statement. `None`: which server it is isn't known
    /// yet.
    fn needing_reload(&self, text: &[u8]) -> Option<Vec<u8>> {
        Some(if self.server_has_query_cache()? {
            text.to_vec()
        } else {
            NEEDS_RELOAD.to_vec()
        })
    }

    /// The list with values in place of the query cache's variables, under the same names.
    fn with_values(&self, text: &[u8], list: &EmulatedSelect) -> Vec<u8> {
        self.with_values_in(text, 0..text.len(), &list.uses)
    }

    /// The same of a part of a text.
    pub(super) fn with_values_in(
        &self,
        text: &[u8],
        part: Range<usize>,
        uses: &[VariableUse],
    ) -> Vec<u8> {
        let mut sent = Vec::with_capacity(part.len() + 64 * uses.len());
        let mut at = part.start;
        for one in uses {
            let written = &text[one.start..one.end];
            sent.extend_from_slice(&text[at..one.start]);
            let own = match one.scope {
                VariableScope::Global => self.shared.query_cache.own_values(),
                VariableScope::Session | VariableScope::Default => self.state.own_values(),
            };
            let value = super::counters::value(&self.shared, one.variable, own);
            let expression = match one.variable {
                EmulatedVariable::Have | EmulatedVariable::Type => format!("'{value}'"),
                EmulatedVariable::StripComments | EmulatedVariable::WlockInvalidate => {
                    format!("CAST({} AS SIGNED)", u8::from(value == "ON"))
                }
                _ => format!("CAST({value} AS UNSIGNED)"),
            };
            sent.extend_from_slice(expression.as_bytes());
            if !one.has_alias {
                sent.extend_from_slice(b" AS `");
                sent.extend_from_slice(written);
                sent.push(b'`');
            }
            at = one.end;
        }
        sent.extend_from_slice(&text[at..part.end]);
        sent
    }
}
