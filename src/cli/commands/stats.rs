//! `tpu stats`: what ran, counted and drawn.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::StatsArgs;
use crate::cli::print::plot::{self, Glyphs};
use crate::cli::print::{self, Output, csv, table};
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::By;
use tpu_core::plan::stats::figures::{Figures, hours};
use tpu_core::text::{self, counted, escape};
use tpu_ops::Error;
use tpu_ops::act::selection;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::observe::stats::{self, StatsReport, StatsRequest};
use tpu_ops::waiting::whose::{About, Purpose};
use tpu_wire::stats::{StatsDocument, TOTAL};

/// Columns where nobody says how many there are.
const USUAL: usize = 100;
/// Bars that are drawn.
const BARS: usize = 20;

/// `stats`.
pub(in crate::cli) fn run(app: &App, args: &StatsArgs) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let sorted = selection::sort(&args.words, &data)?;
    sorted.nothing_else()?;
    sorted.no_number()?;
    csv::alone(args.csv, &app.global)?;
    let by = By::parse(&args.by).ok_or_else(|| {
        let known = By::ALL.map(By::as_str);
        let hint = did_you_mean(&args.by, known).unwrap_or_else(|| known.join(", "));
        Error::usage(format!("--by {}: nothing is counted by that", args.by)).hint(hint)
    })?;
    let user = match sorted.user {
        None => None,
        word => {
            let about = About { word, purpose: Purpose::Look, jobs: &[] };
            Some(app.requester()?.user(&data, &about)?)
        }
    };
    let zone = app.zone(&data, user.as_ref())?;
    let now = ctx.clock.now();
    let instant = |flag: &str, word: &Option<String>| {
        word.as_ref().map(|word| instant(flag, word, now, &zone)).transpose()
    };
    let since = instant("--since", &args.since)?;
    let until = instant("--until", &args.until)?;
    if since.is_some_and(|since| since >= until.unwrap_or(now)) {
        return Err(Error::usage("nothing lies between --since and --until")
            .hint("--since is the earlier one, as in --since 30d --until 7d"));
    }
    let report =
        stats::report(ctx, &StatsRequest { whose: Whose::of(user), by, since, until }, &zone)?;
    if args.csv {
        return Ok(Output::new(as_csv(&report)?, &StatsDocument::from(&report)));
    }
    let columns = app.width().unwrap_or(USUAL);
    let glyphs = if print::is_ascii(&app.env) { Glyphs::ASCII } else { Glyphs::BLOCKS };
    let text = || told(&report, &zone, columns, glyphs);
    Ok(Output::either(&app.global, text, || StatsDocument::from(&report)).notes(notes(&report)))
}

/// Reads so long ago, a day, or an instant.
fn instant(flag: &str, word: &str, now: Timestamp, zone: &Zone) -> Result<Timestamp, Error> {
    zone.moment(word, now).ok_or_else(|| {
        Error::usage(format!("{flag} {word}: neither a time span nor a day"))
            .hint("as in 90m, 12h, 30d, 2026-11-01 or 2026-11-01T14:00:00Z")
    })
}

/// What a person should know of what is not counted.
fn notes(report: &StatsReport) -> Vec<String> {
    let endless = (report.endless > 0).then(|| {
        let attempts = counted(report.endless as usize, "attempt");
        format!("of {attempts} nobody knows when it ended: no row has them")
    });
    endless.into_iter().collect()
}

/// The columns of the table.
const HEAD: [&str; 12] = [
    "",
    "hours",
    "cost",
    "goodput",
    "waited",
    "to target",
    "preempted",
    "per hour",
    "other failures",
    "back after",
    "finished",
    "failed",
];

fn row(key: &str, figures: &Figures) -> Vec<String> {
    let vain = match figures.in_vain {
        0 => String::new(),
        times => format!(", {times} in vain"),
    };
    vec![
        text::cut(&escape(key), 40).into_owned(),
        format!("{:.1}", figures.hours()),
        figures.cost_in_words(),
        figures.goodput_in_words(),
        figures.waited_in_words(),
        format!("{}{vain}", figures.capacity.mean_in_words()),
        figures.preemptions.to_string(),
        figures.rate_in_words(),
        figures.other_failures().to_string(),
        figures.recoveries.mean_in_words(),
        figures.finished.to_string(),
        figures.failed.to_string(),
    ]
}

/// The whole report for people.
fn told(report: &StatsReport, zone: &Zone, columns: usize, glyphs: Glyphs) -> String {
    let stats = &report.stats;
    if stats.total == Figures::default() {
        return "Nothing has run in that time.".to_owned();
    }
    let mut head = HEAD;
    head[0] = report.by.as_str();
    let mut rows: Vec<Vec<String>> =
        stats.rows.iter().map(|of| row(&of.key, &of.figures)).collect();
    if rows.len() > 1 {
        rows.push(row(TOTAL, &stats.total));
    }
    let since = match report.period.since {
        Some(since) => format!("from {}", zone.stamp(since)),
        None => "from the first attempt".to_owned(),
    };
    let mut out = format!(
        "What ran {since} to {}\n\n{}",
        zone.stamp(report.period.until),
        table::columns(&head, &rows)
    );
    let bars: Vec<(String, f64, String)> = stats
        .rows
        .iter()
        .take(BARS)
        .map(|of| {
            let hours = of.figures.hours();
            (escape(&of.key).into_owned(), hours, format!("{hours:.1}"))
        })
        .collect();
    let mut section = |title: &str, plot: String| {
        if !plot.is_empty() {
            out += &format!("\n{title}\n{plot}");
        }
    };
    section(&format!("hours by {}", report.by.as_str()), plot::bars(&bars, columns, glyphs));
    if stats.total.preemptions > 0 {
        let rates = stats.hours.map(|seen| seen.preemptions_per_hour().unwrap_or_default());
        let title = "preemptions in an hour of work, by hour of day";
        section(title, plot::hours(&rates, "/h", glyphs));
    }
    let days: Vec<_> = stats.days.iter().map(|(day, seen)| (*day, hours(seen.seconds))).collect();
    if days.len() > 1 {
        section("hours by day", plot::calendar(&days, columns, glyphs));
    }
    section("failures", failures(&stats.total, columns, glyphs));
    out
}

/// Failures by kind, and the lines by which most of them came.
fn failures(figures: &Figures, columns: usize, glyphs: Glyphs) -> String {
    let mut kinds: Vec<(String, f64, String)> = figures
        .failures
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), f64::from(*count), count.to_string()))
        .collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut out = plot::bars(&kinds, columns, glyphs);
    for line in &figures.lines {
        let said = format!("  {}x {}: {}", line.times, line.kind, escape(line.line.trim()));
        out += &format!("{}\n", text::cut(&said, columns));
    }
    out
}

/// The rows for other programs.
fn as_csv(report: &StatsReport) -> Result<String, Error> {
    let head = [
        report.by.as_str(),
        "attempts",
        "hours",
        "cost",
        "goodput",
        "waited_s",
        "waits",
        "capacity_s",
        "capacity_came",
        "capacity_in_vain",
        "preemptions",
        "preemptions_per_hour",
        "failures",
        "recoveries",
        "recovery_s",
        "finished",
        "failed",
        "killed",
    ];
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let rows = report.stats.rows.iter().map(|row| {
        let of = &row.figures;
        let kinds: Vec<String> =
            of.failures.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
        vec![
            escape(&row.key).into_owned(),
            of.attempts.to_string(),
            of.hours().to_string(),
            number(of.cost()),
            number(of.got_on.share()),
            of.waited_s().map(|s| s.to_string()).unwrap_or_default(),
            of.queue.count.to_string(),
            of.capacity.total_s.to_string(),
            of.capacity.count.to_string(),
            of.in_vain.to_string(),
            of.preemptions.to_string(),
            number(of.preemptions_per_hour()),
            kinds.join(" "),
            of.recoveries.count.to_string(),
            of.recoveries.total_s.to_string(),
            of.finished.to_string(),
            of.failed.to_string(),
            of.killed.to_string(),
        ]
    });
    csv::table(&head, rows)
}
