//! How one of several machines with room is chosen.

use serde::Serialize;

use super::read::{self, DataError, Json, Path};
use super::words::words;

/// Which of the machines with room for a job gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The first in the order in which they are listed.
    #[default]
    Sequential,
    /// Any, by chance.
    Random,
    /// The one with the most room.
    Smart,
    /// The one with the least room that suffices: whole machines stay free for whoever needs one.
    Frugal,
}

words! {
    /// The spelling on the command line, in settings and in files.
    Policy {
        Sequential: "sequential",
        Random: "random",
        Smart: "smart",
        Frugal: "frugal",
    }
}

impl Policy {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        read::one_of(value, path, Self::parse, "sequential, random, smart or frugal")
    }
}
