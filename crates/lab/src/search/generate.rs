//! From a seed to a case.

use super::changes;
use super::dice::Dice;
use super::questions;
use super::schema::Schema;
use super::script::{Question, Script};
use super::surroundings::Surroundings;
use remora_testkit::servers::Kind;

/// How large a case is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Queries that are held.
    pub questions: usize,
    /// Changes.
    pub changes: usize,
    /// Most changes run code that their text doesn't show.
    pub is_mostly_code: bool,
    /// What else happens around the statements.
    pub surroundings: Option<Surroundings>,
}

/// The case of a seed.
pub fn script(seed: u64, kind: Kind, size: Size, is_race: bool) -> Script {
    let mut dice = Dice::new(seed);
    let (mut schema, setup) = Schema::random(&mut dice, kind, size.is_mostly_code);
    let questions: Vec<Question> = (0..size.questions)
        .map(|_| questions::random(&mut dice, &schema))
        .collect();
    let readers = readers(&mut dice, kind);
    if let Some(surroundings) = size.surroundings {
        let mut script = Script {
            setup,
            readers,
            questions,
            ..Script::default()
        };
        surroundings.surround(&mut dice, &mut schema, &mut script, size.changes);
        return script;
    }
    let changes = (0..size.changes)
        .map(|number| {
            changes::random(
                &mut dice,
                &mut schema,
                number,
                &questions,
                size.is_mostly_code,
            )
        })
        .collect();
    Script {
        is_race,
        setup,
        readers,
        questions,
        changes,
        ..Script::default()
    }
}

/// Settings of those who ask, on which results may depend.
fn readers(dice: &mut Dice, kind: Kind) -> Vec<String> {
    let mut all = Vec::new();
    if dice.chance(30) {
        let mut collations = vec!["utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci"];
        if kind == Kind::MySql80 {
            collations.push("utf8mb4_0900_ai_ci");
        }
        all.push(format!(
            "SET NAMES utf8mb4 COLLATE {}",
            dice.word(&collations)
        ));
    }
    if dice.chance(15) {
        all.push("SET NAMES latin1".to_owned());
    }
    if dice.chance(25) {
        all.push("SET time_zone = '+05:00'".to_owned());
    }
    if dice.chance(30) {
        let mode = dice.word(&[
            "PAD_CHAR_TO_FULL_LENGTH",
            "NO_BACKSLASH_ESCAPES",
            "PIPES_AS_CONCAT",
            "",
        ]);
        all.push(format!("SET sql_mode = '{mode}'"));
    }
    all
}
