//! Names and numbers that identify things. They are parsed where they come in, and are never bare strings afterwards.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Implements the text face of a newtype over `String`.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name that the caller has checked or read from the state file.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }
    };
}

text_id! {
    /// A member of the lab, the key of `users` in data.json.
    UserName
}
text_id! {
    /// The full name of a target, never its alias.
    TargetName
}
text_id! {
    /// The name of a queue.
    QueueName
}
text_id! {
    /// The unique mark of one launch. It stands in the record, on the tmux pane (`@tpu_launch`) and in
    /// the environment of the job's processes, so that what belongs together can be told for certain.
    LaunchToken
}

/// The id of a job: the index of its tmux window, unique per user and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobNumber(pub u32);

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One job of one user, shown as `alice/7`; the value of the pane option `@tpu_job` and of `$TPU_JOB`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId {
    /// Whose job it is.
    pub user: UserName,
    /// Which window.
    pub window: JobNumber,
}

impl JobId {
    /// Names window `window` of `user`.
    pub fn new(user: UserName, window: JobNumber) -> Self {
        Self { user, window }
    }

    /// Reads `alice/7`; `None` when the text is not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        let (user, window) = text.rsplit_once('/')?;
        let window = window.parse().ok()?;
        (!user.is_empty()).then(|| Self::new(UserName::from(user), JobNumber(window)))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.user, self.window)
    }
}

impl QueueName {
    /// The queue of whoever names none; it is always there.
    pub fn usual() -> Self {
        Self::from("default")
    }
}

impl TargetName {
    /// The name that its provider knows it by: several providers may have a target of one name, and in the data
    /// file all but the first are then called `NAME@WHOSE`.
    #[must_use]
    pub fn of_provider(&self) -> Self {
        Self::new(self.as_str().split('@').next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_id_reads_what_it_writes() {
        let id = JobId::new(UserName::from("al/ice"), JobNumber(7));
        assert_eq!(JobId::parse(&id.to_string()), Some(id));
        assert_eq!(JobId::parse("alice"), None);
        assert_eq!(JobId::parse("/7"), None);
        assert_eq!(JobId::parse("alice/x"), None);
    }
}
