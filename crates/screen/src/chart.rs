//! Which curve of a run is looked at in full width, and which part of it: pure values, which the view draws and keys move.

use tpu_core::model::curve::{Curve, Curves, Point};

/// So often the time that is shown can be halved.
const CLOSEST: u32 = 12;
/// Fewer values are no curve.
const FEWEST: usize = 4;
/// The cursor goes along what is shown in so many steps.
const STEPS: f64 = 40.0;

/// What a person has chosen of the curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The metric by its name; the first one if there is none of that name.
    metric: Option<String>,
    /// How often the steps that are shown were halved.
    zoom: u32,
    /// The step at which the cursor stands.
    cursor: Option<f64>,
    /// Whether the chart was asked for, so that output gives way to it where there is no room for both.
    pub asked: bool,
}

/// One curve, as far as it is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked<'a> {
    /// The names of all metrics that can be drawn.
    pub names: Vec<&'a str>,
    /// Which of them is.
    pub at: usize,
    /// The curve itself.
    pub curve: &'a Curve,
    /// All of its points, as one run.
    pub points: Vec<Point>,
    /// The first and the last step that are shown.
    pub steps: (f64, f64),
    /// The point at the cursor.
    pub cursor: Option<Point>,
}

impl Looked<'_> {
    /// The points that are shown.
    pub fn shown(&self) -> Vec<Point> {
        let (from, to) = self.steps;
        self.points.iter().copied().filter(|point| point.step >= from && point.step <= to).collect()
    }
}

impl Chart {
    /// What is to be drawn of these curves; `None` if there is nothing that could be.
    pub fn look<'a>(&self, curves: &'a Curves) -> Option<Looked<'a>> {
        let all = curves.metrics();
        let is_chosen = |(name, _): &(&str, &Curve)| self.metric.as_deref() == Some(*name);
        let at = all.iter().position(is_chosen).unwrap_or(0);
        let (_, curve) = *all.get(at)?;
        let points = curve.whole();
        let (first, last) = (points.first()?.step, points.last()?.step);
        let nearest = |step: f64| {
            points
                .iter()
                .copied()
                .min_by(|a, b| (a.step - step).abs().total_cmp(&(b.step - step).abs()))
        };
        let cursor = self.cursor.and_then(nearest);
        let width = (last - first) / f64::from(1_u32 << self.zoom.min(CLOSEST));
        let middle = cursor.map_or(last, |point| point.step);
        let from = (middle - width / 2.0).clamp(first, (last - width).max(first));
        let names = all.iter().map(|(name, _)| *name).collect();
        Some(Looked { names, at, curve, steps: (from, from + width), cursor, points })
    }

    /// Looks at the next metric, or at the one before.
    pub fn turn(&mut self, curves: &Curves, on: bool) {
        self.asked = true;
        let Some(looked) = self.look(curves) else { return };
        let count = looked.names.len();
        let next = (looked.at + if on { 1 } else { count - 1 }) % count;
        self.metric = looked.names.get(next).map(|name| (*name).to_owned());
    }

    /// Shows half as many steps around the cursor, as long as there are some values among them, or twice as many.
    pub(crate) fn zoom(&mut self, curves: &Curves, closer: bool) {
        self.asked = true;
        if !closer {
            self.zoom = self.zoom.saturating_sub(1);
            return;
        }
        let nearer = Self { zoom: (self.zoom + 1).min(CLOSEST), ..self.clone() };
        if nearer.look(curves).is_some_and(|looked| looked.shown().len() >= FEWEST) {
            *self = nearer;
        }
    }

    /// Moves the cursor: to another point each time, as long as there is one in that direction.
    pub fn go(&mut self, curves: &Curves, on: bool) {
        self.asked = true;
        let Some(looked) = self.look(curves) else { return };
        let last = looked.points.last().copied();
        let Some(now) = looked.cursor.or(last).map(|point| point.step) else { return };
        let far = (looked.steps.1 - looked.steps.0) / STEPS;
        let mut points = looked.points.iter().map(|point| point.step);
        let next = if on {
            let behind: Vec<f64> = points.filter(|step| *step > now).collect();
            behind.iter().rev().find(|step| **step <= now + far).or(behind.first()).copied()
        } else {
            let before: Vec<f64> = points.by_ref().take_while(|step| *step < now).collect();
            before.iter().find(|step| **step >= now - far).or(before.last()).copied()
        };
        self.cursor = Some(next.unwrap_or(now));
    }

    /// Goes back to the whole curve of whatever is looked at next. The metric stays.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self { metric: self.metric.take(), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::curve::{Measured, Metric};
    use tpu_core::model::ids::JobNumber;

    fn curves() -> Curves {
        let mut curves = Curves::default();
        let at = |step: u32| Measured {
            step: f64::from(step),
            loss: 1.0,
            others: vec![(Metric::from("acc"), 0.5), (Metric::from("lr"), 0.1)],
        };
        let all: Vec<_> = (0..=800).map(at).collect();
        curves.append(JobNumber(1), &all);
        curves
    }

    #[test]
    fn metrics_are_gone_through_in_a_circle() {
        let (curves, mut chart) = (curves(), Chart::default());
        let name = |chart: &Chart| {
            let looked = chart.look(&curves).unwrap();
            looked.names[looked.at].to_owned()
        };
        assert_eq!(name(&chart), "loss");
        for (on, shown) in [(true, "lr"), (true, "acc"), (true, "loss"), (false, "acc")] {
            chart.turn(&curves, on);
            assert_eq!(name(&chart), shown);
        }
        chart.begin_anew();
        assert_eq!(name(&chart), "acc", "the metric stays");
        let mut bare = Curves::default();
        assert_eq!(chart.look(&bare), None);
        chart.turn(&bare, true);
        chart.go(&bare, true);
        bare.append(JobNumber(1), &[]);
        assert_eq!(chart.look(&bare), None);
    }

    #[test]
    fn the_cursor_goes_along_and_the_zoom_is_around_it() {
        let (curves, mut chart) = (curves(), Chart::default());
        let look = |chart: &Chart| {
            let looked = chart.look(&curves).unwrap();
            (looked.steps, looked.cursor.map(|point| point.step))
        };
        assert_eq!(look(&chart), ((0.0, 800.0), None));
        chart.go(&curves, false);
        assert_eq!(look(&chart).1, Some(780.0), "a fortieth of what is shown");
        chart.go(&curves, true);
        chart.go(&curves, true);
        assert_eq!(look(&chart).1, Some(800.0), "no further than the end");
        (0..20).for_each(|_| chart.go(&curves, false));
        assert_eq!(look(&chart).1, Some(400.0));
        chart.zoom(&curves, true);
        chart.zoom(&curves, true);
        assert_eq!(look(&chart), ((300.0, 500.0), Some(400.0)));
        chart.go(&curves, true);
        assert_eq!(look(&chart), ((305.0, 505.0), Some(405.0)));
        (0..20).for_each(|_| chart.zoom(&curves, true));
        let (from, to) = look(&chart).0;
        assert!(from <= 405.0 && to >= 405.0 && to - from < 10.0, "{from} to {to}");
        assert!(chart.look(&curves).unwrap().shown().len() >= FEWEST);
        chart.go(&curves, true);
        assert_eq!(look(&chart).1, Some(406.0), "a point at least");
        chart.begin_anew();
        assert_eq!(look(&chart), ((0.0, 800.0), None));
    }
}
