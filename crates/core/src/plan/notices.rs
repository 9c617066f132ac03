//! Which notices go to whom, and when: what has happened, receivers, what waits, and the clock come in; what is to be sent
//! now comes out.
//!
//! The first notice to a receiver goes at once. What happens within the gathering time behind one that was sent goes
//! together then. What was tried together is tried so again, under the same id, until it has arrived or a day is over:
//! order is kept, and whoever had it and could not say so knows it again.

use crate::model::facts::ErrorKind;
use crate::model::ids::UserName;
use crate::model::notice::{self, Notice};
use crate::model::notify::{Occasion, Receiver};
use crate::model::outbox::{Awaiting, Outbox, OutboxLine, Together};
use crate::model::time::Timestamp;

/// Notices that go together at most.
pub(crate) const TOGETHER: usize = 500;

/// Notices that wait for one receiver at most; above that the oldest are given up.
const MOST: usize = 20_000;

/// Seconds after which a notice that could not be told is given up.
pub const GIVEN_UP_S: u64 = 86_400;

/// Seconds that a pause between two tries has at most.
const LONGEST_S: u64 = 600;

/// Seconds after which a sender that has not come back is taken for dead, whoever it is.
const SENDS_S: i64 = 600;

/// What an event of the journal is to people, by its kind and text; with the kind of failure and the rest of the text.
pub fn occasion<'a>(kind: &str, text: &'a str) -> Option<(Occasion, Option<ErrorKind>, &'a str)> {
    match kind {
        "error" => {
            let (word, line) = text.split_once(": ").unwrap_or((text, ""));
            let Some(error) = ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == word) else {
                return Some((Occasion::Error, None, text));
            };
            Some((of_failure(error), Some(error), line))
        }
        "dependency" => Some((Occasion::Error, Some(ErrorKind::Dependency), text)),
        "resume" | "rerun" | "restarted" => Some((Occasion::Resumed, None, text)),
        "finished" => Some((Occasion::Finished, None, text)),
        "stopped" | "patient" | "needs-login" => Some((Occasion::BudgetSpent, None, text)),
        _ => None,
    }
}

/// What a failure is to people.
pub fn of_failure(error: ErrorKind) -> Occasion {
    match error {
        ErrorKind::Preempted => Occasion::Preempted,
        ErrorKind::Stalled => Occasion::Stalled,
        ErrorKind::Grpc
        | ErrorKind::Network
        | ErrorKind::Locked
        | ErrorKind::NoCapacity
        | ErrorKind::SshLost
        | ErrorKind::Oom
        | ErrorKind::PythonError
        | ErrorKind::CommandNotFound
        | ErrorKind::FileError
        | ErrorKind::KilledBySignal
        | ErrorKind::Launch
        | ErrorKind::Lost
        | ErrorKind::Timeout
        | ErrorKind::Setup
        | ErrorKind::Dependency
        | ErrorKind::Unknown => Occasion::Error,
    }
}

/// What is told beside the setting `notify`: by the job itself.
pub fn receivers_of(settings: &[Receiver], own: Option<&[Receiver]>) -> Vec<Receiver> {
    let own = match own {
        Some([]) => return Vec::new(),
        own => own.unwrap_or_default(),
    };
    let mut all: Vec<Receiver> = Vec::new();
    for receiver in settings.iter().chain(own) {
        match all.iter_mut().find(|known| known.is_same_place(receiver)) {
            Some(known) => {
                let more = receiver.on.iter().filter(|on| !known.on.contains(on));
                let more: Vec<Occasion> = more.copied().collect();
                known.on.extend(more);
            }
            None => all.push(receiver.clone()),
        }
    }
    all
}

/// Puts a notice where it waits for each of those who want to know, until the account `uid` sends it.
pub fn put(
    outbox: &mut Outbox,
    (receivers, merge_s, uid): (&[Receiver], u32, u32),
    notice: &Notice,
    now: Timestamp,
) {
    for receiver in receivers.iter().filter(|receiver| receiver.wants(notice.event)) {
        let is_its = |line: &OutboxLine| {
            line.user == notice.user && line.uid == Some(uid) && line.to.is_same_place(receiver)
        };
        if !outbox.lines.iter().any(is_its) {
            outbox.lines.push(line_of((&notice.user, uid), receiver));
        }
        let Some(line) = outbox.lines.iter_mut().find(|line| is_its(line)) else { continue };
        (line.to, line.merge_s) = (receiver.clone(), merge_s);
        // Two lines of the journal that are the same to the letter are one thing that was noted twice.
        let mut newest = line.waiting.iter().rev().take(TOGETHER);
        if newest.any(|waiting| waiting.notice.id == notice.id) {
            continue;
        }
        line.waiting.push(Awaiting { notice: notice.clone(), since: now });
        // Of an account without a daemon nobody tries, and gives up what is too many.
        let too_many = line.waiting.len().saturating_sub(MOST);
        if too_many > 0 && line.tried.is_none() {
            line.waiting.drain(..too_many);
            line.lost = line.lost.saturating_add(u64::try_from(too_many).unwrap_or(u64::MAX));
        }
    }
}

fn line_of((user, uid): (&UserName, u32), receiver: &Receiver) -> OutboxLine {
    OutboxLine {
        user: user.clone(),
        uid: Some(uid),
        to: receiver.clone(),
        merge_s: 0,
        waiting: Vec::new(),
        tried: None,
        attempts: 0,
        again: None,
        sent: None,
        error: None,
        lost: 0,
    }
}

/// Something that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whose affairs they are.
    pub user: UserName,
    /// To whom.
    pub to: Receiver,
    /// By which it is known again.
    pub id: String,
    /// What, the oldest first.
    pub notices: Vec<Notice>,
}

/// When a line is to be sent, if anything waits in it and nobody is sending it.
fn due(line: &OutboxLine, is_dead: &dyn Fn(&str) -> bool, now: Timestamp) -> Option<Timestamp> {
    let first = line.waiting.first()?;
    if let Some(together) = &line.tried {
        return match &together.by {
            Some((by, since)) if !is_dead(by) => Some(since.plus_seconds(SENDS_S)),
            Some(_) => Some(now),
            None => Some(line.again.unwrap_or(now)),
        };
    }
    match line.sent {
        // A body that is full has nothing to wait for.
        Some(sent) if line.waiting.len() < TOGETHER => {
            let gathered = sent.plus_seconds(line.merge_s.into());
            // A clock that was set back keeps nobody waiting for longer than it would have.
            Some(if sent > now { now } else { gathered.max(first.since) })
        }
        _ => Some(now),
    }
}

/// Whether the account `uid` sends what waits in a line.
pub fn is_for(line: &OutboxLine, uid: u32) -> bool {
    line.uid.is_none_or(|of| of == uid)
}

/// The first instant at which there is something to be sent by the account `uid`.
pub fn next(
    outbox: &Outbox,
    uid: u32,
    is_dead: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> Option<Timestamp> {
    let own = outbox.lines.iter().filter(|line| is_for(line, uid));
    own.filter_map(|line| due(line, is_dead, now)).min()
}

/// Takes what is due of the account `uid`, and notes that `me` sends it.
pub fn take(
    outbox: &mut Outbox,
    (me, uid): (&str, u32),
    is_dead: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for line in outbox.lines.iter_mut().filter(|line| is_for(line, uid)) {
        if due(line, is_dead, now).is_none_or(|due| due > now) {
            continue;
        }
        let count = match &line.tried {
            Some(together) => together.count.min(line.waiting.len()),
            None => line.waiting.len().min(TOGETHER),
        };
        let notices: Vec<Notice> =
            line.waiting.iter().take(count).map(|waiting| waiting.notice.clone()).collect();
        let Some(first) = notices.first() else { continue };
        let id = if let Some(together) = &line.tried {
            together.id.clone()
        } else {
            let ids: Vec<&str> = notices.iter().map(|notice| notice.id.as_str()).collect();
            let to = line.to.to_value().to_string();
            notice::id(first.time, &[&to, &ids.join(" ")])
        };
        line.tried = Some(Together { id: id.clone(), count, by: Some((me.to_owned(), now)) });
        deliveries.push(Delivery { user: line.user.clone(), to: line.to.clone(), id, notices });
    }
    deliveries
}

/// Notes how a delivery has ended: it arrived, unless there is a `failure`. Returns how many notices are given up by it.
pub fn settle(
    outbox: &mut Outbox,
    delivery: &Delivery,
    failure: Option<&str>,
    now: Timestamp,
) -> u64 {
    let tried = |line: &&mut OutboxLine| {
        line.tried.as_ref().is_some_and(|together| together.id == delivery.id)
    };
    let Some(line) = outbox.lines.iter_mut().find(tried) else { return 0 };
    let Some(together) = line.tried.take() else { return 0 };
    let Some(why) = failure else {
        line.waiting.drain(..together.count.min(line.waiting.len()));
        (line.attempts, line.again, line.error) = (0, None, None);
        line.sent = Some(now);
        return 0;
    };
    line.attempts = line.attempts.saturating_add(1);
    line.error = Some(why.to_owned());
    let first_s = u64::from(line.merge_s / 12).max(1);
    let pause_s = first_s.saturating_mul(1 << (line.attempts - 1).min(20)).min(LONGEST_S);
    line.again = Some(now.plus_seconds(i64::try_from(pause_s).unwrap_or(i64::MAX)));
    let is_old = |waiting: &&Awaiting| now.seconds_since(waiting.since) >= GIVEN_UP_S;
    let old = line.waiting.iter().take_while(is_old).count();
    let too_many = line.waiting.len().saturating_sub(MOST);
    let given_up = old.max(too_many);
    if given_up == 0 {
        line.tried = Some(Together { by: None, ..together });
        return 0;
    }
    line.waiting.drain(..given_up);
    let given_up = u64::try_from(given_up).unwrap_or(u64::MAX);
    line.lost = line.lost.saturating_add(given_up);
    given_up
}

/// Takes away lines of which nothing is to be remembered: nothing waits, and what was sent last is long ago.
pub fn sweep(outbox: &mut Outbox, now: Timestamp) {
    let is_late = |at: Option<Timestamp>| at.is_none_or(|at| now.seconds_since(at) >= GIVEN_UP_S);
    outbox.lines.retain(|line| {
        !line.waiting.is_empty() || !is_late(line.sent) || line.lost > 0 && !is_late(line.again)
    });
}

/// What a mail or a message has to say: a line for what it is about, and one for each.
pub fn in_words(notices: &[Notice]) -> (String, String) {
    let subject = match notices {
        [] => "nothing".to_owned(),
        [only] => only.text.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.text, rest.len()),
    };
    let lines =
        notices.iter().map(|notice| format!("{}  {}\n", notice.time.to_rfc3339(), notice.text));
    (subject, lines.collect())
}

#[cfg(test)]
mod tests;
