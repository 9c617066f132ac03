//! The curve of a run: `…/curve` of the API.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::curve::{Curves, Part, Point};
use tpu_core::model::ids::{JobId, JobNumber};

use super::jobs::JobIdPart;

/// The loss of a run over its steps, across all attempts of its lineage.
#[derive(Serialize, JsonSchema)]
pub struct CurveDocument<'a> {
    /// The job that was asked about, whichever attempt it is.
    pub job: JobIdPart<'a>,
    /// The attempts, oldest first.
    pub attempts: Vec<CurvePart>,
}

impl<'a> From<(&'a JobId, &Curves)> for CurveDocument<'a> {
    fn from((job, curves): (&'a JobId, &Curves)) -> Self {
        Self {
            job: JobIdPart::from(job),
            attempts: curves.loss.parts.iter().map(CurvePart::from).collect(),
        }
    }
}

/// What one attempt has printed.
#[derive(Serialize, JsonSchema)]
pub struct CurvePart {
    /// Number of the attempt.
    pub window: JobNumber,
    /// Its points by rising step; of a long log so many that a curve can be drawn.
    pub points: Vec<PointPart>,
}

impl From<&Part> for CurvePart {
    fn from(part: &Part) -> Self {
        Self { window: part.window, points: part.points.iter().map(PointPart::from).collect() }
    }
}

/// A loss at a step.
#[derive(Serialize, JsonSchema)]
pub struct PointPart {
    /// The step; the epoch where the program prints no steps.
    pub step: f64,
    /// The loss.
    pub loss: f64,
}

impl From<&Point> for PointPart {
    fn from(point: &Point) -> Self {
        Self { step: point.step, loss: point.value }
    }
}
