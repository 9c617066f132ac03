//! What stands in the place of parts that this `tpu` was built without (the features in `Cargo.toml`): one sentence.

use tpu_ops::Error;

use super::args::AlsoServe;

/// The sentence.
fn left_out(part: &str, feature: &str) -> Error {
    Error::failed(format!("this tpu was built without {part}"))
        .hint(format!("build it with --features {feature}"))
}

/// Refuses a daemon that is to answer over HTTP where it cannot.
pub(super) fn may_serve(also: &AlsoServe) -> Result<(), Error> {
    match also.wanted() {
        Some(_) if !cfg!(feature = "page") => Err(left_out("the page and the API", "page")),
        _ => Ok(()),
    }
}

#[cfg(not(feature = "page"))]
pub(super) mod serve {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use tpu_ops::Ctx;

    use super::left_out;
    use crate::cli::Outcome;
    use crate::cli::app::App;
    use crate::cli::args::{ServeArgs, ServeCommand};

    pub(in crate::cli) fn serve(_: App, _: &ServeCommand) -> Outcome {
        Err(left_out("the page and the API", "page"))
    }

    pub(in crate::cli) fn beside(
        _: App,
        _: &ServeArgs,
        _: &Arc<AtomicBool>,
        _: impl FnOnce(&Arc<Ctx>, &AtomicBool) -> Outcome,
    ) -> Outcome {
        Err(left_out("the page and the API", "page"))
    }
}

#[cfg(not(feature = "lab"))]
pub(super) mod demo {
    use super::left_out;
    use crate::cli::Outcome;
    use crate::cli::app::App;
    use crate::cli::args::Demo;
    use crate::cli::screen::TellNature;

    pub(in crate::cli) fn demo(_: &App, _: &Demo, _: TellNature) -> Outcome {
        Err(left_out("the demo", "lab"))
    }

    pub(in crate::cli) fn train(_: &[String]) -> Outcome {
        Err(left_out("the demo", "lab"))
    }
}

#[cfg(not(feature = "lab"))]
pub(super) mod sim {
    use super::left_out;
    use crate::cli::Outcome;
    use crate::cli::app::App;
    use crate::cli::args::SimEvent;

    pub(in crate::cli) fn sim(_: &App, _: &SimEvent) -> Outcome {
        Err(left_out("the simulator", "lab"))
    }
}
