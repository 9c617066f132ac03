//! `hosts`, `pools`: machines of one's own, what they have for jobs, and who has it.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{AddHosts, HostLimits, Hosts, HostsStep, Pools, PoolsStep, SetHosts};
use crate::cli::legacy;
use crate::cli::print::{Output, table};
use tpu_core::model::figures::{gpu_in_words, used_of};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_core::text::{counted, escape};
use tpu_ops::act::hosts::add::{self, NewHosts};
use tpu_ops::act::hosts::detect::{self, Asked};
use tpu_ops::act::hosts::edit::{self, HostChange, HostEdit, HostsChanged};
use tpu_ops::act::hosts::words;
use tpu_ops::act::hosts::{self, Host, Limits};
use tpu_ops::{Error, Kind};
use tpu_wire::hosts::{
    HostsAddedDocument, HostsAskedDocument, HostsChangedDocument, HostsDocument, HostsSetDocument,
    PoolsDocument,
};

/// `hosts …`.
pub(in crate::cli) fn run(app: &App, args: &Hosts) -> Outcome {
    let ctx = app.ctx()?;
    match &args.step {
        None => list(app, &[]),
        Some(HostsStep::List(some)) => list(app, &some.targets),
        Some(HostsStep::Show(some)) => show(app, &some.targets),
        Some(HostsStep::Add(args)) => add(app, args),
        Some(HostsStep::Set(args)) => set(app, args),
        Some(HostsStep::Drain(args)) => {
            changed(app, &args.targets, HostChange::Drain(args.why.as_deref()))
        }
        Some(HostsStep::Undrain(some)) => {
            needed(&some.targets, "undrain")?;
            changed(app, &some.targets, HostChange::Undrain)
        }
        Some(HostsStep::Remove(some)) => {
            needed(&some.targets, "remove")?;
            changed(app, &some.targets, HostChange::Remove)
        }
        Some(HostsStep::Probe(some)) => {
            needed(&some.targets, "probe")?;
            Ok(asked(&detect::ask(ctx, &some.targets)?))
        }
        Some(HostsStep::Detect(some)) => {
            needed(&some.targets, "detect")?;
            Ok(asked(&detect::detect(ctx, &some.targets)?))
        }
    }
}

/// `pools …`.
pub(in crate::cli) fn pools(app: &App, args: &Pools) -> Outcome {
    let ctx = app.ctx()?;
    match &args.step {
        None => {
            let pools = hosts::pools(ctx)?;
            let row = |pool: &hosts::Pool| {
                let names: Vec<&str> = pool.hosts.iter().map(TargetName::as_str).collect();
                let open = format!("{} of {}", pool.open, pool.hosts.len());
                vec![pool.name.clone(), open, escape(&names.join(", ")).into_owned()]
            };
            let rows: Vec<Vec<String>> = pools.iter().map(row).collect();
            let text = if rows.is_empty() {
                "No pools. As in: tpu hosts set gpu[01-04] --pool lab".to_owned()
            } else {
                table::columns(&["POOL", "OPEN", "HOSTS"], &rows)
            };
            Ok(Output::new(text, &PoolsDocument::from(pools.as_slice())))
        }
        Some(PoolsStep::Activate(some)) => {
            hosts::refuse_no_pool(ctx, &some.pools)?;
            changed(app, &some.pools, HostChange::Undrain)
        }
        Some(PoolsStep::Deactivate(some)) => {
            hosts::refuse_no_pool(ctx, &some.pools)?;
            let why = format!("pool {}", some.pools.join(", "));
            changed(app, &some.pools, HostChange::Drain(Some(&why)))
        }
        Some(PoolsStep::Set(args)) => {
            hosts::refuse_no_pool(ctx, &args.targets)?;
            set(app, args)
        }
    }
}

fn needed(words: &[String], verb: &str) -> Result<(), Error> {
    if words.is_empty() {
        return Err(
            Error::usage("which machines?").hint(format!("as in: tpu hosts {verb} gpu[01-04]"))
        );
    }
    Ok(())
}

fn list(app: &App, words: &[String]) -> Outcome {
    let ctx = app.ctx()?;
    let hosts = hosts::list(ctx, words)?;
    let now = ctx.clock.now();
    Ok(Output::new(words::table(&hosts, now), &HostsDocument::at(&hosts, now)))
}

fn show(app: &App, words: &[String]) -> Outcome {
    needed(words, "show")?;
    let ctx = app.ctx()?;
    let hosts = hosts::list(ctx, words)?;
    let now = ctx.clock.now();
    let text: Vec<String> = hosts.iter().map(|host| described(host) + &uses(host, now)).collect();
    Ok(Output::new(text.join("\n"), &HostsDocument::at(&hosts, now)))
}

/// What a host said last, thing by thing.
fn uses(host: &Host, now: Timestamp) -> String {
    let Some(figures) = &host.figures else { return String::new() };
    let mut text = line("as of", &words::as_of(figures, now));
    if let Some(why) = &figures.silent {
        text += &line("silent", why);
    }
    let Some(seen) = figures.known(now) else { return text };
    let load = seen.machine.load.zip(seen.machine.cpus);
    if let Some((load, cpus)) = load {
        text += &line("load", &format!("{load:.1} of {cpus} CPUs"));
    }
    if let Some(memory) = seen.memory() {
        text += &line("memory", &used_of(memory));
    }
    for gpu in &seen.machine.gpus {
        let on =
            || seen.who_is_on(gpu.index).map(|on| on.map_or_else(str::to_owned, JobId::to_string));
        let given = host.who_has(gpu.index).map(JobId::to_string);
        let who = given.or_else(on).unwrap_or_else(|| "free".to_owned());
        let words = gpu_in_words(gpu, None);
        let model = gpu.model.clone();
        let parts: Vec<String> = [Some(who), Some(words), model]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        text += &line(&format!("gpu {}", gpu.index), &parts.join(", "));
    }
    for (job, figures) in seen.jobs.iter().flatten() {
        text += &line(
            &job.to_string(),
            &[figures.in_words(), figures.gpus_in_words(&seen.machine)].concat().join(", "),
        );
    }
    text
}

fn line(name: &str, value: &str) -> String {
    format!("{:<10} {}\n", escape(name), escape(value))
}

fn described(host: &Host) -> String {
    let mut text = line("host", host.name.as_str());
    if !host.addresses.is_empty() {
        text += &line("address", &host.addresses.join(", "));
    }
    text += &line("takes", &hosts::in_words(&host.capacity));
    for (name, words) in [("pools", &host.record.pools), ("tags", &host.record.tags)] {
        if !words.is_empty() {
            text += &line(name, &words.join(", "));
        }
    }
    if let Some(pyenv) = &host.record.pyenv {
        text += &line("pyenv", pyenv);
    }
    if let Some(drained) = &host.record.drained {
        let why = drained.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let since = drained.since.to_rfc3339();
        text += &line("drained", &format!("by {} since {since}{why}", drained.by));
    }
    if let Some(found) = &host.record.found {
        let some = [
            found.cpus.map(|cpus| format!("{cpus} CPUs")),
            found.memory.map(|memory| format!("{memory} of memory")),
            found.gpus.map(|gpus| match &found.model {
                Some(model) => format!("{gpus} × {model}"),
                None => format!("{gpus} accelerators"),
            }),
            found.tmux.as_ref().map(|version| format!("tmux {version}")),
            found.python.as_ref().map(|version| format!("Python {version}")),
        ];
        text += &line("found", &some.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    text + &line("jobs", &if host.jobs.is_empty() { "none".to_owned() } else { words::who(host) })
}

/// How many jobs and CPUs machines have, as typed.
pub(super) fn limits_of(jobs: Option<&str>, cpus: Option<&str>) -> Result<Limits, Error> {
    let typed = |text: Option<&str>| text.map(str::to_owned);
    limits(&HostLimits { max_jobs: typed(jobs), cpus: typed(cpus), gpus: None, mem: None })
}

fn limits(said: &HostLimits) -> Result<Limits, Error> {
    let number = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| hosts::limit(option, text)).transpose()
    };
    Ok(Limits {
        jobs: number("max-jobs", &said.max_jobs)?,
        gpus: number("gpus", &said.gpus)?,
        cpus: number("cpus", &said.cpus)?,
        memory: said.mem.as_deref().map(hosts::memory_limit).transpose()?,
    })
}

fn add(app: &App, args: &AddHosts) -> Outcome {
    let mut options = args.of_kind.said.clone();
    if args.any_identity {
        options.say("identity", "any");
    }
    let said = NewHosts {
        addresses: args.address.clone(),
        user: args.ssh_user.clone().or_else(|| app.global.user.clone()),
        key: args.ssh_key.clone(),
        options,
        limits: limits(&args.limits)?,
        pools: args.pool.clone(),
        tags: args.tag.clone(),
        pyenv: args.pyenv.clone(),
    };
    added(app, &args.targets, &said, !args.no_probe)
}

/// Makes machines known, and says what each has and says of itself.
pub(super) fn added(app: &App, names: &[String], said: &NewHosts, is_asked: bool) -> Outcome {
    let commands = legacy::command_words();
    let added = add::add(app.ctx()?, names, said, (is_asked, &commands))?;
    let (text, notes) = words::added(&added);
    let code = if added.refused.is_empty() { 0 } else { Kind::Unreachable.exit_code() };
    Ok(Output::new(text, &HostsAddedDocument::from(&added)).notes(notes).code(code))
}

fn set(app: &App, args: &SetHosts) -> Outcome {
    let words = |said: &[String]| -> Option<Vec<String>> {
        let all = || said.iter().filter(|word| *word != "none").cloned().collect();
        (!said.is_empty()).then(all)
    };
    let pyenv = args.pyenv.clone().map(|file| Some(file).filter(|file| file != "none"));
    let limits = limits(&args.limits)?;
    let edit = HostEdit { limits, pools: words(&args.pool), tags: words(&args.tag), pyenv };
    if edit.is_empty() {
        return Err(Error::usage("what is to be set?")
            .hint("as in: tpu hosts set local --max-jobs 2 --gpus 8"));
    }
    changed(app, &args.targets, HostChange::Set(edit))
}

/// Changes hosts, and says what became of each.
pub(super) fn changed(app: &App, words: &[String], change: HostChange<'_>) -> Outcome {
    let done = edit::apply(app.ctx()?, words, change)?;
    let text = done.in_words();
    Ok(match &done {
        HostsChanged::State(hosts, _) => Output::new(text, &HostsChangedDocument { hosts }),
        HostsChanged::Capacity(hosts) => {
            Output::new(text, &HostsSetDocument::from(hosts.as_slice()))
        }
    })
}

fn asked(all: &[Asked]) -> Output {
    let line = |(name, answer): &Asked| {
        let said = match answer {
            Ok(fact) => words::machine(name.as_str(), fact),
            Err(why) => format!("does not answer: {}", escape(why)),
        };
        format!("{}: {said}\n", escape(name.as_str()))
    };
    let silent = all.iter().filter(|(_, answer)| answer.is_err()).count();
    let notes: Vec<String> = (silent > 0)
        .then(|| format!("{} did not answer", counted(silent, "machine")))
        .into_iter()
        .collect();
    let text: String = all.iter().map(line).collect();
    let code = if silent > 0 { Kind::Unreachable.exit_code() } else { 0 };
    Output::new(text, &HostsAskedDocument::from(all)).notes(notes).code(code)
}
