//! Constants with the values of parameters filled in.

use remora_sql::Constant;
use remora_wire::execute::BoundValue;

use crate::facts::ColumnKind;

/// What the server does with a statement's string literals before it compares them with a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StringConversion {
    /// Nothing: it compares the bytes that the client sent.
    None,
    /// It converts them from the client's character set to that of the connection.
    ToConnection,
}

/// A constant that a column is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal<'a> {
    /// A whole number.
    Integer(i128),
    /// A plain decimal number: `-12.50`.
    Decimal(&'a str),
    /// Text.
    Text {
        /// As the client sent it, without quotes and escapes.
        bytes: &'a [u8],
        /// What the server does with it.
        conversion: StringConversion,
    },
    /// Whatever the parameter with this number is bound to; for explanations only.
    Any(usize),
    /// NULL, or what can't be told.
    Other,
}

impl<'a> Literal<'a> {
    /// The constant of a statement, given the values that its execution binds; none for a statement
    /// as text.
    pub fn of(
        constant: &'a Constant,
        bound: &[BoundValue<'a>],
        conversion: StringConversion,
    ) -> Literal<'a> {
        let text = |bytes, conversion| Literal::Text { bytes, conversion };
        // Servers may go by the settings under which the parameter's type was named.
        let of_parameter = StringConversion::ToConnection;
        match constant {
            Constant::Integer(number) => Literal::Integer(*number),
            Constant::Decimal(text) => Literal::Decimal(text),
            Constant::Text(bytes) => text(bytes, conversion),
            Constant::Parameter(at) => match bound.get(*at) {
                Some(BoundValue::Integer(number)) => Literal::Integer(*number),
                Some(BoundValue::Text(bytes)) => text(bytes, of_parameter),
                Some(BoundValue::Null | BoundValue::Other) | None => Literal::Other,
            },
        }
    }

    /// What it is to a column of this kind: to an ENUM the number of a label, where it is one.
    pub(super) fn of_column(self, kind: &ColumnKind) -> Literal<'a> {
        let ColumnKind::Enum { labels, .. } = kind else {
            return self;
        };
        let number = match self {
            Literal::Integer(number) => Some(number),
            Literal::Text { bytes, .. } => {
                let at = labels.iter().position(|label| label.as_bytes() == bytes);
                at.and_then(|at| i128::try_from(at + 1).ok())
            }
            Literal::Decimal(_) | Literal::Any(_) | Literal::Other => None,
        };
        let labels = 1..=i128::try_from(labels.len()).unwrap_or(0);
        let number = number.filter(|number| labels.contains(number));
        number.map_or(Literal::Other, Literal::Integer)
    }
}
