//! Constants with the values of parameters filled in.

use remora_sql::Constant;
use remora_wire::execute::BoundValue;

/// A constant that a column is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal<'a> {
    /// A whole number.
    Integer(i128),
    /// A plain decimal number: `-12.50`.
    Decimal(&'a str),
    /// Text.
    Text(&'a [u8]),
    /// Whatever the parameter with this number is bound to; for explanations only.
    Any(usize),
    /// NULL, or what can't be told.
    Other,
}

impl<'a> Literal<'a> {
    /// The constant of a statement, given the values that its execution binds; none for a statement
    /// as text.
    pub fn of(constant: &'a Constant, bound: &[BoundValue<'a>]) -> Literal<'a> {
        match constant {
            Constant::Integer(number) => Literal::Integer(*number),
            Constant::Decimal(text) => Literal::Decimal(text),
            Constant::Text(text) => Literal::Text(text),
            Constant::Parameter(at) => match bound.get(*at) {
                Some(BoundValue::Integer(number)) => Literal::Integer(*number),
                Some(BoundValue::Text(text)) => Literal::Text(text),
                Some(BoundValue::Null | BoundValue::Other) | None => Literal::Other,
            },
        }
    }
}
