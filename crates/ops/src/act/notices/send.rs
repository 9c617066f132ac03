//! Sends: fills in the secrets that a receiver names, and says what became of it without them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::ctx::user_of;
use crate::base::secrets;
use crate::{Ctx, Error};
use tpu_core::model::ids::UserName;
use tpu_core::model::notice::Notice;
use tpu_core::model::notify::{self, MessageScreen, Receiver, WayTo, WebhookShape};
use tpu_core::plan::notices::{self, Delivery};
use tpu_core::text;
use tpu_system::post::{self, Address, Letter};

use super::{Bodies, settings_of, test_notice};

/// Characters of what went wrong that are kept.
const LONGEST: usize = 300;

/// Sends a delivery. What went wrong is in words that show no secret.
pub(super) fn send(ctx: &Ctx, delivery: &Delivery, bodies: &Bodies) -> Result<(), String> {
    let (subject, text) = notices::in_words(&delivery.notices);
    let to = &delivery.to;
    if let WayTo::Message(MessageScreen::Tmux) = &to.way {
        return on_terminals(ctx, delivery, &subject);
    }
    let body = bodies(to, &delivery.notices);
    let letter = Letter { id: delivery.id.clone(), subject, text, body };
    let mut values = Vec::new();
    let address = address(ctx, &delivery.user, to, &mut values).map_err(|error| {
        let advice = error.advice();
        format!("{} ({advice})", error.message)
    })?;
    post::send(&address, &letter, &ctx.env).map_err(|error| without(&values, &error.to_string()))
}

/// Shows it to everybody who looks at the user's session.
fn on_terminals(ctx: &Ctx, delivery: &Delivery, subject: &str) -> Result<(), String> {
    let data = ctx.data().map_err(|error| error.message)?;
    let user = user_of(&data, &delivery.user).map_err(|error| error.message)?;
    let line = format!("tpu: {subject}");
    match ctx.tmux.tell(&user.tmux_name, &line) {
        Ok(0) => Err(format!("nobody looks at the tmux session {}", user.tmux_name)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The value of a secret that the account keeps; it is remembered among `values`.
fn secret(ctx: &Ctx, name: &str, values: &mut Vec<String>) -> Result<String, Error> {
    let value = secrets::kept(ctx, name)?.ok_or_else(|| {
        Error::not_found(format!("no secret {name} is kept"))
            .hint(format!("as the account that runs the daemon: tpu secrets set {name}"))
    })?;
    let value = value.into_string().map_err(|_| {
        Error::state(format!("the secret {name} is no text"))
            .hint(format!("tpu secrets set {name}"))
    })?;
    values.push(value.clone());
    Ok(value)
}

/// Refuses receivers to whom this program has no way.
pub fn have_ways(all: &[Receiver]) -> Result<(), Error> {
    match post::NO_MAIL {
        Some([what, advice]) if all.iter().any(|to| matches!(to.way, WayTo::Mail(_))) => {
            Err(Error::usage(what).hint(advice))
        }
        _ => Ok(()),
    }
}

/// Where a receiver is, with its secrets.
fn address(
    ctx: &Ctx,
    user: &UserName,
    to: &Receiver,
    values: &mut Vec<String>,
) -> Result<Address, Error> {
    Ok(match &to.way {
        WayTo::Webhook(written) => {
            let mut url = String::new();
            for (before, name) in notify::fields(written) {
                url += before;
                if let Some(name) = name {
                    url += &secret(ctx, name, values)?;
                }
            }
            if url != *written {
                values.push(url.clone());
            }
            let mut headers = Vec::new();
            if let Some(name) = &to.secret {
                let value = secret(ctx, name, values)?;
                headers.push(match to.shape {
                    WebhookShape::Brevo => ("api-key", value),
                    WebhookShape::Json | WebhookShape::Slack => {
                        ("Authorization", format!("Bearer {value}"))
                    }
                });
            }
            Address::Webhook { url, headers, public_only: to.public_only }
        }
        WayTo::Mail(address) => {
            have_ways(std::slice::from_ref(to))?;
            let data = ctx.data()?;
            let server = settings_of(ctx, user_of(&data, user)?)?.smtp.ok_or_else(|| {
                Error::not_found("no server takes mails")
                    .hint("as in: tpu set-settings smtp '{\"host\": \"mail.example.org\", \"from\": \"tpu@example.org\"}'")
            })?;
            let password = match &server.secret {
                Some(name) => Some(secret(ctx, name, values)?),
                None => None,
            };
            // As both go over the line together.
            if let (Some(user), Some(password)) = (&server.user, &password) {
                values.push(format!("\0{user}\0{password}"));
            }
            Address::Mail { server, password, to: address.clone() }
        }
        WayTo::Command(words) => {
            let variables = match &to.secret {
                Some(name) => vec![(name.clone(), secret(ctx, name, values)?)],
                None => Vec::new(),
            };
            Address::Command { words: words.clone(), variables }
        }
        WayTo::Message(_) => Address::Desktop,
    })
}

/// What went wrong as it is kept: on one line, cut, and without any value of a secret that it repeats.
fn without(values: &[String], said: &str) -> String {
    let mut safe = said.to_owned();
    for value in values.iter().filter(|value| !value.is_empty()) {
        let encoded = STANDARD.encode(value);
        safe = safe.replace(value.as_str(), "***").replace(&encoded, "***");
    }
    let line: String = text::escape(&safe).into_owned();
    text::cut(&line, LONGEST).into_owned()
}

/// How a receiver took what it was sent to try it out.
#[derive(Debug)]
pub struct Tried {
    /// The receiver.
    pub to: Receiver,
    /// What went wrong.
    pub problem: Option<String>,
}

/// The receivers of a user that a word means: its number in the list, its way, or its place; all without a word.
pub fn in_hand(ctx: &Ctx, user: &UserName, word: Option<&str>) -> Result<Vec<Receiver>, Error> {
    let data = ctx.data()?;
    let all = settings_of(ctx, user_of(&data, user)?)?.notify.unwrap_or_default();
    if all.is_empty() {
        return Err(Error::not_found(format!("{user} has nobody told of anything"))
            .hint("as in: tpu set-settings notify error,finished=me@example.org"));
    }
    let Some(word) = word else { return Ok(all) };
    let is_meant = |(index, to): &(usize, &Receiver)| {
        let parts = match &to.way {
            WayTo::Webhook(url) => vec![url.as_str()],
            WayTo::Mail(_) | WayTo::Command(_) | WayTo::Message(_) => Vec::new(),
        };
        (index + 1).to_string() == word
            || to.way_word() == word
            || to.place() == word
            || parts.contains(&word)
    };
    let meant: Vec<Receiver> =
        all.iter().enumerate().filter(is_meant).map(|(_, to)| to.clone()).collect();
    if meant.is_empty() {
        let known: Vec<String> = all.iter().map(Receiver::place).collect();
        let near = text::did_you_mean(word, known.iter().map(String::as_str));
        let hint = near.unwrap_or_else(|| format!("1 to {}, or: {}", all.len(), known.join(", ")));
        return Err(Error::not_found(format!("'{word}' is no receiver of {user}")).hint(hint));
    }
    Ok(meant)
}

/// What would be sent to try receivers out.
pub fn would_try(ctx: &Ctx, user: &UserName) -> Notice {
    test_notice(user, ctx.clock.now())
}

/// Sends a test to each of them, one after the other, whether or not the daemon runs. They are told of nothing else by
/// it.
pub fn try_out(
    ctx: &Ctx,
    user: &UserName,
    notice: &Notice,
    receivers: Vec<Receiver>,
    bodies: &Bodies,
) -> Vec<Tried> {
    let try_one = |to: Receiver| {
        let id =
            tpu_core::model::notice::id(notice.time, &[&notice.id, &to.to_value().to_string()]);
        let notices = vec![notice.clone()];
        let delivery = Delivery { user: user.clone(), to: to.clone(), id, notices };
        Tried { to, problem: send(ctx, &delivery, bodies).err() }
    };
    receivers.into_iter().map(try_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_shows_no_secret_and_acts_on_no_terminal() {
        let values = ["sesame".to_owned(), String::new()];
        let said = "535 sesame is wrong (c2VzYW1l)\r\n\u{1b}[2Jgone";
        let kept = without(&values, said);
        assert!(!kept.contains("sesame") && !kept.contains("c2VzYW1l"), "{kept}");
        assert!(!kept.contains('\n') && !kept.contains('\u{1b}') && kept.contains("535"), "{kept}");
        assert!(without(&[], &"x".repeat(5_000)).len() < 400);
    }

    #[test]
    fn a_mail_is_refused_where_the_program_was_built_without_it() {
        let refused = have_ways(&[Receiver::of(WayTo::Mail("me@example.org".to_owned()))]).err();
        let said = refused.map(|error| format!("{}: {}", error.message, error.advice()));
        assert_eq!(said, post::NO_MAIL.map(|words| words.join(": ")));
        have_ways(&[Receiver::of(WayTo::Command(vec!["true".to_owned()]))]).unwrap();
    }
}
