//! The loss of a run over its whole lineage, read from the logs of its attempts.
//!
//! A log is read at a bounded number of places, however long it is, so the cost does not grow with it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::classify::Input;
use crate::model::curve::{Curve, Point};
use crate::model::data::User;
use crate::model::ids::{JobId, WindowId};
use crate::model::lineage::Lineage;

use super::ctx::{job_of, user_of};
use super::{Ctx, Error, logs};

/// A log of this size (bytes) is read line by line; a longer one at some places only.
const WHOLE: u64 = 100_000;
/// Places at which a long log is read.
const PLACES: u64 = 160;
/// Bytes that are read at each; a few lines, of which the newest counts.
const PIECE: u64 = 1_200;

/// The curve of the lineage to which a job belongs, up to this job.
pub fn of(ctx: &Ctx, id: &JobId) -> Result<Curve, Error> {
    let data = ctx.data()?;
    job_of(&data, id)?;
    let user = user_of(&data, &id.user)?;
    let mut curve = Curve::default();
    for window in attempts(user, id.window) {
        let Some(path) = user.job(window).and_then(logs::log_file) else { continue };
        // A log that cannot be read leaves a gap; the rest of the lineage still says something.
        let points = read(ctx, &path).unwrap_or_default();
        curve.append(window, points);
    }
    Ok(curve)
}

/// The attempts from the first one to this one.
fn attempts(user: &User, window: WindowId) -> Vec<WindowId> {
    let mut windows = Lineage::of(user, window).map(|lineage| lineage.windows).unwrap_or_default();
    let end = windows.iter().position(|other| *other == window).map_or(0, |at| at + 1);
    windows.truncate(end);
    windows
}

/// The points of one log, in its order.
fn read(ctx: &Ctx, path: &Path) -> io::Result<Vec<Point>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length <= WHOLE {
        let mut bytes = Vec::new();
        file.take(WHOLE).read_to_end(&mut bytes)?;
        let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
        return Ok(lines.filter_map(|line| point(ctx, line)).collect());
    }
    let stride = (length / PLACES).max(PIECE);
    let mut points = Vec::new();
    let mut at = 0;
    while at < length {
        // Each place ends where the next one begins, or earlier.
        file.seek(SeekFrom::Start(at + stride - PIECE))?;
        let mut bytes = Vec::new();
        (&mut file).take(PIECE).read_to_end(&mut bytes)?;
        let text = whole_lines(&bytes, at + stride > PIECE);
        points.extend(point(ctx, text));
        at += stride;
    }
    Ok(points)
}

/// Without the line that the beginning of the piece cuts in half.
fn whole_lines(bytes: &[u8], cut: bool) -> &[u8] {
    if !cut {
        return bytes;
    }
    let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.get(first..).unwrap_or_default()
}

/// The newest step and loss of a piece.
fn point(ctx: &Ctx, text: &[u8]) -> Option<Point> {
    let verdict = ctx.classifier().classify(&Input { text, exit_code: None, api_state: None });
    Point::of(&verdict.progress)
}
