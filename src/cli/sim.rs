//! `sim`: the strings of the simulator.

use std::path::Path;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::emulate::{self, Serving};
use crate::simulator;
use tpu_core::model::ids::TargetName;
use tpu_core::text::counted;
use tpu_ops::Error;
use tpu_wire::targets::{SimulatedEventDocument, SimulatedStoryDocument, SimulatedTargetDocument};

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::SimEvent;
use super::commands::cloud::{listed, table};
use super::console;
use super::print::Output;

/// Always about the simulator, whatever `cloud` says.
pub(super) fn sim(app: &App, event: &SimEvent) -> Outcome {
    let ctx = app.ctx()?;
    let fleet = simulator::Simulator::open(ctx);
    let name = |typed: &str| match ctx.data().ok().and_then(|data| data.resolve_target(typed)) {
        Some(target) => target.name,
        None => TargetName::from(typed),
    };
    let (name, what) = match event {
        SimEvent::List => {
            let facts = fleet.targets(ctx)?;
            let text = if facts.is_empty() {
                "No simulated targets; `tpu sim ready NAME` makes one.".to_owned()
            } else {
                table(&facts)
            };
            return Ok(Output::new(text, &listed(&facts)));
        }
        SimEvent::Serve { kubernetes: true, .. } if app.global.dry_run => {
            return Ok(Output::would("serve a simulated Kubernetes cluster"));
        }
        SimEvent::Serve { .. } if app.global.dry_run => {
            return Ok(Output::would("put the simulated cloud behind Google's API"));
        }
        SimEvent::Serve { kubernetes: true, port, .. } => {
            let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
            emulate::serve_kubernetes(*port, &stop, &mut std::io::stdout())?;
            return Ok(Output::default());
        }
        SimEvent::Serve { port, scenario, log, .. } => {
            let story = match scenario {
                Some(file) => Some((read_story(file)?, file.display().to_string())),
                None => None,
            };
            let serving = Serving { port: *port, story, log: log.clone() };
            emulate::serve(
                ctx,
                &serving,
                &asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?,
                &mut std::io::stdout(),
            )?;
            return Ok(Output::default());
        }
        SimEvent::Event { name, words } => {
            emulate::happen(ctx, name, words)?;
            let document = SimulatedEventDocument { event: name };
            return Ok(Output::new(format!("It happens: {name}."), &document));
        }
        SimEvent::Play { file } => {
            let steps = fleet.play(&read_story(file)?, &file.display().to_string())?;
            let text =
                format!("The story of {} begins: {}.", file.display(), counted(steps, "step"));
            return Ok(Output::new(text, &SimulatedStoryDocument { steps }));
        }
        SimEvent::Cut(of) => (name(&of.target), simulator::Pull::Cut),
        SimEvent::Mend(of) => (name(&of.target), simulator::Pull::Mend),
        SimEvent::Preempt(of) => (name(&of.target), simulator::Pull::Preempt),
        SimEvent::Ready(of) => (name(&of.target), simulator::Pull::Ready),
        SimEvent::Grpc(of) => (name(&of.target), simulator::Pull::Grpc),
        SimEvent::Lock { target, off: false } => (name(target), simulator::Pull::Lock),
        SimEvent::Lock { target, off: true } => (name(target), simulator::Pull::Unlock),
        SimEvent::Capacity { target, off: false, .. } => (name(target), simulator::Pull::Capacity),
        SimEvent::Capacity { target, off: true, times } => {
            (name(target), simulator::Pull::NoCapacity { times: *times })
        }
    };
    fleet.pull(&name, &what)?;
    let facts = fleet.targets(ctx)?;
    let word = facts.iter().find(|fact| fact.name == name).map(|fact| fact.raw_state.clone());
    let word = word.unwrap_or_else(|| "not there".to_owned());
    let document = SimulatedTargetDocument { target: &name, state: &word };
    Ok(Output::new(format!("{name} is {word}."), &document))
}

/// A scenario file, or standard input.
fn read_story(file: &Path) -> Result<String, Error> {
    let read = if file == Path::new("-") {
        console::read_all().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|e| {
        Error::not_found(format!("cannot read the scenario {}: {e}", file.display()))
            .hint("give a TOML file with `[[step]]` tables: at, event, target")
    })
}
