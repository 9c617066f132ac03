//! The status of an attempt as it is stored: a word and, where it came to one, a failure.

use std::fmt;

use super::facts::ErrorKind;

/// The stored status. Each variant carries what only makes sense with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// `null`: the original's resumed jobs before their first callback.
    Unset,
    /// Claimed; the window opens or the code is being staged.
    Starting,
    /// The program has shown itself.
    Running,
    /// Final: it ended well.
    Finished,
    /// It failed, for this reason.
    Error(ErrorKind),
    /// Final: a person stopped it. Holds the failure that it had come to before.
    Killed(Option<ErrorKind>),
    /// Final: a child continues from its checkpoint. Holds the failure that led to it, if one did.
    Resumed(Option<ErrorKind>),
    /// Final: a child runs it again from scratch.
    Rerunned(Option<ErrorKind>),
}

impl Status {
    /// Every word of the `status` field.
    pub const WORDS: [&'static str; 7] =
        ["starting", "running", "finished", "error", "killed", "resumed", "rerunned"];

    /// The word in the `status` field; `None` for `null`.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Starting => Some("starting"),
            Self::Running => Some("running"),
            Self::Finished => Some("finished"),
            Self::Error(_) => Some("error"),
            Self::Killed(_) => Some("killed"),
            Self::Resumed(_) => Some("resumed"),
            Self::Rerunned(_) => Some("rerunned"),
        }
    }

    /// The kind in the `error` field.
    pub fn error(&self) -> Option<ErrorKind> {
        match self {
            Self::Error(kind) => Some(*kind),
            Self::Killed(kind) | Self::Resumed(kind) | Self::Rerunned(kind) => *kind,
            Self::Unset | Self::Starting | Self::Running | Self::Finished => None,
        }
    }

    /// Puts the two stored fields together; `None` when the word is not one of ours.
    pub fn from_fields(word: Option<&str>, error: Option<ErrorKind>) -> Option<Self> {
        Some(match word {
            None => Self::Unset,
            Some("starting") => Self::Starting,
            Some("running") => Self::Running,
            Some("finished") => Self::Finished,
            Some("error") => Self::Error(error.unwrap_or(ErrorKind::Unknown)),
            Some("killed") => Self::Killed(error),
            Some("resumed") => Self::Resumed(error),
            Some("rerunned") => Self::Rerunned(error),
            Some(_) => return None,
        })
    }

    /// The kind of failure, if it is one that stands.
    pub fn failure(&self) -> Option<ErrorKind> {
        match self {
            Self::Error(kind) => Some(*kind),
            Self::Unset
            | Self::Starting
            | Self::Running
            | Self::Finished
            | Self::Killed(_)
            | Self::Resumed(_)
            | Self::Rerunned(_) => None,
        }
    }

    /// Whether an attempt with this status may still be at work.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Unset | Self::Starting | Self::Running => true,
            Self::Finished
            | Self::Error(_)
            | Self::Killed(_)
            | Self::Resumed(_)
            | Self::Rerunned(_) => false,
        }
    }

    /// Whether a child goes on with the attempt, or has gone on.
    pub fn is_superseded(&self) -> bool {
        match self {
            Self::Resumed(_) | Self::Rerunned(_) => true,
            Self::Unset
            | Self::Starting
            | Self::Running
            | Self::Finished
            | Self::Error(_)
            | Self::Killed(_) => false,
        }
    }

    /// Whether no text, refresh, callback or cloud state may change it any more.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Finished | Self::Killed(_) | Self::Resumed(_) | Self::Rerunned(_) => true,
            Self::Unset | Self::Starting | Self::Running | Self::Error(_) => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(kind) => write!(f, "error: {kind}"),
            Self::Killed(Some(kind)) => write!(f, "killed ({kind})"),
            Self::Unset
            | Self::Starting
            | Self::Running
            | Self::Finished
            | Self::Killed(_)
            | Self::Resumed(_)
            | Self::Rerunned(_) => f.write_str(self.word().unwrap_or("starting")),
        }
    }
}

/// One of each, for tests of what holds for all.
#[cfg(test)]
pub(super) fn one_of_each() -> [Status; 9] {
    [
        Status::Unset,
        Status::Starting,
        Status::Running,
        Status::Finished,
        Status::Error(ErrorKind::Grpc),
        Status::Killed(None),
        Status::Killed(Some(ErrorKind::Oom)),
        Status::Resumed(Some(ErrorKind::Grpc)),
        Status::Rerunned(None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_stored_fields_make_one_status() {
        for status in one_of_each() {
            assert_eq!(Status::from_fields(status.word(), status.error()), Some(status));
        }
        assert_eq!(Status::from_fields(Some("paused"), None), None);
    }
}
