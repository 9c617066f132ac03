//! `token`: what opens the API, and to whom.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::TokenCreateArgs;
use crate::cli::print::{Output, table};
use tpu_core::model::ids::UserName;
use tpu_core::model::time;
use tpu_core::model::token::{Rights, Token};
use tpu_ops::Error;
use tpu_ops::front::tokens::{self, TokenRequest};
use tpu_wire::tokens::{NewTokenDocument, RevokedTokenDocument, TokenPart, TokensDocument};

/// What somebody should know who hands out a token by which jobs are started.
const RUNS_AS: &str =
    "Its jobs run as the account that serves: on this machine they can do what that account can.";

/// `token create`: the token alone on stdout, what it may do on stderr.
pub(in crate::cli) fn create(app: &App, args: &TokenCreateArgs) -> Outcome {
    let ctx = app.ctx()?;
    // `--user` stands for any command; of a token it may name several.
    let named = app.global.user.iter().flat_map(|names| names.split(','));
    let users = named.map(str::trim).filter(|name| !name.is_empty()).map(UserName::from).collect();
    let expires = args.expires.as_ref().map(|span| {
        let seconds = time::parse_age(span).and_then(|span| i64::try_from(span).ok());
        let end = seconds.map(|seconds| ctx.clock.now().plus_seconds(seconds));
        end.ok_or_else(|| {
            Error::usage(format!("--expires {span}: no span")).hint("as in 12h, 30d or 8w")
        })
    });
    let only_on = args.targets.clone().flatten().unwrap_or_default();
    let rights =
        Rights { targets: args.targets.is_some(), only_on, ..Rights::of(args.role, users) };
    let request = TokenRequest { name: args.name.clone(), rights, expires: expires.transpose()? };
    let (made, secret) = tokens::create(ctx, &request)?;
    let document = NewTokenDocument { token: &secret, made: TokenPart::from(&made) };
    if ctx.store.is_dry_run() {
        return Ok(Output::new("", &document).notes(vec![format!("would make {}", told(&made))]));
    }
    let note = format!("{}; nobody can show it again", told(&made));
    let warning = made.rights.may_act().then(|| RUNS_AS.to_owned());
    let notes = [Some(note), warning].into_iter().flatten().collect();
    Ok(Output::new(format!("{secret}\n"), &document).notes(notes))
}

/// `token list`.
pub(in crate::cli) fn list(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let all = tokens::list(ctx)?;
    let now = ctx.clock.now();
    let text = if all.is_empty() {
        "there are none: tpu token create NAME --role viewer\n".to_owned()
    } else {
        let rows = all.iter().map(|token| {
            let users = token.rights.users.iter().map(UserName::as_str).collect::<Vec<_>>();
            let of = if users.is_empty() { "everybody".to_owned() } else { users.join(",") };
            let end = match token.expires {
                None => "never".to_owned(),
                Some(_) if !token.holds(now) => "over".to_owned(),
                Some(end) => format!("in {}", time::age(end.seconds_since(now))),
            };
            let role = token.rights.role.as_str().to_owned();
            vec![token.name.clone(), role, of, targets(&token.rights), end]
        });
        table::columns(&["NAME", "ROLE", "USERS", "TARGETS", "ENDS"], &rows.collect::<Vec<_>>())
    };
    let document = TokensDocument { tokens: all.iter().map(TokenPart::from).collect() };
    Ok(Output::new(text, &document))
}

/// `token revoke`.
pub(in crate::cli) fn revoke(app: &App, name: &str) -> Outcome {
    tokens::revoke(app.ctx()?, name)?;
    Ok(Output::new(format!("{name} opens nothing any more\n"), &RevokedTokenDocument { name }))
}

/// The targets that a token may create and reserve: all, none, or those to which it is limited.
fn targets(rights: &Rights) -> String {
    match (rights.may_use_targets(), &rights.only_on) {
        (_, only) if !only.is_none() => only.to_string(),
        (true, _) => "yes".to_owned(),
        (false, _) => "no".to_owned(),
    }
}

/// What a token is, in words.
fn told(token: &Token) -> String {
    let Rights { role, users, .. } = &token.rights;
    let users: Vec<&str> = users.iter().map(UserName::as_str).collect();
    let of = if users.is_empty() { String::new() } else { format!(" of {}", users.join(", ")) };
    let targets = match (token.rights.may_use_targets(), &token.rights.only_on) {
        (_, only) if !only.is_none() => format!(", on {only} only"),
        (true, _) => ", targets too".to_owned(),
        (false, _) => String::new(),
    };
    format!("token {}: {}{of}{targets}", token.name, role.as_str())
}
