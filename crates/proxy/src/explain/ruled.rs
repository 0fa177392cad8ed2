//! What the operator's rules say of a statement.

use remora_engine::rules::{Action, Decision, Facts, behind_view};
use remora_engine::tags::ReadTables;
use remora_engine::tags::explain::Names;
use serde::Serialize;

use super::{Explainer, Question};

/// The rules that decide about a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ruled {
    /// The rule that decides, for the account that was named; for any, if none was.
    #[serde(rename = "rule", skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidingRule>,
    /// If no account was named: the rules that decide for single accounts.
    #[serde(rename = "rules_of_accounts", skip_serializing_if = "Vec::is_empty")]
    pub of_accounts: Vec<DecidingRule>,
    /// Whether results are never kept because of it.
    #[serde(skip)]
    pub refuses: bool,
}

/// A rule that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecidingRule {
    /// Its place among the rules, from 1.
    pub number: usize,
    /// Where it begins in the configuration file.
    pub line: usize,
    /// What it says, with its place.
    pub words: String,
}

impl From<Decision<'_>> for DecidingRule {
    fn from(decision: Decision<'_>) -> DecidingRule {
        DecidingRule {
            number: decision.number,
            line: decision.rule.line,
            words: decision.to_string(),
        }
    }
}

impl Explainer {
    /// Asks the rules about a statement that reads these tables; nothing is counted.
    pub(super) fn ask_rules(
        &self,
        question: &Question,
        names: &Names<'_>,
        tables: &[ReadTables],
    ) -> Ruled {
        let rules = self.shared.rules.get();
        if rules.is_empty() {
            return Ruled::default();
        }
        let mut read = Vec::new();
        for ((schema, name), table) in names.tables.iter().zip(tables) {
            read.push((schema.as_str(), name.as_str()));
            read.extend(behind_view(&table.facts));
        }
        let dialect = self.shared.upstream.aged(question.dialect);
        let digest = remora_sql::normalise(&question.statement, dialect, &mut Vec::new());
        let facts = Facts {
            digest: Some(digest),
            tables: &read,
            names_have_case: self.shared.upstream.catalogue.names_have_case(),
            account: question.account.as_deref(),
            schema: question.schema.as_deref(),
        };
        let decision = rules.find(&facts);
        let of_accounts = match question.account {
            None => rules.of_accounts(&facts, decision),
            Some(_) => Vec::new(),
        };
        Ruled {
            by: decision.map(DecidingRule::from),
            of_accounts: of_accounts.into_iter().map(DecidingRule::from).collect(),
            refuses: decision.is_some_and(|decision| decision.rule.action == Action::Refuse),
        }
    }
}
