//! The one form in which every figure is shown: ours, the floor, a peer, the target, and whether it is met.
//!
//! A line is written as soon as it is known; how each figure grows follows at the end, in the same table.

use std::fmt;
use std::io::{self, Write as _};
use std::time::Duration;

use super::percentile;

/// What is measured, in its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// How long something takes.
    Time(Duration),
    /// Hundredths of a core.
    Share(f64),
    /// Millions of bytes.
    Megabytes(f64),
    /// Millions of bytes in a second: more is better.
    Speed(f64),
    /// A number of things.
    Count(f64),
}

impl Amount {
    /// How many times as much this is; of speeds, how many times as long it takes.
    fn over(self, other: Self) -> f64 {
        let ratio = self.bare() / other.bare().max(1e-12);
        if matches!(self, Self::Speed(_)) { 1.0 / ratio.max(1e-12) } else { ratio }
    }

    fn bare(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Share(n) | Self::Megabytes(n) | Self::Speed(n) | Self::Count(n) => n,
        }
    }

    /// Whether this is no worse than `bound`.
    fn keeps(self, bound: Self) -> bool {
        match self {
            Self::Speed(n) => n >= bound.bare(),
            _ => self.bare() <= bound.bare(),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:.1?}"),
            Self::Share(n) => write!(f, "{n:.1} %"),
            Self::Megabytes(n) => write!(f, "{n:.1} MB"),
            Self::Speed(n) => write!(f, "{n:.0} MB/s"),
            Self::Count(n) => write!(f, "{n:.2}"),
        }
    }
}

/// Times of the same thing, measured again and again.
#[derive(Clone, Debug)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    /// The middle one.
    pub(crate) fn median(&self) -> Duration {
        percentile(&self.0, 50)
    }

    /// The one below which so many hundredths lie.
    pub(crate) fn at(&self, hundredths: usize) -> Duration {
        percentile(&self.0, hundredths)
    }
}

impl From<Vec<Duration>> for Sample {
    fn from(times: Vec<Duration>) -> Self {
        Self(times)
    }
}

/// Another program that does the same.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// Its name and what it needs.
    Measured(String, Amount),
    /// Why it was not measured.
    Missing(String),
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    figure: String,
    ours: Option<Amount>,
    /// Eight of ten values lie between these.
    spread: Option<(Amount, Amount)>,
    floor: Option<Amount>,
    peer: Option<Peer>,
    target: String,
    met: Option<bool>,
}

impl Row {
    /// A line with one value.
    pub(crate) fn of(figure: impl Into<String>, ours: Amount) -> Self {
        Self { ours: Some(ours), ..Self::said(figure, "") }
    }

    /// A line with the middle of many times, and how far they spread.
    pub(crate) fn time(figure: impl Into<String>, ours: &Sample) -> Self {
        let spread = Some((Amount::Time(ours.at(10)), Amount::Time(ours.at(90))));
        Self { spread, ..Self::of(figure, Amount::Time(ours.median())) }
    }

    /// A line without a value, which says why.
    pub(crate) fn said(figure: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            figure: figure.into(),
            ours: None,
            spread: None,
            floor: None,
            peer: None,
            target: why.into(),
            met: None,
        }
    }

    /// The least that the same work can cost.
    pub(crate) fn floor(mut self, floor: Amount) -> Self {
        self.floor = Some(floor);
        self
    }

    /// The same work done by another program.
    pub(crate) fn peer(mut self, peer: Peer) -> Self {
        self.peer = Some(peer);
        self
    }

    /// What ours may be at the worst, and how that is said.
    pub(crate) fn bound(mut self, bound: Amount, said: impl Into<String>) -> Self {
        self.met = self.ours.map(|ours| ours.keeps(bound));
        self.target = said.into();
        self
    }

    /// The same for a bound that only a peer gives: nothing is met where it was not measured.
    pub(crate) fn bound_by_peer(mut self, times: f64, said: impl Into<String>) -> Self {
        if let (Some(ours), Some(Peer::Measured(_, peer))) = (self.ours, &self.peer) {
            self.met = Some(ours.over(*peer) <= times && self.met != Some(false));
        }
        let said = said.into();
        self.target =
            if self.target.is_empty() { said } else { format!("{}; {said}", self.target) };
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figure, ours, spread, floor, peer, target, met } = self;
        write!(f, "| {figure} | ")?;
        if let Some(ours) = ours {
            write!(f, "{ours}")?;
        }
        if let Some((low, high)) = spread {
            write!(f, " ({low}–{high})")?;
        }
        match (ours, floor) {
            (Some(ours), Some(floor)) => write!(f, " | {floor} | {:.2} | ", ours.over(*floor))?,
            _ => write!(f, " | | | ")?,
        }
        match (ours, peer) {
            (Some(ours), Some(Peer::Measured(name, peer))) => {
                write!(f, "{name} {peer} | {:.2}", ours.over(*peer))?;
            }
            (_, Some(Peer::Missing(why))) => write!(f, "{why} |")?,
            _ => write!(f, "|")?,
        }
        let met = match met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        write!(f, " | {target} | {met} |")
    }
}

/// How a figure grows with the size of what it works on.
#[derive(Debug)]
struct Curve {
    figure: String,
    unit: String,
    /// Size and time, from the smallest on.
    points: Vec<(u32, Duration)>,
}

/// The steepest power that still counts as linear: neighbours that lie a factor of five apart may then
/// differ by a quarter more than five, which is what a shared machine adds.
const LINEAR: f64 = 1.15;

impl Curve {
    /// The largest power of its size with which it grows from one point to the next.
    fn steepest(&self) -> f64 {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        let power = |((n, a), (m, b)): (&(u32, Duration), &(u32, Duration))| {
            let longer = b.as_secs_f64() / a.as_secs_f64().max(1e-12);
            longer.max(1e-12).ln() / (f64::from(*m) / f64::from(*n)).ln()
        };
        pairs.map(power).fold(0.0, f64::max)
    }

    fn row(&self) -> Option<Row> {
        if self.points.len() < 2 {
            return None;
        }
        let sizes: Vec<_> = self.points.iter().map(|(n, _)| n.to_string()).collect();
        let times: Vec<_> = self.points.iter().map(|(_, time)| format!("{time:.1?}")).collect();
        let steepest = self.steepest();
        let figure = format!("growth: {}, {} {}", self.figure, sizes.join(" · "), self.unit);
        let said =
            format!("{}: at most as n^{steepest:.2}, no worse than linear", times.join(" · "));
        Some(Row { met: Some(steepest <= LINEAR), ..Row::said(figure, said) })
    }
}

/// The table, written line by line.
#[derive(Debug, Default)]
pub(crate) struct Table {
    curves: Vec<Curve>,
    has_begun: bool,
}

impl Table {
    /// Writes a line.
    pub(crate) fn push(&mut self, row: &Row) -> io::Result<()> {
        let mut out = io::stdout();
        if !self.has_begun {
            self.has_begun = true;
            writeln!(out, "| figure | ours | floor | ratio | peer | ratio | target | met |")?;
            writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        }
        writeln!(out, "{row}")?;
        out.flush()
    }

    /// Notes how long a figure took at one size.
    pub(crate) fn point(&mut self, figure: &str, unit: &str, size: u32, took: Duration) {
        let is_it = |curve: &&mut Curve| curve.figure == figure && curve.unit == unit;
        if let Some(curve) = self.curves.iter_mut().find(is_it) {
            curve.points.push((size, took));
            return;
        }
        let points = vec![(size, took)];
        self.curves.push(Curve { figure: figure.to_owned(), unit: unit.to_owned(), points });
    }

    /// Writes how the figures grow.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        for curve in std::mem::take(&mut self.curves) {
            if let Some(row) = curve.row() {
                self.push(&row)?;
            }
        }
        Ok(())
    }
}
