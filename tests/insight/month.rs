//! Statistics say what really happened: a month of a lab is played with the real manager, and what `tpu stats` makes of
//! its records, journal and archive is held against what those know who made it happen.

use std::collections::BTreeMap;

use tpu_core::plan::stats::By;
use tpu_core::plan::stats::figures::Figures;
use tpu_ops::observe::stats::StatsReport;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::sim::month::{self, Month, Size, TrueJob, TrueRun};
use crate::sim::observer::Cause;

/// How far a figure may be from the truth.
const ONE_PERCENT: f64 = 0.01;
/// Of fewer lineages goodput is not held: how long a step takes is told by whole attempts, and of a short one the part
/// before its first and behind its last word is much.
const LINEAGES: f64 = 8.0;
/// What lies between the claim of a launch and its program, in seconds.
const LAUNCH_S: f64 = 3.0;

/// What is true of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    hours: f64,
    cost: f64,
    preemptions: f64,
    useful_s: f64,
    wall_s: f64,
    waited_s: f64,
    jobs: f64,
    lineages: f64,
    finished: f64,
}

impl Truth {
    fn worked(&mut self, run: &TrueRun, price: f64) {
        let hours = (run.ended_s - run.began_s) / 3_600.0;
        self.hours += hours;
        self.cost += hours * price;
        self.preemptions += f64::from(u8::from(was_preempted(run)));
    }

    fn waited(&mut self, job: &TrueJob) {
        self.waited_s += job.began_s.unwrap_or(job.submitted_s) - job.submitted_s;
        self.jobs += 1.0;
    }

    /// What is over.
    fn came_to(&mut self, job: &TrueJob) {
        self.useful_s += job.useful_s;
        self.wall_s += job.ended_s - job.began_s.unwrap_or(job.ended_s);
        self.lineages += 1.0;
        self.finished += f64::from(u8::from(job.is_done));
    }
}

fn was_preempted(run: &TrueRun) -> bool {
    run.cause == Some(Cause::Preempted)
}

/// The truth by rows, from the month itself.
fn truth(month: &Month, by: By) -> BTreeMap<String, Truth> {
    let mut rows: BTreeMap<String, Truth> = BTreeMap::new();
    let key = |run: &TrueRun| match by {
        By::User => run.user.clone(),
        By::Target => month::name_of(run.on),
        By::Type => month.size.type_of(run.on).0.to_owned(),
        By::Zone => month::zone_of(run.on),
        By::Kind => "tpu".to_owned(),
        By::Tag => "-".to_owned(),
        By::Week => String::new(),
    };
    let mut last: BTreeMap<u32, &TrueRun> = BTreeMap::new();
    let mut first: BTreeMap<u32, &TrueRun> = BTreeMap::new();
    for run in &month.runs {
        rows.entry(key(run)).or_default().worked(run, month.size.type_of(run.on).1);
        first.entry(run.lineage).or_insert(run);
        last.insert(run.lineage, run);
    }
    for (number, job) in &month.jobs {
        let (Some(first), Some(last)) = (first.get(number), last.get(number)) else { continue };
        rows.entry(key(first)).or_default().waited(job);
        if last.cause.is_some() {
            rows.entry(key(last)).or_default().came_to(job);
        }
    }
    rows
}

/// Figures that are not what is true, in words.
fn wrong(row: &str, truth: &Truth, told: &Figures) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "seconds of a month")]
    let waited = told.waited_s().map_or(0.0, |seconds| seconds as f64);
    let share = |useful: f64, wall: f64| if wall > 0.0 { useful / wall } else { 0.0 };
    let figures = [
        ("hours", truth.hours, told.hours()),
        ("cost", truth.cost, told.cost().unwrap_or(f64::NAN)),
        ("goodput", share(truth.useful_s, truth.wall_s), told.got_on.share().unwrap_or(f64::NAN)),
        (
            "preemptions an hour",
            share(truth.preemptions, truth.hours),
            told.preemptions_per_hour().unwrap_or(f64::NAN),
        ),
        ("waited", truth.waited_s, waited),
        ("finished", truth.finished, f64::from(told.finished)),
    ];
    let (jobs, lineages) = (truth.jobs, truth.lineages);
    let is_wrong = |(name, truth, told): &(&str, f64, f64)| {
        if *name == "goodput" && lineages < LINEAGES {
            return false;
        }
        let off = (told - truth).abs();
        // From the claim to the program's first moment it takes a launcher's while, whoever waited how long.
        let launches_s = if *name == "waited" { jobs * LAUNCH_S } else { 0.0 };
        off.is_nan() || off > truth.abs() * ONE_PERCENT + launches_s
    };
    let off = |(name, truth, told): (&str, f64, f64)| {
        format!(
            "{row}: {name} is {truth:.4}, and {told:.4} is told ({:+.2} %)",
            (told / truth - 1.0) * 100.0
        )
    };
    figures.into_iter().filter(is_wrong).map(off).collect()
}

/// Begins and ends are told by whole seconds, and by claims of launches.
const EACH_S: f64 = LAUNCH_S + 1.0;

/// How long programs really worked in each hour of the day, in seconds, and how many were then taken their target.
fn true_hours(month: &Month) -> [(f64, f64); 24] {
    let mut hours = [(0.0, 0.0); 24];
    for run in &month.runs {
        let mut from = run.began_s;
        while from < run.ended_s {
            let (hour, left_s) = month::hour_of(from);
            let to = (from + left_s).min(run.ended_s);
            hours[hour].0 += to - from;
            from = to;
        }
        hours[month::hour_of(run.ended_s).0].1 += f64::from(u8::from(was_preempted(run)));
    }
    hours
}

/// What is told wrongly of hours of the day, days, failures, recoveries, and of waits for targets.
fn told_wrongly_of_events(month: &Month) -> Vec<String> {
    let stats = &report(month, By::User).stats;
    let mut wrong = Vec::new();
    let mut hold = |what: String, truth: f64, told: f64, slack: f64| {
        if (told - truth).abs() > truth * ONE_PERCENT + slack {
            wrong.push(format!("{what} is {truth:.2}, and {told:.2} is told"));
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "some thousands of runs of a month")]
    let (runs, float) = (month.runs.len() as f64, |seconds: u64| seconds as f64);
    for (hour, (seconds, taken)) in true_hours(month).into_iter().enumerate() {
        let told = stats.hours[hour];
        hold(format!("work in hour {hour}"), seconds, float(told.seconds), EACH_S * runs);
        // One at the end of an hour may be told in the next.
        hold(format!("preemptions in hour {hour}"), taken, f64::from(told.preemptions), 1.0);
    }
    let worked: f64 = month.runs.iter().map(|run| run.ended_s - run.began_s).sum();
    let taken = how_many(month, &|_, run| was_preempted(run));
    let days = stats.days.values();
    hold(
        "work by day".to_owned(),
        worked,
        float(days.clone().map(|day| day.seconds).sum()),
        EACH_S * runs,
    );
    let told: u32 = days.map(|day| day.preemptions).sum();
    hold("preemptions by day".to_owned(), taken, f64::from(told), 0.0);
    let told = stats.total.failures.get("preempted").copied().unwrap_or_default();
    hold("failures by preemption".to_owned(), taken, f64::from(told), 0.0);
    // What failed goes on, whose target was taken on one that came: all but those at the very end.
    let goes_on = |at: usize, run: &TrueRun| {
        month.runs.iter().skip(at + 1).any(|later| later.lineage == run.lineage)
    };
    let failed = |run: &TrueRun| matches!(run.cause, Some(Cause::Preempted | Cause::Grpc));
    let back = how_many(month, &|at, run| failed(run) && goes_on(at, run));
    let came = how_many(month, &|at, run| was_preempted(run) && goes_on(at, run));
    let (recoveries, capacity) = (stats.total.recoveries, stats.total.capacity);
    hold("recoveries".to_owned(), back, f64::from(recoveries.count), 2.0);
    hold("targets that came".to_owned(), came, f64::from(capacity.count), 2.0);
    let least = f64::from(capacity.count) * month::ANEW_S;
    if float(capacity.total_s) < least || capacity.total_s > recoveries.total_s {
        wrong.push(format!(
            "targets came after {} s in all, not before {least} s",
            capacity.total_s
        ));
    }
    wrong
}

/// How many of its runs are such.
fn how_many(month: &Month, is_meant: &dyn Fn(usize, &TrueRun) -> bool) -> f64 {
    let runs = month.runs.iter().enumerate();
    let count = runs.filter(|(at, run)| is_meant(*at, run)).count();
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn report(month: &Month, by: By) -> &StatsReport {
    month.reports.iter().find(|report| report.by == by).expect("asked for each")
}

/// Everything that is told wrongly.
fn told_wrongly(month: &Month) -> Vec<String> {
    let mut all = told_wrongly_of_events(month);
    let kinds = truth(month, By::Kind);
    let whole = kinds.get("tpu").copied().unwrap_or_default();
    for by in By::ALL {
        let report = report(month, by);
        all.extend(wrong(&format!("all, by {}", by.as_str()), &whole, &report.stats.total));
        if matches!(by, By::User | By::Type | By::Zone | By::Target) {
            for (key, truth) in truth(month, by) {
                let row = report.stats.rows.iter().find(|row| row.key == key);
                match row {
                    Some(row) => all.extend(wrong(&key, &truth, &row.figures)),
                    None => all.push(format!("{key} has no row")),
                }
            }
        }
    }
    all
}

/// Plays a month; what was played, in words.
fn hold(size: Size) -> String {
    let clock = SystemClock::new();
    let month = month::play(size);
    let seconds = clock.monotonic().as_secs_f64();
    assert_eq!(month.broken, None, "{}", month.trace.join("\n"));
    let waited = month.jobs.values().filter_map(|job| Some(job.began_s? - job.submitted_s));
    let most_s = waited.fold(0.0, f64::max);
    assert!(most_s > 60.0 * LAUNCH_S, "nobody waited for a target: {most_s} s at most");
    let total = &report(&month, By::User).stats.total;
    let said = format!(
        "{size:?}: {} jobs, {} programs, {:.0} h, {} preemptions, goodput {:.4}, {:.0} s of waiting each; {seconds:.0} s",
        month.jobs.len(),
        month.runs.len(),
        total.hours(),
        total.preemptions,
        total.got_on.share().unwrap_or_default(),
        total.queue.mean_s().unwrap_or_default(),
    );
    let wrong = told_wrongly(&month);
    assert_eq!(wrong, [""; 0], "{said}\n{}", wrong.join("\n"));
    said
}

/// A share of what `./x prove insight` plays whole.
#[test]
fn statistics_are_what_was_true() {
    println!("{}", hold(Size { seed: 5, users: 4, targets: 6, hours: 12.0, load: 0.93 }));
}

/// What `./x prove insight` plays: ten users on two hundred targets for `TPU_PROVE_INSIGHT` hours.
#[test]
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn as_asked() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(hours) = number("TPU_PROVE_INSIGHT") else { return };
    let targets = number("TPU_PROVE_TARGETS").map_or(200, |n| usize::try_from(n).unwrap_or(200));
    // Targets are away for much of the time: with more than this ever more would wait.
    let size = Size { seed: 24, users: 10, targets, hours: f64::from(hours), load: 0.57 };
    println!("{}", hold(size));
}
