//! The body of `COM_STMT_EXECUTE`: which statement, how, and with which values.
//!
//! Source: MySQL internals, "`COM_STMT_EXECUTE`"; MariaDB knowledge base, "`COM_STMT_EXECUTE`".
//!
//! A client names the types of its values when they have changed since the last time, and leaves
//! them out else: then the server remembers them, and so must whoever reads the values.

use crate::command::CURSOR_FLAGS;
use crate::parameters::{NullBitmap, ParameterType, read_value};
use crate::reader::{Reader, put_length};
use crate::{Capabilities, WireError};

/// `COM_STMT_EXECUTE`.
const EXECUTE: u8 = 0x17;
/// The statement number by which MariaDB's clients mean the statement prepared last.
pub const LAST_PREPARED: u32 = u32::MAX;

/// The flag by which a client with query attributes says that a count of parameters follows.
const PARAMETER_COUNT_AVAILABLE: u8 = 0x08;
/// Bytes of a parameter's type: the type itself and whether it is unsigned.
const TYPE_BYTES: usize = 2;
/// `MYSQL_TYPE_TIME` and `MYSQL_TYPE_TIME2`.
const TIME_TYPES: [u8; 2] = [0x0b, 0x13];

/// An execution of a prepared statement.
///
/// Query attributes, which may stand behind the parameters, are no part of it: only a function that
/// isn't known to be deterministic can read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution<'a> {
    /// Whether the rows shall stay on the server, to be fetched.
    pub wants_cursor: bool,
    /// How many parameters the statement has.
    count: usize,
    /// A bit for each parameter that is NULL, and perhaps bits of what follows.
    nulls: &'a [u8],
    /// The types, if they were sent.
    types: Option<SentTypes<'a>>,
    /// The values that aren't NULL, one after the other.
    values: &'a [u8],
}

/// The types of parameters as a client sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentTypes<'a> {
    bytes: &'a [u8],
    count: usize,
    /// With query attributes each type is followed by a name.
    are_named: bool,
}

impl<'a> Execution<'a> {
    /// Reads what follows the statement's number, for a statement with so many parameters.
    ///
    /// # Errors
    /// It isn't one, or it is one of a form that servers understand and clients don't send.
    pub fn parse(
        body: &'a [u8],
        parameters: u16,
        capabilities: Capabilities,
    ) -> Result<Execution<'a>, WireError> {
        let mut reader = Reader::new(body);
        let flags = reader.u8("execution's flags")?;
        reader.u32("execution's iterations")?;
        let count = usize::from(parameters);
        let are_named = capabilities.has(Capabilities::QUERY_ATTRIBUTES);
        let mut sent = count;
        if are_named && (count > 0 || flags & PARAMETER_COUNT_AVAILABLE != 0) {
            let all = reader.length("execution's parameter count")?;
            sent = usize::try_from(all)
                .ok()
                .filter(|sent| *sent >= count)
                .ok_or(WireError::Malformed("execution's parameter count"))?;
        }
        let mut execution = Execution {
            wants_cursor: flags & CURSOR_FLAGS != 0,
            count,
            nulls: &[],
            types: None,
            values: &[],
        };
        if sent > 0 {
            execution.nulls = reader.bytes(sent.div_ceil(8), "execution's NULLs")?;
            if reader.u8("execution's mark of types")? != 0 {
                execution.types = Some(SentTypes::read(&mut reader, count, are_named)?);
                SentTypes::read(&mut reader, sent - count, are_named)?;
            }
        }
        execution.values = reader.rest();
        if sent > count {
            execution.leave_out_attributes()?;
        }
        Ok(execution)
    }

    /// Cuts off the values that stand behind the parameters'.
    fn leave_out_attributes(&mut self) -> Result<(), WireError> {
        const WHAT: &str = "execution with query attributes";
        let mut reader = Reader::new(self.values);
        if self.count > 0 {
            let types = self.types.ok_or(WireError::Unsupported(WHAT))?;
            let mut nulls = Reader::new(self.nulls);
            let nulls = NullBitmap::read(&mut nulls, self.count)?;
            for (at, [kind, flags]) in types.iter().enumerate() {
                if !nulls.is_null(at) {
                    read_value(&mut reader, ParameterType { kind, flags })?;
                }
            }
        }
        self.values = &self.values[..self.values.len() - reader.rest().len()];
        Ok(())
    }

    /// The body of the same execution with these types in it, as [`SentTypes::store`] has put them
    /// down; `body` is what this one was read from, and names none.
    pub fn body_with(&self, body: &[u8], types: &[u8], capabilities: Capabilities) -> Vec<u8> {
        debug_assert!(self.types.is_none() && types.len() == self.count * TYPE_BYTES);
        let (head, values) = body.split_at(body.len() - self.values.len());
        let mut whole = Vec::with_capacity(body.len() + types.len() + self.count);
        // The last byte of the head says that no types follow.
        whole.extend_from_slice(&head[..head.len().saturating_sub(1)]);
        whole.push(1);
        put_types(&mut whole, types, capabilities);
        whole.extend_from_slice(values);
        whole
    }

    /// The types, if they were sent.
    pub fn types(&self) -> Option<SentTypes<'a>> {
        self.types
    }

    /// Appends the values in a form that is the same for the same values, given their types.
    pub fn put_values(&self, out: &mut Vec<u8>) {
        let own = self.nulls.len().min(self.count.div_ceil(8));
        out.extend_from_slice(&self.nulls[..own]);
        if let (Some(last), used @ 1..) = (out.last_mut(), self.count % 8) {
            // The bits behind are an attribute's, or nothing's.
            *last &= (1 << used) - 1;
        }
        out.extend_from_slice(self.values);
    }
}

/// A `COM_STMT_EXECUTE` that has NULL for every parameter and names these types, as
/// [`SentTypes::store`] has put them down: the server remembers them.
pub fn execution_of_nulls(statement: u32, types: &[u8], capabilities: Capabilities) -> Vec<u8> {
    let count = types.len() / TYPE_BYTES;
    let mut payload = vec![EXECUTE];
    payload.extend_from_slice(&statement.to_le_bytes());
    // No flags, one iteration.
    payload.extend_from_slice(&[0, 1, 0, 0, 0]);
    if capabilities.has(Capabilities::QUERY_ATTRIBUTES) && count > 0 {
        put_length(&mut payload, count as u64);
    }
    payload.resize(payload.len() + count.div_ceil(8), 0xff);
    payload.push(1);
    put_types(&mut payload, types, capabilities);
    payload
}

/// Types as a client names them; where names belong to them, empty ones.
fn put_types(out: &mut Vec<u8>, types: &[u8], capabilities: Capabilities) {
    if !capabilities.has(Capabilities::QUERY_ATTRIBUTES) {
        out.extend_from_slice(types);
        return;
    }
    for [kind, flags] in types.as_chunks().0 {
        out.extend_from_slice(&[*kind, *flags, 0]);
    }
}

/// A bound value, as far as it can be compared with a column's without the server's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundValue<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i128),
    /// Text in the session's character set.
    Text(&'a [u8]),
    /// A value of any other type.
    Other,
}

impl<'a> Execution<'a> {
    /// The values, given their types as [`SentTypes::store`] has put them down. Those behind one
    /// that can't be read, or has no type, are [`BoundValue::Other`].
    pub fn bound_values(&self, types: &[u8]) -> Vec<BoundValue<'a>> {
        let mut reader = Reader::new(self.values);
        let nulls = NullBitmap::read(&mut Reader::new(self.nulls), self.count).ok();
        let mut is_readable = nulls.is_some();
        let value = |at: usize| {
            if nulls.is_some_and(|nulls| nulls.is_null(at)) {
                return BoundValue::Null;
            }
            let pair = types.get(at * TYPE_BYTES..(at + 1) * TYPE_BYTES);
            let value = pair.filter(|_| is_readable).and_then(|pair| {
                let of_type = ParameterType {
                    kind: pair[0],
                    flags: pair[1],
                };
                let bytes = read_value(&mut reader, of_type).ok()?;
                Some(BoundValue::of(of_type, bytes))
            });
            is_readable &= value.is_some();
            value.unwrap_or(BoundValue::Other)
        };
        (0..self.count).map(value).collect()
    }
}

impl<'a> BoundValue<'a> {
    /// The value with these bytes, a length at their start among them.
    fn of(of_type: ParameterType, bytes: &'a [u8]) -> BoundValue<'a> {
        match of_type.kind {
            // TINY, SHORT, LONG, LONGLONG
            0x01 | 0x02 | 0x03 | 0x08 => {
                let word = bytes
                    .iter()
                    .rev()
                    .fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
                let unused = 64 - 8 * u32::try_from(bytes.len()).unwrap_or(8).clamp(1, 8);
                BoundValue::Integer(if of_type.is_unsigned() {
                    word.into()
                } else {
                    ((word << unused).cast_signed() >> unused).into()
                })
            }
            // VARCHAR, VAR_STRING, STRING
            0x0f | 0xfd | 0xfe => match Reader::new(bytes).length_encoded_bytes("text") {
                Ok(Some(text)) => BoundValue::Text(text),
                _ => BoundValue::Other,
            },
            _ => BoundValue::Other,
        }
    }
}

impl<'a> SentTypes<'a> {
    fn read(
        reader: &mut Reader<'a>,
        count: usize,
        are_named: bool,
    ) -> Result<SentTypes<'a>, WireError> {
        const WHAT: &str = "execution's types";
        let start = reader.rest();
        if are_named {
            for _ in 0..count {
                reader.bytes(TYPE_BYTES, WHAT)?;
                reader
                    .length_encoded_bytes(WHAT)?
                    .ok_or(WireError::Malformed(WHAT))?;
            }
        } else {
            reader.bytes(count * TYPE_BYTES, WHAT)?;
        }
        let bytes = &start[..start.len() - reader.rest().len()];
        Ok(SentTypes {
            bytes,
            count,
            are_named,
        })
    }

    /// Each type: `MYSQL_TYPE_*`, then 0x80 if it is unsigned.
    pub fn iter(&self) -> impl Iterator<Item = [u8; TYPE_BYTES]> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        let are_named = self.are_named;
        (0..self.count).map_while(move |_| {
            let pair = reader.bytes(TYPE_BYTES, "").ok()?;
            if are_named {
                reader.length_encoded_bytes("").ok()?;
            }
            Some([pair[0], pair[1]])
        })
    }

    /// Whether they are these, as [`Self::store`] has put them down.
    pub fn are(&self, known: &[u8]) -> bool {
        if !self.are_named {
            return self.bytes == known;
        }
        known.len() == self.count * TYPE_BYTES
            && self.iter().eq(known.as_chunks().0.iter().copied())
    }

    /// Puts them down in place of others.
    pub fn store(&self, known: &mut Vec<u8>) {
        known.clear();
        known.extend(self.iter().flatten());
    }
}

/// Whether one of the types put down is `TIME`: such a value, compared with a date, is completed
/// with the day on which the statement runs.
pub fn has_time(types: &[u8]) -> bool {
    types
        .chunks(TYPE_BYTES)
        .any(|pair| TIME_TYPES.contains(&pair[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_types() {
        let mut body = vec![0, 1, 0, 0, 0, 0b0000_0100, 1];
        let types: &[[u8; 2]] = &[
            [0x08, 0],
            [0xfd, 0],
            [0x03, 0],
            [0x01, 0x80],
            [0x02, 0],
            [0x05, 0],
            [0x03, 0],
        ];
        let types: Vec<u8> = types.concat();
        body.extend(&types);
        body.extend((-5_i64).to_le_bytes());
        body.extend(b"\x02ab\xff\xfe\xff");
        body.extend(1.5_f64.to_le_bytes());
        body.extend(7_i32.to_le_bytes());
        let execution = Execution::parse(&body, 7, PLAIN).unwrap();
        let expected = [
            BoundValue::Integer(-5),
            BoundValue::Text(b"ab"),
            BoundValue::Null,
            BoundValue::Integer(255),
            BoundValue::Integer(-2),
            BoundValue::Other,
            BoundValue::Integer(7),
        ];
        assert_eq!(execution.bound_values(&types), expected);
        let unknown = execution.bound_values(&types[..2]);
        assert_eq!(unknown[0], BoundValue::Integer(-5));
        assert!(unknown[3..].iter().all(|value| *value == BoundValue::Other));
    }

    const PLAIN: Capabilities = Capabilities::PROTOCOL_41;
    const NAMED: Capabilities = PLAIN.with(Capabilities::QUERY_ATTRIBUTES);
    const LONGLONG: [u8; 2] = [0x08, 0];
    const VAR_STRING: [u8; 2] = [0xfd, 0];

    fn head(flags: u8) -> Vec<u8> {
        vec![flags, 1, 0, 0, 0]
    }

    fn values(execution: &Execution<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        execution.put_values(&mut out);
        out
    }

    #[test]
    fn without_parameters_nothing_follows() {
        let body = head(0);
        let execution = Execution::parse(&body, 0, PLAIN).unwrap();
        assert!(!execution.wants_cursor && execution.types().is_none());
        assert!(values(&execution).is_empty());
        assert!(Execution::parse(&head(1), 0, NAMED).unwrap().wants_cursor);
    }

    #[test]
    fn types_are_sent_once_and_remembered() {
        let mut first = head(0);
        first.extend([0b10, 1]);
        first.extend([LONGLONG, VAR_STRING].concat());
        first.extend(7_u64.to_le_bytes());
        let first = Execution::parse(&first, 2, PLAIN).unwrap();
        let mut known = Vec::new();
        first.types().unwrap().store(&mut known);
        assert_eq!(known, [LONGLONG, VAR_STRING].concat());
        assert!(first.types().unwrap().are(&known));
        let mut again = head(0);
        again.extend([0b10, 0]);
        again.extend(7_u64.to_le_bytes());
        let again = Execution::parse(&again, 2, PLAIN).unwrap();
        assert_eq!(again.types(), None);
        assert_eq!(values(&again), values(&first));
    }

    #[test]
    fn names_of_parameters_are_passed_over() {
        let mut body = head(PARAMETER_COUNT_AVAILABLE);
        body.extend([2, 0, 1]);
        body.extend(LONGLONG);
        body.push(0);
        body.extend(VAR_STRING);
        body.extend([2, b'n', b'm']);
        body.extend(7_u64.to_le_bytes());
        body.extend([1, b'x']);
        let execution = Execution::parse(&body, 2, NAMED).unwrap();
        let mut known = Vec::new();
        execution.types().unwrap().store(&mut known);
        assert_eq!(known, [LONGLONG, VAR_STRING].concat());
        assert!(execution.types().unwrap().are(&known));
        assert!(!execution.types().unwrap().are(&known[..2]));
        assert_eq!(values(&execution)[1..], body[body.len() - 10..]);
    }

    #[test]
    fn attributes_behind_the_parameters_are_left_out() {
        // Two parameters, the second NULL, and two attributes, the first NULL.
        let with = |attributes: bool| {
            let mut body = head(PARAMETER_COUNT_AVAILABLE);
            body.extend([if attributes { 4 } else { 2 }]);
            body.extend([if attributes { 0b0110 } else { 0b10 }, 1]);
            body.extend([&VAR_STRING[..], &[0], &LONGLONG, &[0]].concat());
            if attributes {
                body.extend([&LONGLONG[..], &[1, b'n'], &VAR_STRING, &[1, b't']].concat());
            }
            body.extend([1, b'x']);
            if attributes {
                body.extend([3, b'a', b'b', b'c']);
            }
            body
        };
        let (with, without) = (with(true), with(false));
        let with = Execution::parse(&with, 2, NAMED).unwrap();
        let without = Execution::parse(&without, 2, NAMED).unwrap();
        assert_eq!(values(&with), values(&without));
        assert!(
            with.types()
                .unwrap()
                .iter()
                .eq(without.types().unwrap().iter())
        );
    }

    #[test]
    fn attributes_of_a_statement_without_parameters_are_left_out() {
        let mut body = head(PARAMETER_COUNT_AVAILABLE);
        body.extend([1, 0, 1]);
        body.extend([&VAR_STRING[..], &[1, b'n', 1, b'v']].concat());
        let execution = Execution::parse(&body, 0, NAMED).unwrap();
        assert!(values(&execution).is_empty());
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let mut whole = head(0);
        whole.extend([0, 1]);
        whole.extend(LONGLONG);
        for length in 0..whole.len() {
            assert!(
                Execution::parse(&whole[..length], 1, PLAIN).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn types_are_put_into_an_execution_that_names_none() {
        let types = [LONGLONG, VAR_STRING].concat();
        let (number, text) = (7_u64.to_le_bytes(), [1, b'x']);
        for (capabilities, count) in [(PLAIN, &[][..]), (NAMED, &[2])] {
            let with = |mark: &[u8]| [&head(0)[..], count, &[0], mark, &number, &text].concat();
            let without = with(&[0]);
            let execution = Execution::parse(&without, 2, capabilities).unwrap();
            let whole = execution.body_with(&without, &types, capabilities);
            let name = if capabilities == NAMED { &[0][..] } else { &[] };
            let mark = [&[1][..], &LONGLONG, name, &VAR_STRING, name].concat();
            assert_eq!(whole, with(&mark));
            let whole = Execution::parse(&whole, 2, capabilities).unwrap();
            assert!(whole.types().unwrap().are(&types));
            assert_eq!(values(&whole), values(&execution));
        }
    }

    #[test]
    fn an_execution_of_nulls_names_types() {
        let types = LONGLONG.repeat(9);
        for capabilities in [PLAIN, NAMED] {
            let payload = execution_of_nulls(7, &types, capabilities);
            assert_eq!(payload[..5], [EXECUTE, 7, 0, 0, 0]);
            let execution = Execution::parse(&payload[5..], 9, capabilities).unwrap();
            assert!(execution.types().unwrap().are(&types));
            assert_eq!(execution.bound_values(&types), [BoundValue::Null; 9]);
            assert!(execution.values.is_empty() && !execution.wants_cursor);
        }
    }

    #[test]
    fn a_time_is_told_from_other_types() {
        assert!(has_time(&[LONGLONG, [0x0b, 0]].concat()));
        assert!(!has_time(&[[0x0c, 0], [0x0a, 0x0b]].concat()));
    }
}
