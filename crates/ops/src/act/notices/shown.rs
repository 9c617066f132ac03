//! What is told to whom, for people who want to know.

use crate::base::ctx::user_of;
use crate::base::{secrets, watch};
use crate::{Ctx, Error};
use tpu_core::model::ids::UserName;
use tpu_core::model::notify::{Receiver, WayTo};
use tpu_core::model::outbox::OutboxLine;
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::time::Timestamp;

use super::{have_ways, read, settings_of};

/// A receiver, and what waits for it.
#[derive(Clone, Debug)]
pub struct ReceiverLook {
    /// The receiver.
    pub to: Receiver,
    /// Its number in the setting; none if it was named by a job, or once was.
    pub number: Option<usize>,
    /// How many notices wait.
    pub waiting: usize,
    /// The oldest of them.
    pub oldest: Option<Timestamp>,
    /// How often the oldest was tried in vain.
    pub attempts: u32,
    /// When it is tried again.
    pub again: Option<Timestamp>,
    /// When something last arrived.
    pub sent: Option<Timestamp>,
    /// What is wrong: why the last try was in vain, or what is missing.
    pub problem: Option<String>,
    /// So many were given up.
    pub lost: u64,
}

/// Who is told of a user's affairs.
#[derive(Clone, Debug)]
pub struct NotifyLook {
    /// Where the setting stands.
    pub origin: SettingOrigin,
    /// Whether a daemon runs here, which delivers.
    pub is_monitored: bool,
    /// Those of the setting, in its order; then others for whom something waits.
    pub receivers: Vec<ReceiverLook>,
}

/// Looks. Sends nothing.
pub fn look(ctx: &Ctx, user: &UserName) -> Result<NotifyLook, Error> {
    let data = ctx.data()?;
    let settings = settings_of(ctx, user_of(&data, user)?)?;
    let outbox = read(ctx)?.unwrap_or_default();
    let lines: Vec<&OutboxLine> = outbox.lines.iter().filter(|line| line.user == *user).collect();
    let all = settings.notify.clone().unwrap_or_default();
    let line_of = |to: &Receiver| lines.iter().find(|line| line.to.is_same_place(to)).copied();
    let mut receivers: Vec<ReceiverLook> = all
        .iter()
        .enumerate()
        .map(|(index, to)| shown(ctx, to, Some(index + 1), line_of(to), settings.smtp.is_some()))
        .collect();
    let others = lines.iter().filter(|line| !all.iter().any(|to| to.is_same_place(&line.to)));
    let others = others.filter(|line| !line.waiting.is_empty() || line.lost > 0);
    receivers
        .extend(others.map(|line| shown(ctx, &line.to, None, Some(line), settings.smtp.is_some())));
    Ok(NotifyLook {
        origin: settings.origin("notify").clone(),
        is_monitored: watch::running(ctx).is_some(),
        receivers,
    })
}

fn shown(
    ctx: &Ctx,
    to: &Receiver,
    number: Option<usize>,
    line: Option<&OutboxLine>,
    has_server: bool,
) -> ReceiverLook {
    let kept = secrets::names(ctx).unwrap_or_default();
    let missing = to.secrets().into_iter().find(|name| !kept.contains(name));
    let missing = missing.map(|name| format!("no secret {name} is kept: tpu secrets set {name}"));
    let without = have_ways(std::slice::from_ref(to)).err();
    let without = without.map(|error| format!("{}: {}", error.message, error.advice()));
    let unserved = (matches!(to.way, WayTo::Mail(_)) && !has_server)
        .then(|| "no server takes mails: tpu set-settings smtp".to_owned());
    ReceiverLook {
        to: to.clone(),
        number,
        waiting: line.map_or(0, |line| line.waiting.len()),
        oldest: line.and_then(|line| line.waiting.first()).map(|waiting| waiting.notice.time),
        attempts: line.map_or(0, |line| line.attempts),
        again: line.and_then(|line| line.again),
        sent: line.and_then(|line| line.sent),
        problem: line.and_then(|line| line.error.clone()).or(without).or(unserved).or(missing),
        lost: line.map_or(0, |line| line.lost),
    }
}

/// What is wrong with telling people, for `doctor`: of each receiver that does not take what it is sent, and whose.
pub fn troubles(ctx: &Ctx) -> Vec<(UserName, String)> {
    let Ok(Some(outbox)) = read(ctx) else { return Vec::new() };
    let mut troubles = Vec::new();
    for line in outbox.lines.iter().filter(|line| line.attempts > 0 || line.lost > 0) {
        let waiting = tpu_core::text::counted(line.waiting.len(), "notice");
        let lost = match line.lost {
            0 => String::new(),
            lost => format!(", {lost} given up"),
        };
        let why = line.error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let place = line.to.place();
        troubles.push((line.user.clone(), format!("{waiting} for {place} not told{lost}{why}")));
    }
    troubles
}
