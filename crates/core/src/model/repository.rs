//! Code that lies in a repository and in no directory of its user.

use std::fmt;
use std::path::Path;

/// A branch of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Where it is, as git is told: a URL, or a path.
    pub url: String,
    /// A branch or a tag; that of the repository itself without a word.
    pub branch: Option<String>,
}

impl Repository {
    /// Whether a URL holds what is nobody's business: a password, or what stands in its place before the host (a token is the
    /// user of an `https:` URL, RFC 3986 §3.2.1).
    pub fn has_secret(url: &str) -> bool {
        let Some((scheme, rest)) = url.split_once("://") else { return false };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { return false };
        scheme.to_ascii_lowercase().starts_with("http") || user.contains(':')
    }

    /// The same where a relative path begins in `dir`.
    #[must_use]
    pub fn from(self, dir: &Path) -> Self {
        // As git tells them apart: `host:path` has a colon before its first slash.
        let before_slash = self.url.split('/').next().unwrap_or_default();
        if before_slash.contains(':') {
            return self;
        }
        Self { url: dir.join(&self.url).to_string_lossy().into_owned(), ..self }
    }
}

/// For people: `https://host/lab/train.git (main)`.
impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)?;
        self.branch.iter().try_for_each(|branch| write!(f, " ({branch})"))
    }
}
