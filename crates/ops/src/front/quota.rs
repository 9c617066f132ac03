//! Quotas: what every provider grants and what of it is in use, as far as somebody wants to see it.

use std::sync::mpsc::channel;
use std::time::Duration;

use tpu_core::model::quota::QuotaRow;
use tpu_core::model::target::ProviderAt;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{ProviderError, QuotaReport, Trouble};
use tpu_system::sys::threads::next_of;

use crate::base::answer_cache::{self, Aged};
use crate::base::error::did_you_mean;
use crate::{Ctx, Error};

/// An answer younger than this, in seconds, is shown again.
const YOUNG_S: u64 = 300;

/// What somebody wants to see.
#[derive(Clone, Debug, Default)]
pub struct QuotaRequest {
    /// Zones and types, each by its beginning or a part of its name; all if none is said.
    pub words: Vec<String>,
    /// Also what is not granted and not in use.
    pub all: bool,
    /// Asks, however young the last answer is.
    pub fresh: bool,
}

/// What one provider says.
#[derive(Clone, Debug)]
pub struct ProviderQuotas {
    /// Whose it is: `google, project lab`.
    pub provider: String,
    /// What was asked for, by place and type.
    pub rows: Vec<QuotaRow>,
    /// When it was said.
    pub at: Timestamp,
    /// What is not known, and why.
    pub unknown: Vec<NotLearned>,
}

/// Something that could not be learned.
#[derive(Clone, Debug)]
pub struct NotLearned {
    /// What was tried, and what came of it.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// By provider.
    pub of: Vec<ProviderQuotas>,
    /// How many rows are left out that say nothing is granted and nothing in use.
    pub idle: usize,
}

impl From<&ProviderError> for NotLearned {
    fn from(error: &ProviderError) -> Self {
        let error = Error::from(error.clone());
        Self { message: error.message, hint: error.hint.unwrap_or_default() }
    }
}

/// Looks at the quotas of every provider that some target has.
pub fn look(ctx: &Ctx, request: &QuotaRequest) -> Result<Quotas, Error> {
    let data = ctx.data()?;
    let mut places = ctx.places().all(&data);
    places.retain(|at| !at.name.is_none());
    let mut of = Vec::new();
    let mut failed = None;
    for (at, answer) in places.iter().zip(ask_all(ctx, &places, request.fresh)) {
        match answer {
            Ok(answer) => of.push(answer),
            Err(error) if places.len() == 1 => return Err(error.into()),
            Err(error) => {
                of.push(ProviderQuotas {
                    provider: at.to_string(),
                    rows: Vec::new(),
                    at: ctx.clock.now(),
                    unknown: vec![NotLearned::from(&error)],
                });
                failed = Some(error);
            }
        }
    }
    if of.iter().all(|of| of.rows.is_empty() && !of.unknown.is_empty()) {
        let nobody = || {
            let what = "no control plane is set up";
            ProviderError::new(Trouble::NoProvider, "look at quotas", what)
        };
        if of.is_empty() || failed.is_some() {
            return Err(failed.unwrap_or_else(nobody).into());
        }
    }
    select(&mut of, request).map(|idle| Quotas { of, idle })
}

/// How long several providers may take together; each has its own deadlines.
const PATIENCE: Duration = Duration::from_secs(600);

/// The answers of several providers, which are asked side by side: one that is slow keeps nobody waiting but itself.
fn ask_all(
    ctx: &Ctx,
    places: &[ProviderAt],
    fresh: bool,
) -> Vec<Result<ProviderQuotas, ProviderError>> {
    let (say, said) = channel();
    let mut answers: Vec<_> = places.iter().map(|at| known(ctx, at, fresh).map(Ok)).collect();
    for (number, at) in places.iter().enumerate() {
        if answers.get(number).is_some_and(Option::is_none) {
            let (say, provider) = (say.clone(), ctx.provider(at));
            // Whoever asked may have gone.
            ctx.threads.spawn(Box::new(move || drop(say.send((number, provider.quota())))));
        }
    }
    drop(say);
    while answers.iter().any(Option::is_none)
        && let Ok((number, answer)) = next_of(&*ctx.threads, &said, PATIENCE)
    {
        if let (Some(at), Some(slot)) = (places.get(number), answers.get_mut(number)) {
            *slot = Some(answer.map(|report| learned(ctx, at, report)));
        }
    }
    let nothing = || {
        let what = "no answer came";
        Err(ProviderError::new(Trouble::Transient, "look at quotas", what))
    };
    answers.into_iter().map(|answer| answer.unwrap_or_else(nothing)).collect()
}

fn question(at: &ProviderAt) -> String {
    format!("quota of {at}")
}

/// The last answer, if it is young enough to be shown again.
fn known(ctx: &Ctx, at: &ProviderAt, fresh: bool) -> Option<ProviderQuotas> {
    let Aged { answer, at: said } =
        answer_cache::last(ctx, &question(at), YOUNG_S).filter(|_| !fresh)?;
    Some(ProviderQuotas { provider: at.to_string(), rows: answer, at: said, unknown: Vec::new() })
}

/// What an answer says.
fn learned(ctx: &Ctx, at: &ProviderAt, report: QuotaReport) -> ProviderQuotas {
    let provider = at.to_string();
    let of = |Aged { answer, at }: Aged<Vec<QuotaRow>>, unknown| ProviderQuotas {
        provider: provider.clone(),
        rows: answer,
        at,
        unknown,
    };
    let unknown: Vec<NotLearned> = report.unknown.iter().map(NotLearned::from).collect();
    // What lacks a part is asked for again: somebody may have been given the role meanwhile.
    let answer = if unknown.is_empty() {
        answer_cache::keep(ctx, &question(at), report.rows)
    } else {
        Aged { answer: report.rows, at: ctx.clock.now() }
    };
    of(answer, unknown)
}

/// Leaves what the words mean: words for places and words for types each narrow it, several of one kind widen it.
fn select(of: &mut [ProviderQuotas], request: &QuotaRequest) -> Result<usize, Error> {
    let rows = || of.iter().flat_map(|of| &of.rows);
    let (mut places, mut types) = (Vec::new(), Vec::new());
    for word in &request.words {
        if rows().any(|row| row.is_at(word)) {
            places.push(word.clone());
        } else if rows().any(|row| row.is_called(word)) {
            types.push(word.clone());
        } else {
            let known = rows().flat_map(|row| [row.zone.as_str(), row.kind.as_str()]);
            let hint = did_you_mean(word, known)
                .unwrap_or_else(|| "`tpu quota --all` lists every zone and type".to_owned());
            let what = format!("no zone and no type is called '{word}'");
            return Err(Error::not_found(what).hint(hint));
        }
    }
    let is_meant = |row: &QuotaRow| {
        (places.is_empty() || places.iter().any(|word| row.is_at(word)))
            && (types.is_empty() || types.iter().any(|word| row.is_called(word)))
    };
    let mut idle = 0;
    for of in of {
        of.rows.retain(|row| {
            let is_shown = request.all || !row.is_idle();
            idle += usize::from(is_meant(row) && !is_shown);
            is_meant(row) && is_shown
        });
    }
    Ok(idle)
}
