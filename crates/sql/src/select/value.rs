//! What an expression is, as far as conditions are recognised in it: a column, a constant, or
//! conjuncts.
//!
//! Everything is an implication: [`Conjuncts`] are conditions that hold wherever the expression is
//! TRUE, perhaps not all of them. So an `AND` may add up what its sides say, and what
//! is known on each side of an `OR` may be joined, but nothing may be said of a negation, nor of
//! what a conjunct is an operand of.

use super::{Placeholders, SelectParser};
use crate::keyword::Keyword;
use crate::lexer::Lexer;
use crate::reads::{
    Bound, CONDITIONS_MAX, CONSTANT_BYTES_MAX, CONSTANTS_MAX, ColumnName, Condition, Constant,
    EQUALITIES_MAX, SourceSet, Test,
};
use crate::refusal::Refusal;
use crate::token::{Token, TokenKind as T};

/// What an expression is.
#[derive(Debug)]
pub(crate) enum Value {
    /// Anything.
    Other,
    Column(ColumnPlaces),
    Literal(Literal),
    Conjuncts(Conjuncts),
}

/// Conditions that hold where an expression is TRUE; at least one. What they restrict is set later.
#[derive(Debug)]
pub(crate) struct Conjuncts {
    pub(super) list: Vec<Condition>,
    /// The expression says nothing else: it is TRUE where all of them hold.
    pub(super) is_all: bool,
}

/// The result of parsing an expression: `Err` is a hard refusal.
pub(crate) type Valued = Result<Value, Refusal>;

/// Where a token stands in the text. Values are passed through many levels, so they are kept small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u32,
    end: u32,
}

impl Place {
    /// `None` if the text is too long for it: then nothing is said of the token.
    fn new(start: usize, end: usize) -> Option<Place> {
        Some(Place {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(end).ok()?,
        })
    }

    fn token(self, kind: T) -> Token {
        Token {
            kind,
            start: self.start as usize,
            end: self.end as usize,
        }
    }
}

/// A column's name as it stands in the text: the last of up to three parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPlaces {
    schema: Option<Place>,
    table: Option<Place>,
    column: Place,
}

impl ColumnPlaces {
    /// The name whose first part, or whose next after those of `before`, is `token`.
    pub(super) fn after(before: Option<ColumnPlaces>, token: Token) -> Option<ColumnPlaces> {
        Some(ColumnPlaces {
            schema: before.and_then(|before| before.table),
            table: before.map(|before| before.column),
            column: Place::new(token.start, token.end)?,
        })
    }
}

/// A constant that hasn't been copied from the text yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Literal {
    Integer(i64),
    /// An integer that only an unsigned one of the server's holds.
    Unsigned(u64),
    Decimal {
        negative: bool,
        place: Place,
    },
    /// String literals behind one another.
    Text(Place),
    Parameter(usize),
}

/// Which way a comparison goes.
#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    /// `<=>`
    NullSafe,
    Less {
        inclusive: bool,
    },
    Greater {
        inclusive: bool,
    },
}

impl Comparison {
    fn of(operator: T) -> Option<Comparison> {
        Some(match operator {
            T::Equal => Comparison::Equal,
            T::NullSafeEqual => Comparison::NullSafe,
            T::Less => Comparison::Less { inclusive: false },
            T::LessEqual => Comparison::Less { inclusive: true },
            T::Greater => Comparison::Greater { inclusive: false },
            T::GreaterEqual => Comparison::Greater { inclusive: true },
            _ => return None,
        })
    }

    /// The same with its sides exchanged.
    fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less { inclusive } => Comparison::Greater { inclusive },
            Comparison::Greater { inclusive } => Comparison::Less { inclusive },
            other => other,
        }
    }
}

impl SelectParser<'_> {
    /// `left operator right`
    pub(super) fn comparison(&self, left: &Value, operator: T, right: &Value) -> Value {
        let Some(comparison) = Comparison::of(operator) else {
            return Value::Other;
        };
        match (left, right) {
            (Value::Column(column), Value::Literal(literal)) => {
                self.compared(column, comparison, literal)
            }
            (Value::Literal(literal), Value::Column(column)) => {
                self.compared(column, comparison.mirrored(), literal)
            }
            (Value::Column(left), Value::Column(right)) => match comparison {
                Comparison::Equal if self.wants_conditions => self.joined(left, right),
                _ => Value::Other,
            },
            _ => Value::Other,
        }
    }

    fn compared(&self, column: &ColumnPlaces, how: Comparison, literal: &Literal) -> Value {
        // NULL is equal to NULL here. A bound value may be NULL, and so may a text: MariaDB reads
        // `''` as NULL under EMPTY_STRING_IS_NULL.
        let may_mean_null = matches!(how, Comparison::NullSafe)
            && matches!(literal, Literal::Parameter(_) | Literal::Text(_));
        if !self.wants_conditions || may_mean_null {
            return Value::Other;
        }
        let Some(value) = self.constant(literal) else {
            return Value::Other;
        };
        let test = match how {
            Comparison::Equal | Comparison::NullSafe => Test::In(vec![value]),
            Comparison::Less { inclusive } => Test::Range {
                from: None,
                to: Some(Bound { value, inclusive }),
            },
            Comparison::Greater { inclusive } => Test::Range {
                from: Some(Bound { value, inclusive }),
                to: None,
            },
        };
        self.condition_on(column, test)
    }

    /// `left BETWEEN low AND high`
    pub(super) fn between(&self, left: &Value, low: &Value, high: &Value) -> Value {
        let (Value::Column(column), Value::Literal(low), Value::Literal(high)) = (left, low, high)
        else {
            return Value::Other;
        };
        if !self.wants_conditions {
            return Value::Other;
        }
        let bound = |literal| {
            self.constant(literal).map(|value| Bound {
                value,
                inclusive: true,
            })
        };
        match (bound(low), bound(high)) {
            (Some(from), Some(to)) => {
                let (from, to) = (Some(from), Some(to));
                self.condition_on(column, Test::Range { from, to })
            }
            _ => Value::Other,
        }
    }

    /// `left IN (constants)`
    pub(super) fn in_list(&self, left: &Value, constants: Option<Vec<Constant>>) -> Value {
        match (left, constants) {
            (Value::Column(column), Some(constants)) if !constants.is_empty() => {
                self.condition_on(column, Test::In(constants))
            }
            _ => Value::Other,
        }
    }

    /// `left IS NULL`
    pub(super) fn is_null(&self, left: &Value) -> Value {
        match left {
            Value::Column(column) if self.wants_conditions => {
                self.condition_on(column, Test::IsNull)
            }
            _ => Value::Other,
        }
    }

    /// `left = right`, both columns
    fn joined(&self, left: &ColumnPlaces, right: &ColumnPlaces) -> Value {
        match self.name_of(right) {
            Some(other) => self.condition_on(left, Test::Column(other)),
            None => Value::Other,
        }
    }

    /// A column's name; `None` if it can't be trusted.
    fn name_of(&self, column: &ColumnPlaces) -> Option<ColumnName> {
        let name = |place: Place| {
            let bytes = self.cursor.name_bytes(place.token(self.name_kind(place)));
            let name = std::str::from_utf8(&bytes).ok()?;
            name.is_ascii().then(|| name.to_owned())
        };
        // `None` inside if no name stands there, outside if it can't be trusted.
        let optional = |place: Option<Place>| match place {
            None => Some(None),
            Some(place) => name(place).map(Some),
        };
        Some(ColumnName {
            schema: optional(column.schema)?,
            table: optional(column.table)?,
            column: name(column.column)?,
        })
    }

    fn condition_on(&self, column: &ColumnPlaces, test: Test) -> Value {
        match self.name_of(column) {
            Some(column) => Value::Conjuncts(Conjuncts {
                list: vec![Condition {
                    column,
                    restricts: SourceSet::default(),
                    scope: SourceSet::default(),
                    test,
                }],
                is_all: true,
            }),
            None => Value::Other,
        }
    }

    fn name_kind(&self, place: Place) -> T {
        match self.cursor.lexer().text().get(place.start as usize) {
            Some(b'`' | b'"') => T::QuotedName,
            _ => T::Word(Keyword::Other),
        }
    }

    /// A constant of its own; `None` if it is too long for one.
    pub(crate) fn constant(&self, literal: &Literal) -> Option<Constant> {
        Some(match *literal {
            Literal::Integer(value) => Constant::Integer(value.into()),
            Literal::Unsigned(value) => Constant::Integer(value.into()),
            Literal::Parameter(number) => Constant::Parameter(number),
            Literal::Decimal { negative, place } => {
                let digits = self.cursor.bytes(place.token(T::Number));
                let digits = std::str::from_utf8(digits).ok()?;
                Constant::Decimal(decimal(digits, negative)?)
            }
            Literal::Text(place) => Constant::Text(self.text_at(place)?),
        })
    }

    fn text_at(&self, place: Place) -> Option<Vec<u8>> {
        let lexer = self.cursor.lexer();
        let escapes = !lexer.dialect().no_backslash_escapes;
        let literals = lexer.bytes(place.token(T::String));
        let mut lexer = Lexer::new(literals, lexer.dialect());
        let mut text = Vec::new();
        loop {
            let token = lexer.next_token();
            match token.kind {
                T::String => unescape(lexer.bytes(token), escapes, &mut text)?,
                T::End => break,
                _ => return None,
            }
        }
        (text.len() <= CONSTANT_BYTES_MAX).then_some(text)
    }

    /// The number at the cursor.
    pub(super) fn number(&mut self) -> Value {
        let token = self.cursor.advance();
        let digits = self.cursor.bytes(token);
        if digits.iter().any(|byte| matches!(byte, b'e' | b'E')) {
            return Value::Other;
        }
        if let Some(value) = integer(digits) {
            let signed = i64::try_from(value).map(Literal::Integer);
            return Value::Literal(signed.unwrap_or(Literal::Unsigned(value)));
        }
        // An integer that is too large for the server's integers is a decimal number there.
        self.combines_values = true;
        match Place::new(token.start, token.end) {
            Some(place) => Value::Literal(Literal::Decimal {
                negative: false,
                place,
            }),
            None => Value::Other,
        }
    }

    /// One or more string literals at the cursor.
    pub(super) fn strings(&mut self) -> Value {
        let start = self.cursor.current().start;
        let mut end = start;
        let mut plain = true;
        while self.cursor.at(T::String) {
            let token = self.cursor.advance();
            self.combines_values |= token.start != start;
            plain &= matches!(self.cursor.bytes(token).first(), Some(b'\'' | b'"'));
            end = token.end;
        }
        match Place::new(start, end) {
            Some(place) if plain => Value::Literal(Literal::Text(place)),
            _ => Value::Other,
        }
    }

    /// A `?` where a value stands.
    pub(super) fn placeholder(&mut self) -> Value {
        self.cursor.advance();
        let number = self.parameter_count;
        self.parameter_count += 1;
        if self.placeholders == Placeholders::AreUnknown {
            self.refuse(Refusal::Placeholder);
            return Value::Other;
        }
        Value::Literal(Literal::Parameter(number))
    }

    /// Notes a name that can mean a column.
    pub(super) fn note_column(&mut self, token: Token) {
        let name = self.cursor.name_bytes(token);
        match std::str::from_utf8(&name) {
            Ok(name) if name.is_ascii() => {
                self.reads.all_columns |= is_pseudo_column(name);
                let noted = self.reads.names.add(name);
                self.last_noted = Some((token, noted));
            }
            _ => {
                self.reads.all_columns = true;
                self.last_noted = None;
            }
        }
    }
}

/// Names that mean a column which may have another name.
fn is_pseudo_column(name: &str) -> bool {
    matches!(name.as_bytes().first(), Some(b'_' | b'r' | b'R'))
        && ["_rowid", "rowid", "row_start", "row_end", "rownum"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

/// The value of a sign before an operand.
pub(super) fn signed(sign: T, operand: &Value) -> Value {
    let Value::Literal(literal) = *operand else {
        return Value::Other;
    };
    match (sign, literal) {
        (T::Plus, Literal::Integer(_) | Literal::Unsigned(_) | Literal::Decimal { .. }) => {
            Value::Literal(literal)
        }
        (T::Minus, Literal::Integer(value)) => folded(value.checked_neg()),
        // The smallest signed integer's digits are those of an unsigned one.
        (T::Minus, Literal::Unsigned(value)) => folded(0_i64.checked_sub_unsigned(value)),
        (T::Minus, Literal::Decimal { negative, place }) => Value::Literal(Literal::Decimal {
            negative: !negative,
            place,
        }),
        _ => Value::Other,
    }
}

/// `left operator right`, where the operator calculates.
pub(super) fn calculated(left: &Value, operator: T, right: &Value) -> Value {
    let (Value::Literal(Literal::Integer(left)), Value::Literal(Literal::Integer(right))) =
        (left, right)
    else {
        return Value::Other;
    };
    // Unsigned operands make the result unsigned, which may fail; their sums are left alone.
    match operator {
        T::Plus => folded(left.checked_add(*right)),
        T::Minus => folded(left.checked_sub(*right)),
        T::Star => folded(left.checked_mul(*right)),
        _ => Value::Other,
    }
}

fn folded(value: Option<i64>) -> Value {
    value.map_or(Value::Other, |value| {
        Value::Literal(Literal::Integer(value))
    })
}

/// `left AND right`
pub(super) fn conjunction(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Conjuncts(mut left), Value::Conjuncts(right)) => {
            let equalities = left.list.iter().filter(|one| is_equality(one)).count();
            let mut room = EQUALITIES_MAX.saturating_sub(equalities);
            let mut room_for_others = CONDITIONS_MAX.saturating_sub(left.list.len() - equalities);
            let all = left.list.len() + right.list.len();
            left.list.extend(right.list.into_iter().filter(|one| {
                let room = if is_equality(one) {
                    &mut room
                } else {
                    &mut room_for_others
                };
                let has_room = *room > 0;
                *room -= usize::from(has_room);
                has_room
            }));
            left.is_all &= right.is_all && left.list.len() == all;
            Value::Conjuncts(left)
        }
        (Value::Conjuncts(known), _) | (_, Value::Conjuncts(known)) => {
            Value::Conjuncts(Conjuncts {
                is_all: false,
                ..known
            })
        }
        _ => Value::Other,
    }
}

/// Whether it compares two columns.
fn is_equality(condition: &Condition) -> bool {
    matches!(condition.test, Test::Column(_))
}

/// `left OR right`
pub(super) fn disjunction(left: Value, right: Value) -> Value {
    let (Value::Conjuncts(mut left), Value::Conjuncts(mut right)) = (left, right) else {
        return Value::Other;
    };
    // Of two such lists nothing can be joined but the constants.
    for Conjuncts { list, is_all } in [&mut left, &mut right] {
        let before = list.len();
        list.retain(|one| !is_equality(one));
        *is_all &= list.len() == before;
    }
    if left.list.len() != 1 || right.list.len() != 1 {
        return Value::Other;
    }
    let (Some(mut known), Some(other)) = (left.list.pop(), right.list.pop()) else {
        return Value::Other;
    };
    match (&mut known.test, other.test) {
        (Test::In(constants), Test::In(more))
            if known.column == other.column && constants.len() + more.len() <= CONSTANTS_MAX =>
        {
            constants.extend(more);
            Value::Conjuncts(Conjuncts {
                list: vec![known],
                is_all: left.is_all && right.is_all,
            })
        }
        _ => Value::Other,
    }
}

/// The value of digits; `None` if there are other bytes or if it is too large.
pub(crate) fn integer(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A decimal number in its usual form: `.5` is `0.5`, `5.` is `5`.
fn decimal(digits: &str, negative: bool) -> Option<String> {
    if digits.len() > CONSTANT_BYTES_MAX {
        return None;
    }
    let digits = digits.strip_suffix('.').unwrap_or(digits);
    let sign = if negative { "-" } else { "" };
    let zero = if digits.starts_with('.') { "0" } else { "" };
    Some(format!("{sign}{zero}{digits}"))
}

/// Appends what a string literal in its quotes means. `None` if it is too long to matter.
pub(crate) fn unescape(literal: &[u8], escapes: bool, text: &mut Vec<u8>) -> Option<()> {
    let quote = *literal.first()?;
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    // At least every second byte stays.
    if inner.len() > 2 * CONSTANT_BYTES_MAX {
        return None;
    }
    text.reserve_exact(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == quote {
            // The second of two.
            text.push(bytes.next()?);
        } else if byte == b'\\' && escapes {
            let escaped = bytes.next()?;
            // These two stay as they are: they are escapes of patterns.
            if matches!(escaped, b'%' | b'_') {
                text.push(b'\\');
            }
            text.push(meaning(escaped));
        } else {
            text.push(byte);
        }
    }
    Some(())
}

/// What a byte after a backslash stands for.
fn meaning(escaped: u8) -> u8 {
    match escaped {
        b'0' => 0,
        b'b' => 0x08,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 0x1a,
        other => other,
    }
}
