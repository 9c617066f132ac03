//! The loss of a run over its steps, across all attempts of its lineage.
//!
//! A curve follows from what the program has printed and from nothing else, so it is the same in every place,
//! whoever looks and whenever.

use super::facts::Progress;
use super::ids::JobNumber;

/// A loss at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The step; the epoch where the program prints no steps.
    pub step: f64,
    /// The loss.
    pub loss: f64,
}

/// A loss as it was printed, with the counters beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The step, which may begin anew with each epoch.
    pub step: Option<f64>,
    /// Steps in all, or of the epoch.
    pub total: Option<f64>,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The loss.
    pub loss: f64,
}

impl Reading {
    /// What a progress report gives, if it holds a finite loss and a counter.
    pub fn of(progress: &Progress) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "no run has more steps than a float counts")]
        let as_float = |steps: u64| steps as f64;
        let loss = progress.loss.filter(|loss| loss.is_finite())?;
        let (step, total) = (progress.step.map(as_float), progress.total.map(as_float));
        let epoch = progress.epoch;
        (step.is_some() || epoch.is_some()).then_some(Self { step, total, epoch, loss })
    }
}

/// The points of one attempt, from its readings in the order in which they were printed.
///
/// One unit is that of all of them: steps where any are printed, else epochs. Steps that begin anew with each
/// epoch are counted on.
pub fn points(readings: &[Reading]) -> Vec<Point> {
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
    let point = |reading: &Reading| Some(Point { step: at(reading)?, loss: reading.loss });
    readings.iter().filter_map(point).collect()
}

/// The points of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which attempt.
    pub window: JobNumber,
    /// Its points by rising step.
    pub points: Vec<Point>,
}

/// The points of a lineage, attempt after attempt.
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
                points.retain(|point| point.step < first.step);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn points(steps: &[u32]) -> Vec<Point> {
        steps.iter().map(|s| Point { step: f64::from(*s), loss: 1.0 / f64::from(s + 1) }).collect()
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
        };
        let at = |readings: &[Reading]| steps(&super::points(readings));
        let keras = [(1.0, 50.0), (1.0, 100.0), (2.0, 50.0), (3.0, 1.0)];
        let keras = keras.map(|(epoch, step)| reading(epoch, Some(step)));
        assert_eq!(at(&keras), [50.0, 100.0, 150.0, 201.0]);
        assert_eq!(at(&keras[..2]), [50.0, 100.0], "the first epoch as if it were the only one");
        let mixed = [reading(0.5, None), reading(0.5, Some(10.0)), reading(0.6, Some(12.0))];
        assert_eq!(at(&mixed), [10.0, 12.0], "one unit");
        assert_eq!(at(&[reading(0.5, None), reading(1.0, None)]), [0.5, 1.0]);
    }
}
