//! The hint `SQL_CACHE` on servers that have no query cache, or warn of the hint.

use std::borrow::Cow;

use remora_sql::{EmulatedVariable, Statement, unread_cache_hint};
use remora_wire::Capabilities;
use remora_wire::packet::{HEADER_BYTES, put_message};

use super::super::Session;
use super::super::questions::QUERY;

impl Session {
    /// The payload of a query without the hint, if the server could not read it with the hint. Its
    /// answer is that of the statement without the hint, so names of columns and warnings are, too.
    fn without_cache_hint(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let body = payload.strip_prefix(&[QUERY])?;
        let text = self.statement_text(body)?;
        let text_at = payload.len() - text.len();
        let hintless = self.text_without_cache_hint(text)?;
        Some([&payload[..text_at], &hintless].concat())
    }

    /// The same of a text.
    pub(super) fn text_without_cache_hint(&self, text: &[u8]) -> Option<Vec<u8>> {
        let hint = unread_cache_hint(text, self.dialect()?)?;
        if !self.shared.emulation.enabled || self.server_has_query_cache() != Some(false) {
            return None;
        }
        Some([&text[..hint.start], &text[hint.end..]].concat())
    }

    /// The payload of a message as the server is to get it.
    pub(in super::super) fn as_the_server_reads<'p>(&self, payload: &'p [u8]) -> Cow<'p, [u8]> {
        let hintless = self.without_cache_hint(payload).map(Cow::Owned);
        hintless.unwrap_or(Cow::Borrowed(payload))
    }

    /// The same of a message with its header.
    pub(in super::super) fn message_as_read<'m>(&self, message: &'m [u8]) -> Cow<'m, [u8]> {
        let payload = message.get(HEADER_BYTES..).unwrap_or_default();
        let Some(hintless) = self.without_cache_hint(payload) else {
            return Cow::Borrowed(message);
        };
        let mut message = Vec::with_capacity(HEADER_BYTES + hintless.len());
        put_message(&mut message, 0, &hintless);
        Cow::Owned(message)
    }

    /// The same of a message with a statement that has been analysed. Most have no hint, and for
    /// those that can be cached the analysis has told so: their text isn't read again.
    pub(in super::super) fn statement_as_read<'m>(
        &self,
        message: &'m [u8],
        statement: &Statement,
    ) -> Cow<'m, [u8]> {
        match &statement.cacheable {
            Ok(select) if !select.says_cache => Cow::Borrowed(message),
            _ => self.message_as_read(message),
        }
    }

    /// Whether the server may warn of the hint: MySQL 5.7 does. After a hit the server runs the
    /// statement before it tells of warnings, so the answer can be kept with this one.
    pub(in super::super) fn warns_of_cache_hint(&self) -> bool {
        let is_mysql = self.capabilities().has(Capabilities::MYSQL);
        is_mysql && self.server_has_query_cache() == Some(true)
    }

    /// Whether the server has a query cache of its own; `None`: which server it is isn't known yet.
    pub(super) fn server_has_query_cache(&self) -> Option<bool> {
        let query = self.shared.upstream.settings_query()?;
        Some(query.asks_for(EmulatedVariable::Type.name()))
    }
}
