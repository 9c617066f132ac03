//! What is done when a job fails: event -> action. `check-rules` prints these very tables.

use std::fmt;

use super::facts::ErrorKind;
use super::retry::Retry;
use super::words::words;

/// What a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    Pass,
    /// Continue from the checkpoint on the same target.
    Resume,
    /// Start from scratch on the same target.
    Rerun,
    /// Delete and create the target, set it up, then resume.
    Reapply,
    /// Reboot the target, then resume.
    Restart,
    /// Keep asking for capacity, with back-off.
    Wait,
}

words! {
    /// The spelling in data.json and on the command line.
    Action {
        Pass: "pass",
        Resume: "resume",
        Rerun: "rerun",
        Reapply: "reapply",
        Restart: "restart",
        Wait: "wait",
    }
}

impl Action {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The rules of one job. A kind without an entry means [`Action::Pass`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<(ErrorKind, Action)>);

/// What is done after a failure of a job that is to be retried, where its rules leave that open.
fn again(kind: ErrorKind) -> Action {
    match kind {
        ErrorKind::Preempted => Action::Reapply,
        ErrorKind::NoCapacity => Action::Wait,
        ErrorKind::Grpc
        | ErrorKind::Network
        | ErrorKind::Locked
        | ErrorKind::SshLost
        | ErrorKind::Lost
        | ErrorKind::Oom
        | ErrorKind::PythonError
        | ErrorKind::CommandNotFound
        | ErrorKind::FileError
        | ErrorKind::KilledBySignal
        | ErrorKind::Timeout
        | ErrorKind::Stalled
        | ErrorKind::Setup
        | ErrorKind::Dependency
        | ErrorKind::Launch
        | ErrorKind::Unknown => Action::Resume,
    }
}

/// The names that `rule=` takes.
pub const NAMED: [&str; 5] = ["pre", "pass", "reapply", "rerun", "resume"];

impl Rules {
    /// The named table (`pre`, `pass`, `reapply`, `rerun`, `resume`).
    pub fn named(name: &str) -> Option<Self> {
        use Action::{Pass, Reapply, Rerun, Resume, Wait};
        // preempted, grpc, locked, no-capacity, ssh-lost, lost; everything else passes.
        let row = match name {
            "pre" => [Reapply, Resume, Pass, Wait, Resume, Resume],
            "pass" => [Pass; 6],
            "reapply" => [Reapply, Reapply, Pass, Wait, Reapply, Resume],
            "rerun" => [Reapply, Rerun, Pass, Wait, Rerun, Rerun],
            "resume" => [Pass, Resume, Pass, Pass, Resume, Resume],
            _ => return None,
        };
        let kinds = [
            ErrorKind::Preempted,
            ErrorKind::Grpc,
            ErrorKind::Locked,
            ErrorKind::NoCapacity,
            ErrorKind::SshLost,
            ErrorKind::Lost,
        ];
        Some(Self(kinds.into_iter().zip(row).collect()))
    }

    /// Reads `rule=`: a name, or `preempted:reapply,grpc:rerun,oom:pass`. The error names the part that
    /// was not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(rules) = Self::named(text) {
            return Ok(rules);
        }
        let mut rules = Self::default();
        for part in text.split(',') {
            let (kind, action) = part.split_once(':').ok_or_else(|| format!("'{part}'"))?;
            let kind = ErrorKind::parse(kind).ok_or_else(|| format!("the event '{kind}'"))?;
            let action = Action::parse(action).ok_or_else(|| format!("the action '{action}'"))?;
            rules.set(kind, action);
        }
        Ok(rules)
    }

    /// The action for a failure: that of its kind, else that of the kind that it was a part of.
    pub fn action(&self, kind: ErrorKind) -> Action {
        let of = |kind| self.0.iter().find(|(k, _)| *k == kind).map(|(_, action)| *action);
        of(kind).or_else(|| of(kind.wider()?)).unwrap_or(Action::Pass)
    }

    /// Sets the action for a failure.
    pub fn set(&mut self, kind: ErrorKind, action: Action) {
        match self.0.iter_mut().find(|(k, _)| *k == kind) {
            Some(entry) => entry.1 = action,
            None => self.0.push((kind, action)),
        }
    }

    /// The same for a job that is retried: what they pass of its failures is answered.
    #[must_use]
    pub fn retrying(mut self, retry: Option<&Retry>) -> Self {
        for kind in retry.iter().flat_map(|retry| &retry.on) {
            if self.action(*kind) == Action::Pass {
                self.set(*kind, again(*kind));
            }
        }
        self
    }

    /// Whether a target that is still there may be deleted or restarted by them. One that was preempted is gone: that it
    /// is made again takes nothing away.
    pub fn take_targets_down(&self) -> bool {
        let takes_down = |action| matches!(action, Action::Reapply | Action::Restart);
        self.iter().any(|(kind, action)| kind != ErrorKind::Preempted && takes_down(action))
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorKind, Action)> + '_ {
        self.0.iter().copied()
    }

    /// The name under which this very table is known.
    pub fn name(&self) -> Option<&'static str> {
        NAMED.into_iter().find(|name| {
            Self::named(name).is_some_and(|named| {
                ErrorKind::ALL.into_iter().all(|kind| named.action(kind) == self.action(kind))
            })
        })
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.pad(name);
        }
        let parts: Vec<_> = self.iter().map(|(kind, action)| format!("{kind}:{action}")).collect();
        f.pad(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_and_custom_rules_read_back() {
        for name in NAMED {
            assert_eq!(Rules::parse(name).unwrap().to_string(), name);
        }
        let custom = Rules::parse("preempted:reapply,grpc:rerun,oom:pass").unwrap();
        assert_eq!(custom.action(ErrorKind::Grpc), Action::Rerun);
        assert_eq!(custom.action(ErrorKind::Lost), Action::Pass);
        assert_eq!(Rules::parse(&custom.to_string()), Ok(custom));
    }

    #[test]
    fn a_rule_covers_what_was_a_part_of_its_kind_unless_it_names_that() {
        let wide = Rules::parse("file-error:rerun").unwrap();
        assert_eq!(wide.action(ErrorKind::CommandNotFound), Action::Rerun);
        let both = Rules::parse("file-error:rerun,command-not-found:pass").unwrap();
        assert_eq!(both.action(ErrorKind::CommandNotFound), Action::Pass);
        assert_eq!(both.action(ErrorKind::FileError), Action::Rerun);
        assert_eq!(Rules::named("pre").unwrap().action(ErrorKind::Network), Action::Resume);
        let narrow = Rules::parse("command-not-found:rerun").unwrap();
        assert_eq!(narrow.action(ErrorKind::FileError), Action::Pass);
    }

    #[test]
    fn a_wrong_rule_names_what_is_wrong() {
        assert_eq!(Rules::parse("prf"), Err("'prf'".to_owned()));
        assert_eq!(Rules::parse("grpc:again"), Err("the action 'again'".to_owned()));
        assert_eq!(Rules::parse("gprc:pass"), Err("the event 'gprc'".to_owned()));
    }
}
