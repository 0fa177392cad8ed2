//! Expressions, by precedence.

use super::block::Reader;
use super::value::{ColumnPlaces, Valued, calculated, conjunction, disjunction, signed};
use super::{Parsed, SelectParser, Value};
use crate::keyword::Keyword as K;
use crate::reads::{CONSTANTS_MAX, Constant, Noted};
use crate::refusal::Refusal;
use crate::settings::is_in_result_key;
use crate::token::{Token, TokenKind as T};

/// How tightly an operator binds; a larger number binds more tightly.
type Power = u8;

const ANY: Power = 0;
const OR: Power = 1;
const XOR: Power = 2;
const AND: Power = 3;
const NOT: Power = 4;
const COMPARISON: Power = 6;
const BIT_OR: Power = 7;
const BIT_AND: Power = 8;
const SHIFT: Power = 9;
const SUM: Power = 10;
const PRODUCT: Power = 11;
const BIT_XOR: Power = 12;
const CONCATENATION: Power = 13;
const UNARY: Power = 14;
const COLLATION: Power = 15;

/// What follows an infix operator.
enum Infix {
    /// One operand that binds more tightly than the operator.
    Operand(Power),
    /// An operand, or `ANY | ALL (query)`.
    Comparison,
    /// `[NOT] IN | LIKE | BETWEEN | REGEXP …`, `IS …` and the like.
    Predicate,
    Collate,
    JsonPath,
}

impl SelectParser<'_> {
    /// Any expression, of which only the syntax matters.
    pub(crate) fn expression(&mut self) -> Parsed {
        self.column_alone().map(drop)
    }

    /// Any expression. Gives the column if the expression is a column alone.
    pub(super) fn column_alone(&mut self) -> Result<Option<(Token, Noted)>, Refusal> {
        let outer = (self.wants_conditions, self.wants_truth);
        (self.wants_conditions, self.wants_truth) = (false, false);
        let value = self.value()?;
        (self.wants_conditions, self.wants_truth) = outer;
        Ok(self
            .last_noted
            .filter(|_| matches!(value, Value::Column(_))))
    }

    /// Any expression of which only the truth counts. `wants_conditions`: whether what it says of
    /// columns is worth recognising.
    pub(super) fn truth(&mut self, wants_conditions: bool) -> Valued {
        let outer = (self.wants_conditions, self.wants_truth, self.scores);
        (self.wants_conditions, self.wants_truth) = (wants_conditions, true);
        let value = self.value()?;
        (self.wants_conditions, self.wants_truth, self.scores) = outer;
        Ok(value)
    }

    /// Any expression.
    pub(crate) fn value(&mut self) -> Valued {
        self.operand(ANY)
    }

    /// An expression without comparisons and logical operators outside parentheses (`bit_expr`).
    pub(super) fn bit_expression(&mut self) -> Parsed {
        let outer = (self.wants_conditions, self.wants_truth);
        (self.wants_conditions, self.wants_truth) = (false, false);
        self.operand(BIT_OR)?;
        (self.wants_conditions, self.wants_truth) = outer;
        Ok(())
    }

    fn operand(&mut self, power: Power) -> Valued {
        self.nested(|parser| parser.operation(power))
    }

    fn operation(&mut self, power_min: Power) -> Valued {
        let scores = self.scores;
        self.may_take_score = self.wants_truth && power_min <= NOT;
        let mut value = self.prefix()?;
        while let Some((power, infix)) = self.infix() {
            if power < power_min {
                break;
            }
            value = self.infix_operation(value, power, &infix)?;
            if power > AND && self.scores != scores {
                self.refuse(Refusal::FullTextScore);
            }
        }
        Ok(value)
    }

    fn prefix(&mut self) -> Valued {
        let power = match self.cursor.kind() {
            T::Word(K::Not) if self.cursor.lexer().dialect().high_not_precedence => COLLATION,
            T::Word(K::Not) => NOT,
            // `BINARY expression` is a cast.
            T::Minus | T::Plus | T::Tilde | T::Word(K::Binary) => UNARY,
            T::Bang => COLLATION,
            _ => return self.primary(),
        };
        let scores = self.scores;
        let operator = self.cursor.advance().kind;
        let operand = self.operand(power)?;
        let negates = matches!(operator, T::Word(K::Not) | T::Bang);
        if !negates && self.scores != scores {
            self.refuse(Refusal::FullTextScore);
        }
        Ok(signed(operator, &operand))
    }

    /// The infix operator at the cursor, if one stands there.
    fn infix(&self) -> Option<(Power, Infix)> {
        let concatenates = self.cursor.lexer().dialect().pipes_as_concat;
        let (power, infix) = match self.cursor.kind() {
            T::DoublePipe if concatenates => (CONCATENATION, Infix::Operand(UNARY)),
            T::Word(K::Or) | T::DoublePipe => (OR, Infix::Operand(XOR)),
            T::Word(K::Xor) => (XOR, Infix::Operand(AND)),
            T::Word(K::And) | T::DoubleAmpersand => (AND, Infix::Operand(NOT)),
            T::Equal
            | T::NullSafeEqual
            | T::NotEqual
            | T::Less
            | T::LessEqual
            | T::Greater
            | T::GreaterEqual => (COMPARISON, Infix::Comparison),
            T::Word(
                K::Is
                | K::Not
                | K::In
                | K::Like
                | K::Between
                | K::Regexp
                | K::Rlike
                | K::Sounds
                | K::Member,
            ) => (COMPARISON, Infix::Predicate),
            T::Pipe => (BIT_OR, Infix::Operand(BIT_AND)),
            T::Ampersand => (BIT_AND, Infix::Operand(SHIFT)),
            T::ShiftLeft | T::ShiftRight => (SHIFT, Infix::Operand(SUM)),
            T::Plus | T::Minus => (SUM, Infix::Operand(PRODUCT)),
            T::Star | T::Slash | T::Percent | T::Word(K::Div | K::Mod) => {
                (PRODUCT, Infix::Operand(BIT_XOR))
            }
            T::Caret => (BIT_XOR, Infix::Operand(CONCATENATION)),
            T::Word(K::Collate) => (COLLATION, Infix::Collate),
            T::Arrow | T::DoubleArrow => (COLLATION, Infix::JsonPath),
            _ => return None,
        };
        Some((power, infix))
    }

    fn infix_operation(&mut self, left: Value, power: Power, infix: &Infix) -> Valued {
        let operator = match infix {
            Infix::Predicate => return self.predicate(&left),
            _ => self.cursor.advance().kind,
        };
        match infix {
            Infix::Operand(power_right) => {
                let right = self.operand(*power_right)?;
                return Ok(match power {
                    AND => conjunction(left, right),
                    OR => disjunction(left, right),
                    SUM | PRODUCT => {
                        let is_literal = |value: &Value| matches!(value, Value::Literal(_));
                        self.combines_values |= is_literal(&left) && is_literal(&right);
                        calculated(&left, operator, &right)
                    }
                    _ => Value::Other,
                });
            }
            Infix::Comparison => {
                let right = self.compared_operand()?;
                return Ok(self.comparison(&left, operator, &right));
            }
            Infix::Collate => match self.cursor.advance().kind {
                T::String | T::QuotedName | T::Word(K::Binary | K::Other) => {}
                _ => return Err(Refusal::Syntax),
            },
            Infix::JsonPath => self.expect(T::String)?,
            Infix::Predicate => {}
        }
        Ok(Value::Other)
    }

    fn compared_operand(&mut self) -> Valued {
        let quantified = matches!(self.cursor.word(), K::Any | K::Some | K::All)
            && self.cursor.next_kind() == T::LeftParen;
        if quantified {
            self.cursor.advance();
            self.parenthesised(Self::query_expression)?;
            return Ok(Value::Other);
        }
        self.operand(BIT_OR)
    }

    /// `IS [NOT] …`, `[NOT] IN (…)`, `[NOT] LIKE …`, `[NOT] BETWEEN … AND …`, `[NOT] REGEXP …`,
    /// `SOUNDS LIKE …`, `MEMBER OF (…)`.
    fn predicate(&mut self, left: &Value) -> Valued {
        let negated = self.cursor.take_word(K::Not);
        match self.cursor.advance().kind {
            T::Word(K::Is) if !negated => return self.is_predicate(left),
            T::Word(K::In) => {
                let wanted = self.wants_conditions && !negated && matches!(left, Value::Column(_));
                let constants = self.parenthesised(|parser| parser.in_operands(wanted))?;
                return Ok(self.in_list(left, constants));
            }
            T::Word(K::Like) => {
                self.operand(BIT_OR)?;
                if self.cursor.take_word(K::Escape) {
                    self.operand(UNARY)?;
                }
            }
            T::Word(K::Between) => {
                let low = self.operand(BIT_OR)?;
                self.expect_word(K::And)?;
                let high = self.operand(COMPARISON)?;
                if !negated {
                    return Ok(self.between(left, &low, &high));
                }
            }
            T::Word(K::Regexp | K::Rlike) => {
                self.operand(BIT_OR)?;
            }
            T::Word(K::Sounds) if !negated => {
                self.expect_word(K::Like)?;
                self.operand(BIT_OR)?;
            }
            T::Word(K::Member) if !negated => {
                self.cursor.take_word(K::Of);
                self.parenthesised(Self::expression)?;
            }
            _ => return Err(Refusal::Syntax),
        }
        Ok(Value::Other)
    }

    fn is_predicate(&mut self, left: &Value) -> Valued {
        let negated = self.cursor.take_word(K::Not);
        match self.cursor.advance().kind {
            T::Word(K::Null) if !negated => Ok(self.is_null(left)),
            T::Word(K::Null | K::True | K::False | K::Unknown) => Ok(Value::Other),
            _ => Err(Refusal::Syntax),
        }
    }

    /// What stands in the parentheses of `IN (…)`: the constants, if there is nothing else and they
    /// are wanted.
    fn in_operands(&mut self, wanted: bool) -> Result<Option<Vec<Constant>>, Refusal> {
        if matches!(self.cursor.word(), K::Select | K::With) {
            self.query_expression()?;
            return Ok(None);
        }
        let mut constants = wanted.then(Vec::new);
        self.list(|parser| {
            let value = parser.value()?;
            let constant = match (&constants, &value) {
                (Some(known), Value::Literal(literal)) if known.len() < CONSTANTS_MAX => {
                    parser.constant(literal)
                }
                _ => None,
            };
            match (&mut constants, constant) {
                (Some(constants), Some(constant)) => constants.push(constant),
                _ => constants = None,
            }
            Ok(())
        })?;
        if !self.cursor.at(T::RightParen) {
            constants = None;
        }
        // `((SELECT …) UNION (SELECT …))`
        self.query_tail()?;
        Ok(constants)
    }

    fn primary(&mut self) -> Valued {
        match self.cursor.kind() {
            T::String => return Ok(self.strings()),
            T::Number => return Ok(self.number()),
            T::HexOrBit => {
                self.cursor.advance();
            }
            T::Introducer => {
                self.cursor.advance();
                match self.cursor.advance().kind {
                    T::String | T::HexOrBit => {}
                    _ => return Err(Refusal::Syntax),
                }
            }
            T::Placeholder => return Ok(self.placeholder()),
            T::UserVariable => self.user_variable()?,
            T::DoubleAt => self.system_variable()?,
            T::LeftParen => return self.parenthesised(Self::query_or_expressions),
            T::QuotedName if self.cursor.next_kind() == T::LeftParen => self.unknown_call()?,
            T::QuotedName => return self.column(),
            T::Word(word) => return self.word_expression(word),
            _ => return Err(Refusal::Syntax),
        }
        Ok(Value::Other)
    }

    /// What can stand in the parentheses of an expression.
    fn query_or_expressions(&mut self) -> Valued {
        if matches!(self.cursor.word(), K::Select | K::With) {
            self.query_expression()?;
            return Ok(Value::Other);
        }
        let value = self.value()?;
        if self.cursor.at(T::RightParen) {
            return Ok(value);
        }
        // A row.
        while self.cursor.take(T::Comma) {
            self.expression()?;
        }
        // `((SELECT …) UNION (SELECT …))`
        self.query_tail()?;
        Ok(Value::Other)
    }

    fn word_expression(&mut self, word: K) -> Valued {
        match word {
            K::Null | K::True | K::False => {
                self.cursor.advance();
            }
            K::Case => self.case()?,
            K::Exists => {
                self.cursor.advance();
                self.next_reader = Reader::Exists;
                self.parenthesised(Self::query_expression)?;
            }
            K::Row if self.cursor.next_kind() == T::LeftParen => {
                self.cursor.advance();
                self.parenthesised(|parser| parser.list(Self::expression))?;
            }
            K::Interval => self.interval()?,
            K::Match => self.match_against()?,
            K::Date | K::Timestamp | K::Time if self.cursor.next_kind() == T::String => {
                if word == K::Time {
                    self.refuse(Refusal::TimeOfDay);
                }
                self.cursor.advance();
                self.expect(T::String)?;
            }
            K::Next | K::Previous if self.cursor.next_is_word(K::Value) => {
                return Err(Refusal::Sequence);
            }
            _ if self.cursor.next_kind() == T::LeftParen => self.call()?,
            K::CurrentDate
            | K::CurrentTime
            | K::CurrentTimestamp
            | K::Localtime
            | K::Localtimestamp
            | K::UtcDate
            | K::UtcTime
            | K::UtcTimestamp => {
                self.refuse(Refusal::ClockFunction);
                self.cursor.advance();
            }
            K::CurrentUser => {
                self.refuse(Refusal::SessionFunction);
                self.cursor.advance();
            }
            _ if self.cursor.at_name() => return self.column(),
            _ => return Err(Refusal::Syntax),
        }
        Ok(Value::Other)
    }

    /// `column`, `table.column`, `schema.table.column`; or the call of a stored function by its
    /// schema.
    fn column(&mut self) -> Valued {
        let mut last = self.cursor.advance();
        let mut name = ColumnPlaces::after(None, last);
        if !self.cursor.at(T::Dot) && is_function_without_parentheses(self.cursor.bytes(last)) {
            self.refuse(Refusal::SessionFunction);
            name = None;
        }
        for _ in 0..2 {
            if !self.cursor.take(T::Dot) {
                break;
            }
            if !crate::cursor::is_name_after_dot(self.cursor.current()) {
                return Err(Refusal::Syntax);
            }
            if self.cursor.next_kind() == T::LeftParen {
                self.unknown_call()?;
                return Ok(Value::Other);
            }
            last = self.cursor.advance();
            name = name.and_then(|before| ColumnPlaces::after(Some(before), last));
        }
        if self.cursor.at(T::Dot) {
            return Err(Refusal::Syntax);
        }
        self.note_column(last);
        Ok(name.map_or(Value::Other, Value::Column))
    }

    fn user_variable(&mut self) -> Parsed {
        self.refuse(Refusal::UserVariable);
        self.cursor.advance();
        if self.cursor.take(T::Assign) {
            self.expression()
        } else {
            Ok(())
        }
    }

    /// `@@name`, `@@scope.name`
    fn system_variable(&mut self) -> Parsed {
        self.cursor.advance();
        let of_session = matches!(self.cursor.word(), K::Session | K::Local)
            && self.cursor.next_kind() == T::Dot;
        let mut dots = 0;
        loop {
            let token = self.cursor.advance();
            if !crate::cursor::is_name_after_dot(token) {
                return Err(Refusal::Syntax);
            }
            let name = self.cursor.name_bytes(token);
            self.findings.note_system_variable(&name);
            if self.cursor.take(T::Dot) {
                dots += 1;
                continue;
            }
            let is_sessions = dots == usize::from(of_session);
            // Refused, unless all sessions that share the result have the same value.
            if !is_sessions || !is_in_result_key(&name) {
                self.refuse(Refusal::SystemVariable);
            }
            return Ok(());
        }
    }

    fn case(&mut self) -> Parsed {
        self.expect_word(K::Case)?;
        let compares = !self.cursor.at_word(K::When);
        if compares {
            self.expression()?;
        }
        while self.cursor.take_word(K::When) {
            if compares {
                self.expression()?;
            } else {
                self.truth(false)?;
            }
            self.expect_word(K::Then)?;
            self.expression()?;
        }
        if self.cursor.take_word(K::Else) {
            self.expression()?;
        }
        self.expect_word(K::End)
    }

    /// `INTERVAL expression unit`, or the function `INTERVAL(…)`, which has no unit.
    pub(super) fn interval(&mut self) -> Parsed {
        self.expect_word(K::Interval)?;
        self.reads.makes_dates = true;
        self.expression()?;
        if is_interval_unit(self.cursor.word()) {
            self.cursor.advance();
        }
        Ok(())
    }

    /// `MATCH (columns) AGAINST (expression [modifier])`
    ///
    /// Its value is a score, for which InnoDB takes the number of rows from its statistics: inserts
    /// count there before they are committed, and stay for a while if they never are. No log tells
    /// of that. Whether a row fits at all doesn't depend on it. So the search may only stand where
    /// no more than its truth counts: as a condition, or joined to others by logical operators.
    /// Rows come in the order of their scores if nothing else orders them, so `LIMIT` alone would
    /// choose by the score.
    fn match_against(&mut self) -> Parsed {
        self.expect_word(K::Match)?;
        if !self.may_take_score {
            self.refuse(Refusal::FullTextScore);
        }
        self.scores += 1;
        // A word's weight depends on how many of the table's rows contain it.
        self.depends_on_other_rows = true;
        // MySQL can answer from the full-text index alone, without the transaction's snapshot.
        self.gives_rows_of_nothing = true;
        self.parenthesised(|parser| parser.list(Self::column_name))?;
        self.expect_word(K::Against)?;
        self.parenthesised(|parser| {
            parser.bit_expression()?;
            if parser.cursor.take_word(K::In) {
                if !parser.cursor.take_word(K::Boolean) {
                    parser.expect_word(K::Natural)?;
                    parser.expect_word(K::Language)?;
                }
                parser.expect_word(K::Mode)?;
            }
            if parser.cursor.take_word(K::With) {
                parser.expect_word(K::Query)?;
                parser.expect_word(K::Expansion)?;
                // Which words are added depends on which rows fit best.
                parser.refuse(Refusal::FullTextScore);
            }
            Ok(())
        })
    }

    fn column_name(&mut self) -> Parsed {
        if !self.cursor.at_name() {
            return Err(Refusal::Syntax);
        }
        self.column().map(drop)
    }
}

/// Words that are functions in some server though no parentheses follow, such as MariaDB's
/// `CURRENT_ROLE`.
fn is_function_without_parentheses(word: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"current_";
    let others = [&b"sysdate"[..], b"rownum", b"session_user", b"system_user"];
    word.get(..BEGINNING.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(BEGINNING))
        || others.iter().any(|other| other.eq_ignore_ascii_case(word))
}

/// The units of `INTERVAL`, `EXTRACT` and `TIMESTAMPDIFF`.
pub(super) fn is_interval_unit(word: K) -> bool {
    matches!(
        word,
        K::Microsecond
            | K::Second
            | K::Minute
            | K::Hour
            | K::Day
            | K::Week
            | K::Month
            | K::Quarter
            | K::Year
            | K::SecondMicrosecond
            | K::MinuteMicrosecond
            | K::MinuteSecond
            | K::HourMicrosecond
            | K::HourSecond
            | K::HourMinute
            | K::DayMicrosecond
            | K::DaySecond
            | K::DayMinute
            | K::DayHour
            | K::YearMonth
            | K::SqlTsiSecond
            | K::SqlTsiMinute
            | K::SqlTsiHour
            | K::SqlTsiDay
            | K::SqlTsiWeek
            | K::SqlTsiMonth
            | K::SqlTsiQuarter
            | K::SqlTsiYear
    )
}
