//! The loss of a run over its steps, across all attempts of its lineage.

use super::facts::Progress;
use super::ids::WindowId;

/// A loss at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The step; the epoch where the program prints no steps.
    pub step: f64,
    /// The loss.
    pub loss: f64,
}

impl Point {
    /// The point that a progress report gives, if it names a step and a finite loss.
    pub fn of(progress: &Progress) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "no run has more steps than a float counts")]
        let step = progress.step.map(|step| step as f64).or(progress.epoch)?;
        let loss = progress.loss.filter(|loss| loss.is_finite())?;
        Some(Self { step, loss })
    }
}

/// The points of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which attempt.
    pub window: WindowId,
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
    /// More points than this tell an attempt no better.
    const MOST: usize = 400;

    /// Adds an attempt. Points that do not go forward are dropped: the counter was read from somewhere else.
    pub fn append(&mut self, window: WindowId, points: impl IntoIterator<Item = Point>) {
        let mut kept: Vec<Point> = Vec::new();
        for point in points {
            if kept.last().is_none_or(|last| point.step > last.step) {
                kept.push(point);
            }
        }
        self.parts.push(Part { window, points: kept });
    }

    /// Adds the newest point of an attempt.
    pub fn push(&mut self, window: WindowId, point: Point) {
        if self.parts.last().is_none_or(|part| part.window != window) {
            self.append(window, []);
        }
        let Some(part) = self.parts.last_mut() else { return };
        if part.points.last().is_some_and(|last| point.step <= last.step) {
            return;
        }
        part.points.push(point);
        if part.points.len() > Self::MOST {
            // Every other point of the older half: what is new stays exact.
            let half = Self::MOST / 2;
            let mut at = 0;
            part.points.retain(|_| {
                at += 1;
                at > half || at % 2 == 1
            });
        }
    }

    /// Takes over what another curve knows and this one does not: attempts that are missing here, and newer
    /// points of those that are not.
    pub fn merge(&mut self, newer: &Self) {
        for part in &newer.parts {
            match self.parts.iter_mut().find(|own| own.window == part.window) {
                Some(own) => {
                    let last = own.points.last().map(|point| point.step);
                    let new = part.points.iter().filter(|p| last.is_none_or(|at| p.step > at));
                    own.points.extend(new);
                }
                None => self.parts.push(part.clone()),
            }
        }
        self.parts.sort_by_key(|part| part.window);
    }

    /// The curve as one run: what an attempt did again, it did instead of the one before.
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
    pub fn redone(&self, window: WindowId) -> f64 {
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
        curve.append(WindowId(1), points(&[0, 10, 20, 30, 40]));
        curve.append(WindowId(2), points(&[25, 35, 45]));
        assert_eq!(steps(&curve.whole()), [0.0, 10.0, 20.0, 25.0, 35.0, 45.0]);
        assert!((curve.redone(WindowId(1)) - 0.375).abs() < 1e-9);
        assert!(curve.redone(WindowId(2)).abs() < 1e-9 && curve.redone(WindowId(3)).abs() < 1e-9);
    }

    #[test]
    fn only_what_is_new_is_taken_over() {
        let mut curve = Curve::default();
        curve.append(WindowId(2), points(&[25, 35]));
        let mut log = Curve::default();
        log.append(WindowId(1), points(&[0, 10, 10, 5]));
        log.append(WindowId(2), points(&[30, 40]));
        curve.merge(&log);
        assert_eq!(steps(&curve.whole()), [0.0, 10.0, 25.0, 35.0, 40.0]);
    }

    #[test]
    fn a_long_run_is_thinned_where_it_is_old() {
        let mut curve = Curve::default();
        for step in 0..5_000_u32 {
            curve.push(WindowId(1), Point { step: f64::from(step), loss: 1.0 });
        }
        let whole = curve.whole();
        assert!(whole.len() <= Curve::MOST);
        assert_eq!(steps(&whole[whole.len() - 3..]), [4_997.0, 4_998.0, 4_999.0]);
        assert!(whole[0].step < 1_000.0);
    }
}
