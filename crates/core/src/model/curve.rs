//! The loss of a run and what else it measures, over its steps, across all attempts of its lineage.
//!
//! A curve follows from what the program has printed and from nothing else, so it is the same in every place,
//! whoever looks and whenever.

use std::collections::BTreeMap;
use std::fmt;

use super::facts::Progress;
use super::ids::JobNumber;

/// What is measured: the loss, or what else the program prints beside it, by the name that it prints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric(String);

impl Metric {
    /// The training loss.
    pub const LOSS: &str = "loss";
    /// The learning rate.
    pub(crate) const LEARNING_RATE: &str = "lr";
    /// Steps per second.
    pub(crate) const SPEED: &str = "steps/s";

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Metric {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl From<&str> for Metric {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The step; the epoch where the program prints no steps.
    pub step: f64,
    /// The value.
    pub value: f64,
}

/// A loss as it was printed, with the counters and the other values beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The step, which may begin anew with each epoch.
    pub step: Option<f64>,
    /// Steps in all, or of the epoch.
    pub total: Option<f64>,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The loss.
    pub loss: f64,
    /// What else is measured.
    pub others: Vec<(Metric, f64)>,
}

impl Reading {
    /// What a progress report gives, if it holds a finite loss and a counter; `others` stand beside it.
    pub fn of(progress: &Progress, others: Vec<(Metric, f64)>) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "no run has more steps than a float counts")]
        let as_float = |steps: u64| steps as f64;
        let loss = progress.loss.filter(|loss| loss.is_finite())?;
        let (step, total) = (progress.step.map(as_float), progress.total.map(as_float));
        let epoch = progress.epoch.filter(|epoch| epoch.is_finite());
        let known = [(Metric::LEARNING_RATE, progress.lr), (Metric::SPEED, progress.steps_per_s)];
        let known =
            known.into_iter().filter_map(|(name, value)| Some((Metric::from(name), value?)));
        let others = known.chain(others).filter(|(_, value)| value.is_finite()).collect();
        (step.is_some() || epoch.is_some()).then_some(Self { step, total, epoch, loss, others })
    }
}

/// What was measured at a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The step; the epoch where the program prints no steps.
    pub step: f64,
    /// The loss.
    pub loss: f64,
    /// What else.
    pub others: Vec<(Metric, f64)>,
}

/// What one attempt measured, from its readings in the order in which they were printed.
///
/// One unit is that of all of them: steps where any are printed, else epochs. Steps that begin anew with each
/// epoch are counted on.
pub fn measured(readings: Vec<Reading>) -> Vec<Measured> {
    let has_steps = readings.iter().any(|reading| reading.step.is_some());
    let first = readings.iter().find_map(|reading| reading.epoch).unwrap_or_default();
    let mut begins_anew = false;
    let mut before: Option<(f64, f64)> = None;
    for counters in readings.iter().filter_map(|reading| reading.step.zip(reading.epoch)) {
        begins_anew |= before.is_some_and(|(step, epoch)| counters.0 < step && counters.1 > epoch);
        before = Some(counters);
    }
    let at = |reading: &Reading| match (reading.step, reading.epoch) {
        (Some(step), Some(epoch)) if begins_anew => {
            Some((epoch - first).floor() * reading.total? + step)
        }
        (Some(step), _) if !begins_anew => Some(step),
        (None, epoch) if !has_steps => epoch,
        _ => None,
    };
    let measured = |reading: Reading| {
        let step = at(&reading).filter(|step| step.is_finite())?;
        Some(Measured { step, loss: reading.loss, others: reading.others })
    };
    readings.into_iter().filter_map(measured).collect()
}

/// The points of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which attempt.
    pub window: JobNumber,
    /// Its points by rising step.
    pub points: Vec<Point>,
}

/// One metric of a lineage, attempt after attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The attempts, oldest first.
    pub parts: Vec<Part>,
}

impl Curve {
    /// Adds an attempt. Points that do not go forward are dropped: the counter was read from somewhere else.
    pub fn append(&mut self, window: JobNumber, points: impl IntoIterator<Item = Point>) {
        let mut kept: Vec<Point> = Vec::new();
        for point in points {
            if kept.last().is_none_or(|last| point.step > last.step) {
                kept.push(point);
            }
        }
        self.parts.push(Part { window, points: kept });
    }

    /// The curve as one run: where an attempt repeats steps of the one before, its own points count.
    pub fn whole(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for part in &self.parts {
            if let Some(first) = part.points.first() {
                // They rise, so that what is done again is at their end.
                points.truncate(points.partition_point(|point| point.step < first.step));
            }
            points.extend(&part.points);
        }
        points
    }

    /// The share of an attempt's steps that a later attempt had to do again.
    pub fn redone(&self, window: JobNumber) -> f64 {
        let Some(at) = self.parts.iter().position(|part| part.window == window) else { return 0.0 };
        let own = self.parts.get(at).map(|part| part.points.as_slice()).unwrap_or_default();
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return 0.0 };
        let again = self.parts.iter().skip(at + 1).find_map(|part| part.points.first());
        let Some(again) = again.filter(|again| last.step > first.step && again.step < last.step)
        else {
            return 0.0;
        };
        ((last.step - again.step) / (last.step - first.step)).clamp(0.0, 1.0)
    }
}

/// What a lineage measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// The loss. Each attempt has a part of it, be it empty.
    pub loss: Curve,
    /// Everything else; attempts that did not print it have no part.
    pub others: BTreeMap<Metric, Curve>,
}

impl Curves {
    /// Adds an attempt.
    pub fn append(&mut self, window: JobNumber, measured: &[Measured]) {
        let point = |step, value| Point { step, value };
        self.loss.append(window, measured.iter().map(|at| point(at.step, at.loss)));
        let mut others: BTreeMap<&Metric, Vec<Point>> = BTreeMap::new();
        for at in measured {
            for (metric, value) in &at.others {
                others.entry(metric).or_default().push(point(at.step, *value));
            }
        }
        for (metric, points) in others {
            self.others.entry(metric.clone()).or_default().append(window, points);
        }
    }

    /// What was measured often enough to be drawn: the loss, the learning rate, the speed, then what the program names.
    pub fn metrics(&self) -> Vec<(&str, &Curve)> {
        let own = [Metric::LEARNING_RATE, Metric::SPEED];
        let known = own.iter().filter_map(|name| self.others.get_key_value(&Metric::from(*name)));
        let rest = self.others.iter().filter(|(metric, _)| !own.contains(&metric.as_str()));
        let others = known.chain(rest).map(|(metric, curve)| (metric.as_str(), curve));
        let all = std::iter::once((Metric::LOSS, &self.loss)).chain(others);
        let is_drawn =
            |curve: &Curve| curve.parts.iter().map(|part| part.points.len()).sum::<usize>() > 1;
        all.filter(|(_, curve)| is_drawn(curve)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(steps: &[u32]) -> Vec<Point> {
        steps.iter().map(|s| Point { step: f64::from(*s), value: 1.0 / f64::from(s + 1) }).collect()
    }

    fn steps(points: &[Point]) -> Vec<f64> {
        points.iter().map(|point| point.step).collect()
    }

    #[test]
    fn a_resume_replaces_what_it_does_again() {
        let mut curve = Curve::default();
        curve.append(JobNumber(1), points(&[0, 10, 20, 30, 40]));
        curve.append(JobNumber(2), points(&[25, 35, 45]));
        assert_eq!(steps(&curve.whole()), [0.0, 10.0, 20.0, 25.0, 35.0, 45.0]);
        assert!((curve.redone(JobNumber(1)) - 0.375).abs() < 1e-9);
        assert!(curve.redone(JobNumber(2)).abs() < 1e-9 && curve.redone(JobNumber(3)).abs() < 1e-9);
    }

    #[test]
    fn steps_that_begin_anew_with_each_epoch_are_counted_on() {
        let reading = |epoch: f64, step: Option<f64>| Reading {
            step,
            total: step.map(|_| 100.0),
            epoch: Some(epoch),
            loss: 1.0,
            others: Vec::new(),
        };
        let at = |readings: &[Reading]| -> Vec<f64> {
            measured(readings.to_vec()).iter().map(|at| at.step).collect()
        };
        let keras = [(1.0, 50.0), (1.0, 100.0), (2.0, 50.0), (3.0, 1.0)];
        let keras = keras.map(|(epoch, step)| reading(epoch, Some(step)));
        assert_eq!(at(&keras), [50.0, 100.0, 150.0, 201.0]);
        assert_eq!(at(&keras[..2]), [50.0, 100.0], "the first epoch as if it were the only one");
        let mixed = [reading(0.5, None), reading(0.5, Some(10.0)), reading(0.6, Some(12.0))];
        assert_eq!(at(&mixed), [10.0, 12.0], "one unit");
        assert_eq!(at(&[reading(0.5, None), reading(1.0, None)]), [0.5, 1.0]);
    }

    #[test]
    fn each_metric_has_a_curve_of_its_own() {
        let at = |step: f64, others: &[(&str, f64)]| Measured {
            step,
            loss: 1.0,
            others: others.iter().map(|(name, value)| (Metric::from(*name), *value)).collect(),
        };
        let mut curves = Curves::default();
        curves.append(
            JobNumber(1),
            &[at(0.0, &[("acc", 0.1), ("lr", 0.5)]), at(10.0, &[("acc", 0.2)])],
        );
        curves.append(JobNumber(2), &[at(5.0, &[]), at(15.0, &[("acc", 0.4), ("once", 1.0)])]);
        let drawn: Vec<_> = curves.metrics().into_iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(drawn, ["loss", "acc"], "one value is no curve");
        assert_eq!(steps(&curves.loss.whole()), [0.0, 5.0, 15.0]);
        assert_eq!(steps(&curves.others[&Metric::from("acc")].whole()), [0.0, 10.0, 15.0]);
    }
}
