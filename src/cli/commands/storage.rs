//! `tpu storage`: how much lies where.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::StorageArgs;
use crate::cli::print::{Output, csv, table};
use crate::cli::progress::Progress;
use tpu_core::model::time::{self, Zone};
use tpu_core::text::{self, escape};
use tpu_ops::front::storage::{self, StorageReport};
use tpu_ops::{Error, Kind};
use tpu_wire::checkpoints::StorageDocument;

/// `storage`.
pub(in crate::cli) fn run(app: &App, args: &StorageArgs) -> Outcome {
    csv::alone(args.csv, &app.global)?;
    let ctx = app.ctx()?;
    let report = {
        let _line = Progress::new(app, "counting");
        storage::report(ctx, &args.places, args.fresh)?
    };
    if report.is_unknown() && !args.places.is_empty() {
        let why: Vec<&str> = report.rows.iter().filter_map(|row| row.unknown.as_deref()).collect();
        let error = Error::new(Kind::Unreachable, why.join("\n"));
        return Err(if report.hints.is_empty() {
            error
        } else {
            error.hint(report.hints.join("\n"))
        });
    }
    let mut notes: Vec<String> = report
        .rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row.name, row.unknown.as_ref()?)))
        .collect();
    notes.dedup();
    notes.extend(report.hints.clone());
    if args.csv {
        return Ok(Output::new(as_csv(&report)?, &StorageDocument::from(&report)).notes(notes));
    }
    let zone = app.zone(&*ctx.data()?, None)?;
    let text = || told(&report, &zone);
    Ok(Output::either(&app.global, text, || StorageDocument::from(&report)).notes(notes))
}

fn told(report: &StorageReport, zone: &Zone) -> String {
    if report.rows.is_empty() {
        return "The project has no bucket.".to_owned();
    }
    let unknown = || "?".to_owned();
    let mut rows: Vec<Vec<String>> = report
        .rows
        .iter()
        .map(|row| {
            let of = row.figures.as_ref();
            let largest = of.and_then(|of| of.largest.as_ref());
            vec![
                escape(&row.name).into_owned(),
                of.map_or_else(unknown, |of| text::bytes(of.bytes)),
                of.map_or_else(unknown, |of| of.objects.to_string()),
                of.and_then(|of| of.oldest).map_or_else(|| "-".to_owned(), |at| zone.stamp(at)),
                largest.map_or_else(
                    || "-".to_owned(),
                    |(name, bytes)| format!("{} {}", text::bytes(*bytes), escape(name)),
                ),
                row.age_s.map_or_else(|| "-".to_owned(), time::age),
            ]
        })
        .collect();
    let known: Vec<_> = report.rows.iter().filter_map(|row| row.figures.as_ref()).collect();
    if known.len() > 1 {
        let bytes = known.iter().map(|of| of.bytes).fold(0_u64, u64::saturating_add);
        let objects: u64 = known.iter().map(|of| of.objects).sum();
        let none = String::new;
        rows.push(vec![
            "total".to_owned(),
            text::bytes(bytes),
            objects.to_string(),
            none(),
            none(),
            none(),
        ]);
    }
    table::columns(&["name", "size", "objects", "oldest", "largest checkpoint", "age"], &rows)
}

/// The rows for other programs.
fn as_csv(report: &StorageReport) -> Result<String, Error> {
    let rows = report.rows.iter().map(|row| {
        let of = row.figures.as_ref();
        let number = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
        let largest = of.and_then(|of| of.largest.as_ref());
        let oldest = of.and_then(|of| of.oldest).map(time::Timestamp::to_rfc3339);
        vec![
            escape(&row.name).into_owned(),
            number(of.map(|of| of.bytes)),
            number(of.map(|of| of.objects)),
            oldest.unwrap_or_default(),
            number(largest.map(|(_, bytes)| *bytes)),
        ]
    });
    csv::table(&["name", "bytes", "objects", "oldest", "largest_checkpoint"], rows)
}
