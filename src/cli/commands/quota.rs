//! `tpu quota`: how much there may be of what, and how much of it is in use.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::QuotaArgs;
use crate::cli::print::{Output, csv, table};
use tpu_core::model::quota::QuotaRow;
use tpu_core::model::time::{self, Timestamp};
use tpu_core::text::{counted, escape};
use tpu_ops::front::quota::{self, QuotaRequest, Quotas};
use tpu_wire::money::QuotaDocument;

/// An answer of this age, in seconds, is of now.
const NOW_S: u64 = 5;

/// `quota`.
pub(in crate::cli) fn run(app: &App, args: &QuotaArgs) -> Outcome {
    let ctx = app.ctx()?;
    csv::alone(args.csv, &app.global)?;
    let request = QuotaRequest { words: args.words.clone(), all: args.all, fresh: args.fresh };
    let quotas = quota::look(ctx, &request)?;
    let notes = notes(&quotas);
    if args.csv {
        return Ok(Output::new(as_csv(&quotas)?, &QuotaDocument::from(&quotas)).notes(notes));
    }
    let now = ctx.clock.now();
    let text = || told(&quotas, now);
    Ok(Output::either(&app.global, text, || QuotaDocument::from(&quotas)).notes(notes))
}

/// What a person should know of what is not there.
fn notes(quotas: &Quotas) -> Vec<String> {
    let unknown = quotas.of.iter().flat_map(|of| &of.unknown);
    let mut notes: Vec<String> = unknown
        .map(|not| match not.hint.as_str() {
            "" => not.message.clone(),
            hint => format!("{}; {hint}", not.message),
        })
        .collect();
    if quotas.idle > 0 {
        let rows = counted(quotas.idle, "row");
        notes.push(format!("{rows} left out of which nothing is granted or in use: --all"));
    }
    notes
}

fn number(value: Option<u64>, unknown: &str) -> String {
    value.map_or_else(|| unknown.to_owned(), |value| value.to_string())
}

/// The whole for people.
fn told(quotas: &Quotas, now: Timestamp) -> String {
    let mut out = String::new();
    for of in &quotas.of {
        let age = now.seconds_since(of.at);
        let when = if age > NOW_S {
            format!(", asked {} ago (--fresh asks again)", time::age(age))
        } else {
            String::new()
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out += &format!("Quotas of {}{when}\n\n", escape(&of.provider));
        if of.rows.is_empty() {
            out += "Nothing is granted, and nothing is in use.\n";
            continue;
        }
        let row = |row: &QuotaRow| {
            vec![
                escape(&row.zone).into_owned(),
                escape(&row.kind).into_owned(),
                number(row.used, "?"),
                number(row.free(), if row.limit.is_some() { "?" } else { "-" }),
                number(row.limit, "-"),
            ]
        };
        let rows: Vec<Vec<String>> = of.rows.iter().map(row).collect();
        out += &table::columns(&["zone", "type", "used", "free", "limit"], &rows);
    }
    out
}

/// The rows for other programs: what is not known is empty.
fn as_csv(quotas: &Quotas) -> Result<String, tpu_ops::Error> {
    let rows = quotas.of.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row)));
    let rows = rows.map(|(of, row)| {
        vec![
            escape(&row.zone).into_owned(),
            escape(&row.kind).into_owned(),
            number(row.used, ""),
            number(row.limit, ""),
            number(row.free(), ""),
            escape(&of.provider).into_owned(),
        ]
    });
    csv::table(&["zone", "type", "used", "limit", "free", "provider"], rows)
}
