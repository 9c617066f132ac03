//! The screen as the demo has it: without settings, and written down where somebody wants that.

use std::time::Duration;

use tpu_core::model::ids::JobId;
use tpu_core::model::settings::Settings;
use tpu_ops::{Ctx, Error};
pub(in crate::cli) use tpu_screen::recording::Recording;

use super::{Captioner, Options, TellNature, bridge, exit_code, usual};
use crate::cli::app::App;

/// Everybody's jobs, no settings file. `nature` is that of [`super::options`].
pub(in crate::cli) fn plain_options(
    app: &App,
    select: JobId,
    nature: TellNature,
) -> Result<Options, Error> {
    let zone = app.ctx()?.zone(&Settings::default());
    let options = usual(app, &Settings::default(), zone, nature);
    Ok(Options { select: Some(select), refresh: Duration::from_secs(1), ..options })
}

/// Writes the screen down until the recording is to end. Returns the exit code, as [`super::open`] does.
pub(in crate::cli) fn record(
    ctx: Ctx,
    options: Options,
    caption: Captioner,
    recording: Recording,
) -> Result<u8, Error> {
    let backend = bridge(ctx, &options, Some(caption));
    exit_code(tpu_screen::record(&backend, options, recording))
}
