//! `tpu billing`: what a month has cost, by day and by category.

use std::collections::BTreeMap;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::BillingArgs;
use crate::cli::print::plot::{self, Glyphs};
use crate::cli::print::{self, Output, csv, table};
use tpu_core::model::billing::{ChargeBy, Month};
use tpu_core::model::time::{self, Timestamp};
use tpu_core::text::{self, escape};
use tpu_ops::Error;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::front::billing::{self, Bill, BillingRequest, ChargeSum};
use tpu_wire::money::{BillingDocument, rounded};

/// Columns where nobody says how many there are.
const USUAL: usize = 100;
/// An answer of this age, in seconds, is of now.
const NOW_S: u64 = 5;

/// `billing`.
pub(in crate::cli) fn run(app: &App, args: &BillingArgs) -> Outcome {
    let ctx = app.ctx()?;
    csv::alone(args.csv, &app.global)?;
    let by = ChargeBy::parse(&args.by).ok_or_else(|| {
        let known = ChargeBy::ALL.map(ChargeBy::as_str);
        let hint = did_you_mean(&args.by, known).unwrap_or_else(|| known.join(", "));
        Error::usage(format!("--by {}: bills are not put together by that", args.by)).hint(hint)
    })?;
    let month = args.month.as_ref().map(|word| {
        Month::parse(word).ok_or_else(|| {
            Error::usage(format!("--month {word}: no month")).hint("as in --month 2026-10")
        })
    });
    let data = ctx.data()?;
    let user = app.known_user(&data);
    let user = user.as_ref().and_then(|name| data.user(name));
    let request = BillingRequest { month: month.transpose()?, by, fresh: args.fresh };
    let bill = billing::read(ctx, user, &request)?;
    if args.csv {
        return Ok(Output::new(as_csv(&bill)?, &BillingDocument::from(&bill)));
    }
    let columns = app.width().unwrap_or(USUAL);
    let glyphs = if print::is_ascii(&app.env) { Glyphs::ASCII } else { Glyphs::BLOCKS };
    let now = ctx.clock.now();
    let text = || told(&bill, now, columns, glyphs);
    Ok(Output::either(&app.global, text, || BillingDocument::from(&bill)))
}

/// Money with two digits, whatever was added up first; no bill says -0.00.
fn money(amount: f64) -> String {
    let text = format!("{:.2}", rounded(amount));
    if text == "-0.00" { "0.00".to_owned() } else { text }
}

fn row(name: &str, currency: &str, sum: &ChargeSum) -> Vec<String> {
    vec![
        text::cut(&escape(name), 44).into_owned(),
        money(sum.cost),
        money(sum.credits),
        money(sum.net()),
        escape(currency).into_owned(),
    ]
}

/// The whole for people: a table of the categories, and bars for the days.
fn told(bill: &Bill, now: Timestamp, columns: usize, glyphs: Glyphs) -> String {
    let age = now.seconds_since(bill.charges.at);
    let when = if age > NOW_S {
        format!(", read {} ago (--fresh reads again)", time::age(age))
    } else {
        String::new()
    };
    let (month, table) = (bill.asked.month, &bill.asked.table);
    if bill.charges.answer.is_empty() {
        return format!("{table} has no charges of {month}{when}.");
    }
    let mut out = format!("What {month} has cost by {table}{when}\n\n");
    let mut categories = bill.sums(|charge| &charge.category);
    // What is dearest first.
    categories.sort_by(|one, other| other.2.net().total_cmp(&one.2.net()));
    let mut rows: Vec<Vec<String>> =
        categories.iter().map(|(name, currency, sum)| row(name, currency, sum)).collect();
    for (currency, sum) in bill.totals() {
        if rows.len() > 1 {
            rows.push(row("total", currency, &sum));
        }
    }
    let by = bill.asked.by.as_str();
    out += &table::columns(&[by, "cost", "credits", "net", ""], &rows);
    let mut days: BTreeMap<&str, Vec<(String, f64, String)>> = BTreeMap::new();
    for (day, currency, sum) in bill.sums(|charge| &charge.day) {
        let net = rounded(sum.net());
        let bar = (day.to_owned(), net, money(net));
        days.entry(currency).or_default().push(bar);
    }
    for (currency, bars) in days {
        out +=
            &format!("\nnet by day, {}\n{}", escape(currency), plot::bars(&bars, columns, glyphs));
    }
    out
}

/// The rows for other programs.
fn as_csv(bill: &Bill) -> Result<String, Error> {
    let amount = |amount: f64| rounded(amount).to_string();
    let rows = bill.charges.answer.iter().map(|charge| {
        vec![
            escape(&charge.day).into_owned(),
            escape(&charge.category).into_owned(),
            escape(&charge.currency).into_owned(),
            amount(charge.cost),
            amount(charge.credits),
            amount(charge.net()),
        ]
    });
    csv::table(&["day", bill.asked.by.as_str(), "currency", "cost", "credits", "net"], rows)
}
