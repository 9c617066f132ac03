//! `secrets`: what job files name, and nobody is shown.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::console;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::base::secrets;
use tpu_wire::jobfile::{SecretDocument, SecretsDocument};

/// `secrets`: the names of those that are kept.
pub(in crate::cli) fn list(app: &App) -> Outcome {
    let names = secrets::names(app.ctx()?)?;
    let text = match names.as_slice() {
        [] => "none are kept: tpu secrets set NAME\n".to_owned(),
        names => names.join("\n") + "\n",
    };
    Ok(Output::new(text, &SecretsDocument { names: &names }))
}

/// `secrets set`: a value that is typed unseen, or piped in.
pub(in crate::cli) fn set(app: &App, name: &str) -> Outcome {
    let ctx = app.ctx()?;
    secrets::checked(name)?;
    let typed = if console::is_typed() {
        console::ask_unseen(&format!("{name}: "))?.into_bytes()
    } else {
        console::read_all().map_err(|e| {
            Error::state(format!("cannot read the standard input: {e}"))
                .hint(format!("as in: tpu secrets set {name} < FILE"))
        })?
    };
    let was_there = secrets::set(ctx, name, secrets::piped(&typed))?;
    let text = format!("{name} is kept{}\n", if was_there { ", as it is now" } else { "" });
    Ok(Output::new(text, &SecretDocument { name, is_kept: true }))
}

/// `secrets remove`.
pub(in crate::cli) fn remove(app: &App, name: &str) -> Outcome {
    secrets::remove(app.ctx()?, name)?;
    Ok(Output::new(format!("{name} is forgotten\n"), &SecretDocument { name, is_kept: false }))
}
