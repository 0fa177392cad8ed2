//! Calls of functions: only those that are known, each in its own form.

use super::expression::is_interval_unit;
use super::{Parsed, Placeholders, SelectParser};
use crate::everything::EverythingReason;
use crate::functions::{Class, Function, Shape, native_function};
use crate::keyword::Keyword as K;
use crate::refusal::Refusal;
use crate::scan::{call_is_adjacent, refusal_of};
use crate::token::TokenKind as T;

/// Functions whose result MariaDB 10.11 gives the length 0 at the first execution of a prepared
/// statement, and their true length later.
const DESCRIBED_ANEW: [&str; 3] = ["BIN", "CONV", "OCT"];

impl SelectParser<'_> {
    /// A call whose name stands at the cursor, without a schema, and whose `(` follows.
    pub(super) fn call(&mut self) -> Parsed {
        let name = self.cursor.current();
        if matches!(name.kind, T::Word(K::Default | K::Values)) {
            self.refuse(Refusal::ColumnValueFunction);
            self.cursor.advance();
            return self.parenthesised(Self::expression);
        }
        let known = native_function(self.cursor.bytes(name), self.cursor.lexer().dialect());
        let Some(function) = known else {
            return self.unknown_call();
        };
        if !call_is_adjacent(function, name, self.cursor.next(), self.cursor.lexer()) {
            return self.unknown_call();
        }
        self.cursor.advance();
        self.cursor.advance();
        let without_arguments = self.cursor.at(T::RightParen);
        if let Some(refusal) = refusal_of(function.class, without_arguments) {
            self.refuse(refusal);
        }
        if self.placeholders == Placeholders::AreBound && DESCRIBED_ANEW.contains(&function.name) {
            self.refuse(Refusal::PreparedColumns);
        }
        self.findings.note_known(function.class);
        self.reads.makes_dates |= function.makes_dates();
        self.nested(|parser| parser.arguments(function))?;
        self.expect(T::RightParen)?;
        self.after_call(function)
    }

    /// A call that can run somebody's code: by schema, in quotes, or of an unknown name.
    pub(super) fn unknown_call(&mut self) -> Parsed {
        self.refuse_write(Refusal::UnknownFunction, EverythingReason::UnknownFunction);
        self.cursor.advance();
        self.parenthesised(|parser| parser.optional_list(Self::expression))
    }

    fn optional_list(&mut self, part: impl FnMut(&mut Self) -> Parsed) -> Parsed {
        if self.cursor.at(T::RightParen) {
            Ok(())
        } else {
            self.list(part)
        }
    }

    fn arguments(&mut self, function: &Function) -> Parsed {
        match function.shape {
            Shape::List if function.name == "GET_FORMAT" => self.get_format(),
            Shape::List => self.optional_list(Self::expression),
            Shape::Aggregate => self.aggregate_arguments(),
            Shape::GroupConcat => self.group_concat(),
            Shape::Cast => {
                self.expression()?;
                self.expect_word(K::As)?;
                self.cast_type()
            }
            Shape::Convert => {
                self.expression()?;
                if self.cursor.take_word(K::Using) {
                    return self.character_set();
                }
                self.expect(T::Comma)?;
                self.cast_type()
            }
            Shape::Extract => {
                self.interval_unit()?;
                self.expect_word(K::From)?;
                self.expression()
            }
            Shape::Trim => self.trim(),
            Shape::Substring => {
                self.expression()?;
                if self.cursor.take_word(K::From) {
                    self.expression()?;
                    return if self.cursor.take_word(K::For) {
                        self.expression()
                    } else {
                        Ok(())
                    };
                }
                self.expect(T::Comma)?;
                self.list(Self::expression)
            }
            Shape::Position => {
                self.bit_expression()?;
                self.expect_word(K::In)?;
                self.expression()
            }
            Shape::Char => {
                self.list(Self::expression)?;
                if self.cursor.take_word(K::Using) {
                    self.character_set()
                } else {
                    Ok(())
                }
            }
            Shape::DateArithmetic => self.list(|parser| {
                if parser.cursor.at_word(K::Interval) {
                    return parser.interval();
                }
                parser.expression()
            }),
            Shape::IntervalUnit => {
                self.interval_unit()?;
                self.expect(T::Comma)?;
                self.list(Self::expression)
            }
        }
    }

    fn interval_unit(&mut self) -> Parsed {
        if !is_interval_unit(self.cursor.word()) {
            return Err(Refusal::Syntax);
        }
        self.cursor.advance();
        Ok(())
    }

    fn aggregate_arguments(&mut self) -> Parsed {
        if self.cursor.take(T::Star) {
            return Ok(());
        }
        self.cursor.skip_words(&[K::Distinct, K::All]);
        self.list(Self::expression)
    }

    fn group_concat(&mut self) -> Parsed {
        self.cursor.take_word(K::Distinct);
        self.list(Self::expression)?;
        if self.cursor.take_word(K::Order) {
            self.expect_word(K::By)?;
            self.list(Self::order_element)?;
        }
        if self.cursor.take_word(K::Separator) {
            self.expect(T::String)
        } else {
            Ok(())
        }
    }

    fn get_format(&mut self) -> Parsed {
        if !matches!(
            self.cursor.word(),
            K::Date | K::Time | K::Datetime | K::Timestamp
        ) {
            return Err(Refusal::Syntax);
        }
        self.cursor.advance();
        self.expect(T::Comma)?;
        self.expression()
    }

    fn trim(&mut self) -> Parsed {
        let sided = matches!(self.cursor.word(), K::Both | K::Leading | K::Trailing);
        if sided {
            self.cursor.advance();
        }
        if !(sided && self.cursor.at_word(K::From)) {
            self.expression()?;
        }
        if self.cursor.take_word(K::From) {
            self.expression()
        } else {
            Ok(())
        }
    }

    fn character_set(&mut self) -> Parsed {
        match self.cursor.advance().kind {
            T::String | T::QuotedName | T::Word(K::Other | K::Ascii | K::Binary) => Ok(()),
            _ => Err(Refusal::Syntax),
        }
    }

    /// The types to which `CAST` and `CONVERT` convert.
    fn cast_type(&mut self) -> Parsed {
        self.reads.makes_dates |= matches!(self.cursor.word(), K::Date | K::Datetime);
        match self.cursor.advance().kind {
            T::Word(K::Signed | K::Unsigned) => {
                self.cursor.skip_words(&[K::Integer, K::Int]);
                Ok(())
            }
            T::Word(K::Double) => {
                self.cursor.take_word(K::Precision);
                Ok(())
            }
            T::Word(K::Char | K::Nchar | K::Varchar) => {
                self.type_length()?;
                if self.cursor.take_word(K::Character) {
                    self.expect_word(K::Set)?;
                    return self.character_set();
                }
                if self.cursor.take_word(K::Charset) {
                    return self.character_set();
                }
                self.cursor.skip_words(&[K::Ascii, K::Unicode, K::Binary]);
                Ok(())
            }
            T::Word(K::Time) => {
                self.refuse(Refusal::TimeOfDay);
                self.type_length()
            }
            T::Word(
                K::Binary
                | K::Date
                | K::Datetime
                | K::Decimal
                | K::Dec
                | K::Numeric
                | K::Fixed
                | K::Float
                | K::Real
                | K::Integer
                | K::Int
                | K::Json
                | K::Year,
            ) => self.type_length(),
            _ => Err(Refusal::Syntax),
        }
    }

    /// `(n)` or `(n, m)`, optional.
    fn type_length(&mut self) -> Parsed {
        if !self.cursor.at(T::LeftParen) {
            return Ok(());
        }
        self.parenthesised(|parser| parser.list(|parser| parser.expect(T::Number)))
    }

    /// What may follow the arguments: `OVER …`.
    fn after_call(&mut self, function: &Function) -> Parsed {
        let windowed = matches!(function.class, Class::Window | Class::Aggregate);
        self.gives_rows_of_nothing |= function.class == Class::Aggregate;
        if !windowed {
            return Ok(());
        }
        if function.class == Class::Window && self.cursor.word() != K::Over {
            if matches!(self.cursor.word(), K::Respect | K::Ignore) {
                self.cursor.advance();
                self.expect_word(K::Nulls)?;
            }
            if !self.cursor.at_word(K::Over) {
                // Without a window the name can be a stored function's.
                self.refuse_write(Refusal::UnknownFunction, EverythingReason::UnknownFunction);
                return Ok(());
            }
        }
        if !self.cursor.take_word(K::Over) {
            return Ok(());
        }
        if self.cursor.at(T::LeftParen) {
            return self.window_specification();
        }
        self.expect_name().map(drop)
    }

    /// `([name] [PARTITION BY …] [ORDER BY …] [frame])`
    pub(super) fn window_specification(&mut self) -> Parsed {
        self.parenthesised(|parser| {
            if parser.at_implicit_alias() && !matches!(parser.cursor.word(), K::Rows | K::Groups) {
                parser.cursor.advance();
            }
            if parser.cursor.take_word(K::Partition) {
                parser.expect_word(K::By)?;
                parser.list(Self::order_element)?;
            }
            if parser.cursor.take_word(K::Order) {
                parser.expect_word(K::By)?;
                parser.list(Self::order_element)?;
            }
            if matches!(parser.cursor.word(), K::Rows | K::Range | K::Groups) {
                parser.cursor.advance();
                return parser.frame();
            }
            Ok(())
        })
    }

    fn frame(&mut self) -> Parsed {
        if !self.cursor.take_word(K::Between) {
            return self.frame_bound();
        }
        self.frame_bound()?;
        self.expect_word(K::And)?;
        self.frame_bound()
    }

    fn frame_bound(&mut self) -> Parsed {
        if self.cursor.take_word(K::Current) {
            return self.expect_word(K::Row);
        }
        if !self.cursor.take_word(K::Unbounded) {
            if self.cursor.at_word(K::Interval) {
                self.interval()?;
            } else {
                self.bit_expression()?;
            }
        }
        match self.cursor.advance().kind {
            T::Word(K::Preceding | K::Following) => Ok(()),
            _ => Err(Refusal::Syntax),
        }
    }
}
