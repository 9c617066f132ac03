//! Who is acting on a lineage, and what has been begun on it.

use super::rules::Action;
use super::time::Timestamp;

/// The intent of a kill: whoever began it, no rule fires on the job any more.
pub const KILLING: &str = "killing";

/// The intent of clearing a record away. It is withdrawn when its owner is dead: the record then stays.
pub const CLEANING: &str = "cleaning";

/// An action that has begun and must be finished by somebody (`extra_msgs.intent`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is being done: [`KILLING`], [`CLEANING`], or the name of an action of a rule.
    pub action: String,
    /// Since when.
    pub at: Timestamp,
    /// Who began it: an owner as in [`Lease::owner`].
    pub by: String,
}

impl Intent {
    /// The action of a rule that was begun, unless a person began something else.
    pub fn by_rule(&self) -> Option<Action> {
        Action::parse(&self.action)
    }
}

/// The right to act on a lineage, with a fencing number (`extra_msgs.lease`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Owner: `host:boot:pid:start`.
    pub owner: String,
    /// Rises with each owner; a commit with an older number is refused.
    pub fence: u64,
    /// Free after this instant, unless renewed.
    pub until: Timestamp,
}

impl Lease {
    /// No lease is given for longer than this many seconds, whatever the clocks of two machines differ.
    const LONGEST_S: u64 = 300;

    /// Whether it holds at `now`. One that would hold for much longer than any is given for was written by
    /// a clock that has been set back since.
    pub fn runs(&self, now: Timestamp) -> bool {
        self.until > now && self.until.seconds_since(now) <= Self::LONGEST_S
    }

    /// Gives it back, whatever any clock says. Its number stays.
    pub fn free(&mut self) {
        self.until = Timestamp::from_second(0);
    }
}

/// An owner as people call it: `process 12 on host` for `host:boot:12:start`.
pub fn who(owner: &str) -> String {
    let mut parts = owner.rsplitn(4, ':').skip(1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some("0"), Some(_boot), Some(host)) => format!("a process on {host} that gave it up"),
        (Some(pid), Some(_boot), Some(host)) => format!("process {pid} on {host}"),
        _ => owner.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_named_so_that_a_person_can_find_it() {
        assert_eq!(who("fe80::1:b:12:99"), "process 12 on fe80::1", "hosts may hold colons");
        assert_eq!(who("lab:b:0:1"), "a process on lab that gave it up");
        assert_eq!(who("somebody"), "somebody");
    }
}
