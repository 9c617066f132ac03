//! A request as the functions of routes see it: who asks, and what, already held against the table of parameters.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_ops::base::error::did_you_mean;
use tpu_ops::front::jobfile::body::BodyFormat;
use tpu_ops::{Ctx, Error};

use super::failure::Failure;
use super::served::Served;
use super::takes::{Of, Parameter};
use super::who::Who;

/// A request.
pub(super) struct Asked<'a> {
    /// What it may touch; what it changes is noted as done by who asks.
    pub(super) ctx: &'a Ctx,
    /// What all requests share.
    pub(super) served: &'a Arc<Served>,
    /// Who asks.
    pub(super) who: &'a Who,
    /// Parts of the path and of the query by their names.
    pub(super) words: &'a [(String, String)],
    /// Its headers.
    pub(super) headers: &'a HeaderMap,
    /// Its body.
    pub(super) body: &'a Bytes,
}

impl Asked<'_> {
    /// What stands for a parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let word = self.words.iter().find(|(known, _)| known == name);
        word.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The same as a number: that it is one was seen before.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Whether a truth value is true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// Whether it is only to be said what would be done: what is changed then is a copy.
    pub(super) fn is_trial(&self) -> bool {
        self.ctx.store.is_dry_run()
    }

    /// The user of the path.
    pub(super) fn user(&self) -> UserName {
        UserName::from(self.text("user").unwrap_or_default())
    }

    /// The job of the path.
    pub(super) fn job(&self) -> JobId {
        let number = self.number("number").and_then(|number| u32::try_from(number).ok());
        JobId { user: self.user(), window: JobNumber(number.unwrap_or(0)) }
    }

    /// For whom whoever asks acts: as they say, else the only user that the token is about, else the only one there is.
    /// Refused where they may not.
    pub(super) fn acting_for(
        &self,
        said: Option<UserName>,
        how_to_say: &str,
    ) -> Result<UserName, Failure> {
        let data = self.ctx.data()?;
        let only = || match data.users() {
            [only] => Some(only.name.clone()),
            _ => None,
        };
        let user = said.or_else(|| self.who.rights.only_user().cloned()).or_else(only);
        let user = user
            .ok_or_else(|| Error::usage("for whom is it?").hint(format!("say it: {how_to_say}")))?;
        self.who.acts_for(&user)?;
        Ok(user)
    }

    /// A header, if it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON of a type; nothing is an empty object.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let kind = self.header("content-type").unwrap_or("application/json");
        if !self.body.is_empty() && !is_json(kind) {
            let error = Error::usage(format!("a body of {kind}")).hint("send application/json");
            return Err(Failure::from(error).status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { self.body };
        serde_json::from_slice(bytes).map_err(|e| {
            let what = format!("the body, line {}, column {}: {e}", e.line(), e.column());
            Error::usage(what).hint("/openapi.json says what it has to be").into()
        })
    }

    /// How a job file in the body is written.
    pub(super) fn job_file_format(&self) -> Result<BodyFormat, Failure> {
        let said = self.header("content-type").unwrap_or("application/json");
        let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => Ok(BodyFormat::Json),
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => {
                Ok(BodyFormat::Yaml)
            }
            _ => {
                let error = Error::usage(format!("a body of {said}"))
                    .hint("send application/json or application/yaml");
                Err(Failure::from(error).status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
            }
        }
    }

    /// Whether whoever asks has this version already.
    pub(super) fn has(&self, tag: &str) -> bool {
        let known = self.header("if-none-match").unwrap_or_default();
        known.split(',').map(str::trim).any(|known| {
            // A proxy that compresses calls it a weak one.
            known.strip_prefix("W/").unwrap_or(known) == tag || known == "*"
        })
    }

    /// Refuses where whoever asks means another version than the one that there is; what stands behind its point does not
    /// count.
    pub(super) fn still(&self, tag: &str) -> Result<(), Failure> {
        let is_of = |meant: &str| meant.split('.').next() == tag.split('.').next();
        match self.header("if-match") {
            Some(meant) if !meant.split(',').map(str::trim).any(|of| of == "*" || is_of(of)) => {
                let error = Error::refused("it has changed since it was read")
                    .hint("read it again, and decide anew");
                Err(Failure::from(error).status(StatusCode::PRECONDITION_FAILED))
            }
            _ => Ok(()),
        }
    }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The words of a request, each held against what its route takes.
pub(super) fn words(
    (route, taken): (&str, &[Parameter]),
    path: Vec<(String, String)>,
    query: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let mut words = path;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if words.iter().any(|(known, _)| *known == name) {
            return Err(bad(&format!("{name} is said twice"), "say it once"));
        }
        words.push((name.into_owned(), value.into_owned()));
    }
    for (name, value) in &words {
        let Some(parameter) = taken.iter().find(|known| known.name == name) else {
            let known = taken.iter().map(|known| known.name);
            let near = did_you_mean(name, known.clone());
            let all = || known.collect::<Vec<_>>().join(", ");
            let hint = near.unwrap_or_else(|| match all() {
                none if none.is_empty() => "it takes none".to_owned(),
                all => format!("it takes {all}"),
            });
            return Err(bad(&format!("{name}: no parameter of {route}"), &hint));
        };
        checked(parameter, value)?;
    }
    Ok(words)
}

fn checked(parameter: &Parameter, value: &str) -> Result<(), Failure> {
    let Parameter { name, of, .. } = parameter;
    let wrong = |hint: String| Err(bad(&format!("{name}={value}"), &hint));
    match of {
        Of::Text => Ok(()),
        Of::Number(least, most) => match value.parse::<u64>() {
            Ok(number) if (*least..=*most).contains(&number) => Ok(()),
            _ => wrong(format!("a whole number from {least} to {most}")),
        },
        Of::Flag if matches!(value, "true" | "false") => Ok(()),
        Of::Flag => wrong("true or false".to_owned()),
        Of::Word(words) if words.contains(&value) => Ok(()),
        Of::Word(words) => wrong(format!("one of {}", words.join(", "))),
    }
}

fn bad(what: &str, hint: &str) -> Failure {
    Error::usage(what).hint(hint).into()
}
