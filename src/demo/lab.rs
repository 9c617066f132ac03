//! The demo's lab: two users with a directory each, a simulated fleet and a daemon, on a tmux server of
//! their own; and how it is taken down again.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::simulator::{Pull, Simulator};
use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::facts::{Class, ErrorKind, TmuxFact};
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::target::{Pricing, Registration};
use tpu_ops::act::{kill, service, targets};
use tpu_ops::front::{dirs, settings};
use tpu_ops::waiting::users;
use tpu_ops::waiting::users::NewUser;
use tpu_ops::{Ctx, Error, Kind};
use tpu_system::sys::procs::{self, Signal, Table};

/// The researcher whose jobs come back.
pub const ALICE: &str = "alice";
/// The researcher whose jobs go wrong by themselves.
pub const BOB: &str = "bob";

/// The targets: alias, full name, type. The second one has four workers.
pub const FLEET: [(&str, &str, &str); 4] = [
    ("v2-8-1", "lab-tpuvm-v2-8-1", "v2-8"),
    ("v4-32-p2", "lab-tpuvm-v4-32-preemptible-2", "v4-32"),
    ("v2-8-3", "lab-tpuvm-v2-8-3", "v2-8"),
    ("v2-8-4", "lab-tpuvm-v2-8-4", "v2-8"),
];

/// Seconds between two turns of the daemon in which nothing happens: the demo is a short day.
const TURN_S: u32 = 5;

/// How long what is left may take to end by itself, once everything has been stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often we look.
const POLL: Duration = Duration::from_millis(20);

/// What the demo's jobs run: the training that is part of this program.
const TRAIN: &str = "#!/bin/bash\n\
    # A small training that is part of tpu itself: it writes checkpoints and can go on from them.\n\
    # With several workers each computes the same, and the first one writes the checkpoints.\n\
    exec \"$TPU_BIN\" demo-train --workdir=\"$TPU_LOG_DIR\" \\\n    \
    --config.process_index=\"${TPU_WORKER:-0}\" \"$@\"\n";

/// Lays the lab out below `root`, and starts its daemon.
pub fn lay_out(ctx: &Ctx, root: &Path) -> Result<(), Error> {
    for name in [ALICE, BOB] {
        let code = root.join("code").join(name);
        let made =
            fs::create_dir_all(&code).and_then(|()| write(&code.join("train.sh"), TRAIN, 0o755));
        made.map_err(|e| Error::state(format!("cannot lay out {}: {e}", code.display())))?;
        users::add(
            ctx,
            &NewUser {
                name: name.to_owned(),
                tmux_name: None,
                dir: None,
                time_zone: None,
                commands: Vec::new(),
            },
        )?;
        let user = UserName::from(name);
        dirs::set(ctx, &user, 1, &code)?;
        // The training takes its arguments as those of the original do.
        settings::set(ctx, &user, "arguments", ArgumentStyle::Config.as_str())?;
    }
    for (alias, full, accelerator) in FLEET {
        let registration = Registration {
            zone: Some("us-central2-b".to_owned()),
            accelerator: Some(accelerator.to_owned()),
            pricing: Pricing::Preemptible,
            ..Registration::default()
        };
        targets::register(ctx, full, &registration, false)?;
        targets::add_alias(ctx, alias, full, &[])?;
    }
    let fleet = Simulator::open(ctx);
    for (_, full, _) in FLEET {
        fleet.pull(&TargetName::from(full), &Pull::Ready)?;
    }
    settings::set_monitor(ctx, "checking_freq", TURN_S)?;
    // Its jobs are nobody else's.
    let how = service::How { beside_original: true, ..service::How::default() };
    service::start(ctx, &how).map(drop)
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

/// Takes the rules that know running out of memory away from everybody in the lab.
pub fn blind_to_oom(ctx: &Ctx) -> Result<(), Error> {
    let rules = ctx.classifier().rules().iter();
    let about_oom = rules.filter(|rule| rule.class == Class::Failed(ErrorKind::Oom));
    let ids: Vec<String> = about_oom.map(|rule| format!("{:?}", rule.id)).collect();
    let Some(file) = &ctx.patterns else { return Ok(()) };
    let written = fs::create_dir_all(file.parent().unwrap_or(file))
        .and_then(|()| write(file, &format!("disable = [{}]\n", ids.join(", ")), 0o644));
    written.map_err(|e| Error::failed(format!("the sabotage failed: {e}")))
}

/// Ends the daemon, stops every job, switches the fleet off and ends the lab's own tmux server, each whatever
/// became of the others. The directory is the caller's. Returns the first thing that did not work.
pub fn take_down(ctx: &Ctx) -> Result<(), Error> {
    let mut troubles = Vec::new();
    let mut note = |result: Result<(), Error>| match result {
        // It does not run, or is gone already.
        Err(error) if error.kind == Kind::Refused => {}
        Err(error) => troubles.push(error),
        Ok(()) => {}
    };
    note(service::stop(ctx).map(drop));
    if let Ok(data) = ctx.data() {
        for job in data.jobs() {
            note(kill::stop_program(ctx, &data, job));
        }
        let fleet = Simulator::open(ctx);
        match fleet.targets(ctx) {
            Ok(targets) => {
                for target in targets {
                    note(fleet.pull(&target.name, &Pull::Preempt));
                }
            }
            Err(error) => note(Err(error)),
        }
    }
    note(end_server(ctx));
    note(last_words(ctx));
    troubles.into_iter().next().map_or(Ok(()), Err)
}

/// Ends the lab's tmux server, which may not answer at once.
fn end_server(ctx: &Ctx) -> Result<(), Error> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    loop {
        match ctx.tmux.look() {
            TmuxFact::Up { place, .. } => return Ok(ctx.tmux.end_server(place.server_pid)?),
            TmuxFact::Down { .. } => return Ok(()),
            TmuxFact::Unknown { reason } if ctx.clock.monotonic() >= deadline => {
                return Err(Error::unreachable(format!("the demo's tmux server: {reason}"))
                    .hint("end it by hand: `ps` shows it with its socket `demo`"));
            }
            TmuxFact::Unknown { .. } => ctx.clock.sleep(POLL),
        }
    }
}

/// Waits for what the windows' launchers still write down, which would come back into a directory that has
/// been removed; what does not end by itself is ended.
fn last_words(ctx: &Ctx) -> Result<(), Error> {
    let data = ctx.store.paths().data().to_string_lossy().into_owned();
    let deadline = ctx.clock.monotonic() + PATIENCE;
    loop {
        let table = Table::read()
            .map_err(|e| Error::failed(format!("cannot read the process table: {e}")))?;
        let left = table.with_variable("TPU_DATA", &data, ctx.env.uid);
        if left.is_empty() {
            return Ok(());
        }
        if ctx.clock.monotonic() >= deadline + PATIENCE {
            let left = tpu_core::text::counted(left.len(), "process");
            return Err(Error::failed(format!("of the demo {left} cannot be ended")));
        }
        if ctx.clock.monotonic() >= deadline {
            for process in left {
                // One that has ended meanwhile is what is wanted.
                drop(procs::signal(process, Signal::Kill));
            }
        }
        ctx.clock.sleep(POLL);
    }
}
