//! The token that requests must show which change something.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;

use crate::config::{open_file_warning, read_secret};

/// A token that can't be used. Names the option, the file and what it must hold.
#[derive(Debug, thiserror::Error)]
#[error("admin.token_file: got {}, which can't be used ({why}); accepts a file with a token on one line, of visible ASCII characters", path.display())]
pub struct TokenError {
    path: PathBuf,
    why: String,
}

/// The token of one Remora. Never printed.
pub struct AdminToken {
    /// `admin.token_file`.
    path: Option<PathBuf>,
    /// What it held; none: nothing may be changed.
    token: RwLock<Option<Box<[u8]>>>,
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl AdminToken {
    /// Reads the file, if one is named. A file that others can use is warned about in the log.
    pub fn load(path: Option<&Path>) -> Result<AdminToken, TokenError> {
        Ok(AdminToken {
            path: path.map(Path::to_owned),
            token: RwLock::new(path.map(read).transpose()?),
        })
    }

    /// Reads the file again. If it can't be used, the old token stays.
    pub fn reload(&self) -> Result<(), TokenError> {
        let token = self.path.as_deref().map(read).transpose()?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(())
    }

    /// Whether there is one: without it no request may change anything.
    pub(super) fn is_given(&self) -> bool {
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
        token.is_some()
    }

    /// Whether a request with these headers may change something.
    pub(super) fn allows(&self, headers: &HeaderMap) -> bool {
        let token = self.token.read().unwrap_or_else(PoisonError::into_inner);
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(token), Some(header), None) = (&*token, shown.next(), shown.next()) else {
            return false;
        };
        bearer(header.as_bytes()).is_some_and(|shown| shown.ct_eq(token).into())
    }
}

/// The token in the value of an `Authorization` header, if it has one.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

fn read(path: &Path) -> Result<Box<[u8]>, TokenError> {
    let failed = |why: String| TokenError {
        path: path.to_owned(),
        why,
    };
    let secret = read_secret(path).map_err(failed)?;
    if secret.text.is_empty() {
        return Err(failed("it is empty".to_owned()));
    }
    if !secret.text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed(
            "it holds spaces, control characters or characters beyond ASCII".to_owned(),
        ));
    }
    if secret.is_open {
        tracing::warn!("{}", open_file_warning("admin.token_file", path));
    }
    Ok(secret.text.into_bytes().into())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use tempfile::NamedTempFile;

    use super::*;

    fn file_with(text: &str) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn showing(values: &[&'static str]) -> HeaderMap {
        let values = values.iter().copied().map(HeaderValue::from_static);
        values.map(|value| (AUTHORIZATION, value)).collect()
    }

    #[test]
    fn only_the_whole_token_of_the_file_is_let_in() {
        let file = file_with("open-sesame\n");
        let token = AdminToken::load(Some(file.path())).unwrap();
        for right in [
            "Bearer open-sesame",
            "bearer open-sesame",
            "BEARER  open-sesame ",
        ] {
            assert!(token.allows(&showing(&[right])), "{right}");
        }
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "open-sesame",
            "Basic open-sesame",
            "Bearer open-sesam",
            "Bearer open-sesamee",
            "Bearer OPEN-SESAME",
        ] {
            assert!(!token.allows(&showing(&[wrong])), "{wrong}");
        }
        assert!(!token.allows(&HeaderMap::new()));
        let twice = ["Bearer open-sesame", "Bearer other"];
        assert!(!token.allows(&showing(&twice)));
    }

    #[test]
    fn without_a_file_nothing_lets_in() {
        let token = AdminToken::load(None).unwrap();
        for header in ["Bearer ", "Bearer", "Bearer x"] {
            assert!(!token.allows(&showing(&[header])), "{header}");
        }
    }

    #[test]
    fn a_file_without_a_token_is_refused_and_the_old_token_stays() {
        let file = file_with("first");
        let token = AdminToken::load(Some(file.path())).unwrap();
        for (text, why) in [
            ("", "empty"),
            ("\n", "empty"),
            ("\r\n", "empty"),
            ("two words", "spaces"),
            ("one\ntwo\n", "more than one line"),
            ("t\u{f6}ken", "ASCII"),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = token.reload().expect_err(text).to_string();
            assert!(error.starts_with("admin.token_file: got /"), "{error}");
            assert!(error.contains(why), "{error}");
            assert!(AdminToken::load(Some(file.path())).is_err());
            assert!(token.allows(&showing(&["Bearer first"])));
        }
        std::fs::write(file.path(), "second").unwrap();
        token.reload().unwrap();
        assert!(token.allows(&showing(&["Bearer second"])));
        assert!(!token.allows(&showing(&["Bearer first"])));
    }

    #[test]
    fn it_is_never_printed() {
        let file = file_with("open-sesame");
        let token = AdminToken::load(Some(file.path())).unwrap();
        assert!(!format!("{token:?}").contains("sesame"));
    }
}
