//! The curve of a run: `…/curve` of the API.

use tpu_core::model::curve::{Curves, Part, Point};
use tpu_core::model::ids::{JobId, JobNumber};

use super::document::{documents, part};
use super::jobs::JobIdPart;

documents! {
    /// The loss of a run over its steps, across all attempts of its lineage.
    pub struct CurveDocument<'a> from (job, curves): (&'a JobId, &Curves) {
        /// The job that was asked about, whichever attempt it is.
        job: JobIdPart<'a> = JobIdPart::from(job),
        /// The attempts, oldest first.
        attempts: Vec<CurvePart> = part(&curves.loss.parts),
    }

    /// What one attempt has printed.
    pub struct CurvePart from part: &'a Part {
        /// Number of the attempt.
        window: JobNumber,
        /// Its points by rising step; of a long log so many that a curve can be drawn.
        points: Vec<PointPart>,
    }

    /// A loss at a step.
    pub struct PointPart from point: &'a Point {
        /// The step; the epoch where the program prints no steps.
        step: f64,
        /// The loss.
        loss: f64 = point.value,
    }
}
