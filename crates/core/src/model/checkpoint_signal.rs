//! What a program is told so that it saves a checkpoint.

use serde::Serialize;

use super::read::{self, DataError, Json, Path};
use super::words::words;

/// A signal on which a program saves a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckpointSignal {
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGHUP.
    Hup,
    /// SIGINT, as Ctrl-C.
    Int,
    /// SIGTERM.
    Term,
}

words! {
    /// The spelling in settings, as that of `kill -s`.
    CheckpointSignal {
        Usr1: "USR1",
        Usr2: "USR2",
        Hup: "HUP",
        Int: "INT",
        Term: "TERM",
    }
}

impl CheckpointSignal {
    /// Reads the spelling, also with `SIG` in front and in small letters.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_uppercase();
        let name = text.strip_prefix("SIG").unwrap_or(&text);
        Self::ALL.into_iter().find(|signal| signal.as_str() == name)
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Option<Self>, DataError> {
        if value.is_null() {
            return Ok(None);
        }
        read::one_of(value, path, Self::parse, "USR1, USR2, HUP, INT or TERM").map(Some)
    }
}
