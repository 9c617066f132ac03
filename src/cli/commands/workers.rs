//! Commands that reach into the machines of a target. `tpu` does not yet do so by itself; each says which
//! command of the cloud's own tool does it, with the names filled in.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Workers;
use crate::model::target::Target;
use crate::ops::Error;
use crate::ops::launch::check::resolve_target;

/// One of them.
pub(in crate::cli) fn run(app: &App, command: &Workers) -> Outcome {
    let (name, given) = command.parts();
    if let Workers::Cp(_) = command {
        return Err(refused(name).hint("gcloud storage cp -r SOURCE gs://BUCKET/DESTINATION"));
    }
    let data = app.ctx()?.data()?;
    let Some(typed) = given.words.first() else {
        return Err(Error::usage("which target?").hint(format!("as in: tpu {name} v2-32-p2")));
    };
    let mut target = resolve_target(&data, typed)?;
    target.zone = given.zone.clone().or(target.zone);
    if target.is_local() {
        return Err(Error::refused("`local` is this machine: there is nothing to reach")
            .hint("run a command here: tpu run local -- COMMAND"));
    }
    let by_hand = match command {
        Workers::Ssh(_) => {
            let worker = given.words.get(1);
            ssh(&target, worker.map_or("0", String::as_str), given.command.as_deref())
        }
        Workers::KillRemote(_) => format!(
            "a job's own processes are ended by `tpu kill tpu:{typed}`; others: {}",
            ssh(&target, "all", Some("ps -eo pid,user,etime,args"))
        ),
        Workers::CheckEnv(_) | Workers::Test(_) => {
            ssh(&target, "all", Some("python3 -c \"import jax; print(jax.devices())\""))
        }
        Workers::SetWandb(_) => ssh(&target, "all", Some("wandb login")),
        Workers::MountDisk(_) | Workers::Solve(_) => ssh(&target, "all", Some("YOUR SET-UP")),
        Workers::Cp(_) => String::new(),
    };
    Err(refused(name).hint(by_hand))
}

fn refused(name: &str) -> Error {
    Error::refused(format!("tpu {name} does not reach into machines yet"))
}

/// The command of the cloud's own tool.
fn ssh(target: &Target, worker: &str, command: Option<&str>) -> String {
    let zone = target.zone.as_deref().unwrap_or("ZONE");
    let quoted = command.map(|command| {
        let quoted = shlex::try_quote(command).unwrap_or_else(|_| "COMMAND".into());
        format!(" --command {quoted}")
    });
    format!(
        "gcloud compute tpus tpu-vm ssh {} --zone {zone} --worker={worker}{}",
        target.name,
        quoted.unwrap_or_default()
    )
}
