//! `notify`: who is told of what happens to jobs, and whether it arrives.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::Output;
use tpu_core::model::ids::UserName;
use tpu_core::model::notify::{self, Occasion, Receiver};
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::time;
use tpu_core::text::{counted, escape};
use tpu_ops::act::notices::{self, ReceiverLook};
use tpu_ops::{Ctx, Error};
use tpu_wire::notices::{
    NoticePart, NoticesDocument, NotifyDocument, NotifyTestDocument, NotifyTestPart, body,
};

/// `notify list`.
pub(in crate::cli) fn list(app: &App, words: &[String]) -> Outcome {
    let user = app.requester()?.only_user(words)?;
    let ctx = app.ctx()?;
    let look = notices::look(ctx, &user)?;
    let mut text = String::new();
    for of in &look.receivers {
        text += &line(ctx, of);
    }
    let mut notes = Vec::new();
    if look.receivers.is_empty() {
        text = format!(
            "Nobody is told of {user}'s jobs: tpu set-settings notify error,finished=me@example.org\n"
        );
    } else if !look.is_monitored {
        let waiting: usize = look.receivers.iter().map(|of| of.waiting).sum();
        notes.push(format!(
            "no daemon runs here, which delivers ({} waiting): tpu daemon start",
            counted(waiting, "notice")
        ));
    }
    if look.origin != SettingOrigin::BuiltIn && look.receivers.iter().any(|of| of.number.is_some())
    {
        notes.push(format!("those with a number are the setting notify, {}", look.origin));
    }
    Ok(Output::new(text, &NotifyDocument::from((&user, &look))).notes(notes))
}

fn line(ctx: &Ctx, of: &ReceiverLook) -> String {
    let now = ctx.clock.now();
    let number = of.number.map_or("-".to_owned(), |number| number.to_string());
    let on = if of.to.on.len() == Occasion::named().count() {
        "everything".to_owned()
    } else {
        of.to.on.iter().map(|on| on.as_str()).collect::<Vec<_>>().join(",")
    };
    let mut line = format!("{number}  {} {}  on {on}", of.to.way_word(), escape(&of.to.place()));
    if let Some(sent) = of.sent {
        line += &format!("; last {} ago", time::age(now.seconds_since(sent)));
    }
    if of.waiting > 0 {
        line += &format!("; {} waiting", counted(of.waiting, "notice"));
    }
    if of.attempts > 0 {
        line += &format!(", tried {} in vain", counted(of.attempts as usize, "time"));
        if let Some(again) = of.again {
            line += &format!(", again in {}", time::age(again.seconds_since(now)));
        }
    }
    if of.lost > 0 {
        line += &format!("; {} given up", of.lost);
    }
    line.push('\n');
    if let Some(problem) = &of.problem {
        line += &format!("   {}\n", escape(problem));
    }
    line
}

/// `notify test`: to all receivers of a user, or to those that a word means.
pub(in crate::cli) fn test(app: &App, words: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let is_user = |word: &&String| data.user(&UserName::new(word.as_str())).is_some();
    let (users, rest): (Vec<&String>, Vec<&String>) = words.iter().partition(is_user);
    let users: Vec<String> = users.into_iter().cloned().collect();
    let user = app.requester()?.only_user(&users)?;
    if let [_, second, ..] = rest.as_slice() {
        return Err(Error::usage(format!("'{second}' is one word too many"))
            .hint("one receiver, or none for all: tpu notify test 1"));
    }
    let word = rest.first().map(|word| word.as_str());
    let receivers = notices::in_hand(ctx, &user, word)?;
    let notice = notices::would_try(ctx, &user);
    let body_of = |tests| {
        let events = vec![NoticePart::from(&notice)];
        NotifyTestDocument { user: &user, tests, body: NoticesDocument { events } }
    };
    if app.global.dry_run {
        let places: Vec<String> = receivers.iter().map(place).collect();
        let text = format!("Would send a test to {}.\n", places.join(", "));
        let tests = receivers.iter().map(NotifyTestPart::would).collect();
        return Ok(Output::new(text, &body_of(tests)));
    }
    let tried = notices::try_out(ctx, &user, &notice, receivers, &body);
    let mut text = String::new();
    for of in &tried {
        text += &match &of.problem {
            None => format!("{}: it arrived\n", place(&of.to)),
            Some(problem) => format!("{}: {}\n", place(&of.to), escape(problem)),
        };
    }
    let failed = tried.iter().any(|of| of.problem.is_some());
    let tests = tried.iter().map(NotifyTestPart::from).collect();
    let code = if failed { tpu_ops::Kind::Unreachable.exit_code() } else { 0 };
    Ok(Output::new(text, &body_of(tests)).code(code))
}

fn place(to: &Receiver) -> String {
    format!("{} {}", to.way_word(), escape(&to.place()))
}

/// What `--notify` says.
pub(super) fn typed(said: &[String]) -> Result<Option<Vec<Receiver>>, Error> {
    if said.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for one in said {
        // Whole ones are JSON.
        let value = serde_json::from_str(one)
            .ok()
            .filter(|value: &serde_json::Value| value.is_object() || value.is_array());
        let value = value.unwrap_or_else(|| serde_json::Value::from(one.as_str()));
        let read = notify::receivers(&value)
            .map_err(|bad| Error::usage(format!("--notify {one}: {}", bad.what)).hint(bad.hint))?;
        all.extend(read);
    }
    Ok(Some(all))
}
