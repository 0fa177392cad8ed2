//! The times that logs tell.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// A time from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogTime {
    /// Microseconds since 1970, of local time where the log doesn't tell the zone.
    pub(super) us: i64,
    /// Whether the log tells whole seconds only.
    pub(super) is_whole_second: bool,
}

/// Reads a time in the form of MySQL since 5.7 (`2023-01-01T12:00:00.123456Z`) or of the others
/// (`230101 12:00:00`).
pub(super) fn parse(text: &[u8]) -> Option<LogTime> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.contains('T') {
        return parse_iso(text);
    }
    let (date, clock) = text.split_once(' ')?;
    let date = Date::from_calendar_date(
        2_000 + i32::from(two_digits(date, 0)?),
        Month::try_from(two_digits(date, 2)?).ok()?,
        two_digits(date, 4)?,
    )
    .ok()?;
    let mut parts = clock.trim_start().split(':');
    let mut part = || parts.next()?.parse().ok();
    let time = Time::from_hms(part()?, part()?, part()?).ok()?;
    let has_more = parts.next().is_some();
    (!has_more && text.is_ascii()).then(|| LogTime {
        us: microseconds(PrimitiveDateTime::new(date, time).assume_utc()),
        is_whole_second: true,
    })
}

/// Reads a time in the form of MySQL since 5.7.
pub(super) fn parse_iso(text: &str) -> Option<LogTime> {
    let time = OffsetDateTime::parse(text.trim(), &Rfc3339).ok()?;
    Some(LogTime {
        us: microseconds(time),
        is_whole_second: false,
    })
}

fn two_digits(text: &str, at: usize) -> Option<u8> {
    let digits = text.get(at..at + 2).filter(|_| text.len() == 6)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

fn microseconds(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_read() {
        let iso = parse(b"2023-01-01T12:00:00.123456Z").unwrap();
        assert_eq!(iso.us, 1_672_574_400_123_456);
        assert!(!iso.is_whole_second);
        assert_eq!(parse(b"2023-01-01T13:00:00.123456+01:00"), Some(iso));
        let short = parse(b"230101 12:00:00").unwrap();
        assert_eq!(short.us, 1_672_574_400_000_000);
        assert!(short.is_whole_second);
        assert_eq!(
            parse(b"230101  9:00:00").unwrap().us,
            short.us - 3 * 3_600_000_000
        );
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "230101",
            "231301 12:00:00",
            "230101 25:00:00",
            "2301011 2:00:00",
            "T",
            "230101 1:2:3:4",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
