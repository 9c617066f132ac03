//! `hosts`: machines of one's own, what they have for jobs, and who has it.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Hosts, HostsStep, SetHosts};
use crate::cli::print::{Output, table};
use crate::model::capacity::Share;
use crate::ops::Error;
use crate::ops::hosts::{self, Host, Limits};
use crate::text::escape;
use crate::wire::hosts::{HostsDocument, HostsSetDocument};

/// `hosts`, `hosts set`.
pub(in crate::cli) fn run(app: &App, args: &Hosts) -> Outcome {
    match &args.step {
        None => list(app),
        Some(HostsStep::Set(args)) => set(app, args),
    }
}

fn list(app: &App) -> Outcome {
    let hosts = hosts::list(app.ctx()?)?;
    let rows: Vec<Vec<String>> = hosts.iter().map(row).collect();
    let text = table::columns(&["HOST", "JOBS", "GPUS", "CPUS", "MEM", "WHO"], &rows);
    Ok(Output::new(text, &HostsDocument::from(hosts.as_slice())))
}

fn row(host: &Host) -> Vec<String> {
    let capacity = &host.capacity;
    let of = |used: usize, all: Option<u32>| match all {
        Some(all) => format!("{used}/{all}"),
        None => "-".to_owned(),
    };
    let limit = |limit: Option<String>| limit.unwrap_or_else(|| "-".to_owned());
    let who = host.jobs.iter().map(|(job, share)| {
        let share = share.as_ref().map(Share::in_words).filter(|words| !words.is_empty());
        share.map_or_else(|| job.to_string(), |share| format!("{job} ({share})"))
    });
    vec![
        escape(host.name.as_str()).into_owned(),
        match capacity.jobs {
            Some(_) => of(host.jobs.len(), capacity.jobs),
            None => host.jobs.len().to_string(),
        },
        of(host.gpus_in_use(), capacity.gpus),
        limit(capacity.cpus.map(|count| count.to_string())),
        limit(capacity.memory.map(|memory| memory.to_string())),
        escape(&who.collect::<Vec<_>>().join(", ")).into_owned(),
    ]
}

fn set(app: &App, args: &SetHosts) -> Outcome {
    let number = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| hosts::limit(option, text)).transpose()
    };
    let limits = Limits {
        jobs: number("max-jobs", &args.max_jobs)?,
        gpus: number("gpus", &args.gpus)?,
        cpus: number("cpus", &args.cpus)?,
        memory: args.mem.as_deref().map(hosts::memory_limit).transpose()?,
    };
    if limits == Limits::default() {
        return Err(Error::usage("what is to be set?")
            .hint("as in: tpu hosts set local --max-jobs 2 --gpus 8"));
    }
    let changed = hosts::set(app.ctx()?, &args.targets, limits)?;
    let lines = changed.iter().map(|(name, capacity)| {
        format!("{} takes {}.\n", escape(name.as_str()), hosts::in_words(capacity))
    });
    Ok(Output::new(lines.collect::<String>(), &HostsSetDocument::from(changed.as_slice())))
}
