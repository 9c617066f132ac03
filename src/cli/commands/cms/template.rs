//! `tpu cms job template`, `tpu cms job add`: jobs that options describe.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::CmsJobFields;
use crate::cli::print::Output;
use crate::jobfile::cloudmesh::template::{Template, TemplateJob};
use crate::ops::Error;
use crate::ops::cloudmesh::{self, jobset, template};
use crate::ops::named::expanded;
use crate::text::{counted, escape};
use crate::wire::cloudmesh::TemplateDocument;

use super::{RUN, needs_queue, user_at_work};

/// Why jobs are not added: what they are is checked all the same, so that a mistake in them is said first.
pub(super) fn add(app: &App, file: Option<&str>, fields: &CmsJobFields) -> Result<Error, Error> {
    let ctx = app.ctx()?;
    match (file, &fields.name) {
        (Some(_), Some(_)) => {
            Err(Error::usage("a file and --name are said").hint("say one of them"))
        }
        (None, None) => Err(Error::usage("which jobs?").hint(
            "as in: tpu cms job add --name=z[0-1] --ip=a,b --executable=ls, or tpu cms job add FILE",
        )),
        (Some(file), None) => {
            let jobs = cloudmesh::read_jobs(ctx, &cloudmesh::place(ctx, file)?)?;
            let what = format!("{} cannot be added", counted(jobs.len(), "job"));
            Ok(needs_queue(&what, RUN))
        }
        (None, Some(_)) => {
            let jobs = described(app, fields)?;
            let line = |job: &TemplateJob| {
                let of = |key: &str| job.fields.iter().find(|(name, _)| *name == key);
                let said = |key: &str| of(key).map_or("", |(_, value)| value.as_str());
                let words = [said("executable"), said("arguments").trim()];
                let command = words.join(" ");
                format!("tpu run {} --name {} -- {}", said("ip"), job.name, command.trim_end())
            };
            let lines: Vec<String> = jobs.iter().take(SHOWN).map(line).collect();
            let what = format!("{} cannot be added", counted(jobs.len(), "job"));
            Ok(needs_queue(&what, &format!("start them now:\n{}", lines.join("\n"))))
        }
    }
}

/// So many commands are said of what a person may type instead.
const SHOWN: usize = 8;

/// The jobs that options describe, each option one value for all or one for each.
fn described(app: &App, fields: &CmsJobFields) -> Result<Vec<TemplateJob>, Error> {
    let names = expanded(fields.name.as_deref().unwrap_or("job"))?;
    let zipped =
        |option: &str, said: &Option<String>| template::for_each(&names, option, said.as_deref());
    let plain =
        [&fields.name, &fields.executable, &fields.directory, &fields.status, &fields.shell];
    for said in plain.into_iter().flatten() {
        template::refuse_unsafe(said)?;
    }
    let one = |said: &Option<String>, usual: &str| said.clone().unwrap_or_else(|| usual.to_owned());
    let (ips, inputs) = (zipped("ip", &fields.ip)?, zipped("input", &fields.input)?);
    let (outputs, gpus) = (zipped("output", &fields.output)?, zipped("gpu", &fields.gpu)?);
    let arguments = zipped("arguments", &fields.arguments)?;
    let usual = if fields.executable.is_none() { "-a" } else { " " };
    let user = account(app);
    let job = |(place, name): (usize, &String)| {
        let of = |all: &[Option<String>], usual: &str| {
            all.get(place).cloned().flatten().unwrap_or_else(|| usual.to_owned())
        };
        TemplateJob {
            name: name.clone(),
            fields: vec![
                ("directory", one(&fields.directory, ".")),
                ("ip", of(&ips, "localhost")),
                ("input", of(&inputs, "./data")),
                ("output", of(&outputs, &format!("./output/{name}"))),
                ("status", one(&fields.status, "ready")),
                ("gpu", of(&gpus, " ")),
                ("user", user.clone()),
                ("arguments", of(&arguments, usual)),
                ("executable", one(&fields.executable, "uname")),
                ("shell", one(&fields.shell, "bash")),
                ("submitted_to_ip", " ".to_owned()),
            ],
        }
    };
    Ok(names.iter().enumerate().map(job).collect())
}

/// The account that is written into a file: `--user`, else whoever this is.
fn account(app: &App) -> String {
    let named = app.global.user.as_deref();
    let account = || ["USER", "LOGNAME"].iter().find_map(|name| app.env.non_empty(name));
    named.or_else(account).unwrap_or("username").to_owned()
}

/// `tpu cms job template`.
pub(super) fn write(app: &App, file: Option<&str>, force: bool, fields: &CmsJobFields) -> Outcome {
    let ctx = app.ctx()?;
    let user = user_at_work(app)?;
    let path = match file {
        Some(file) => cloudmesh::place(ctx, file)?,
        None => match jobset::current(ctx, user.as_ref())? {
            Some(path) => path,
            None => cloudmesh::place(ctx, jobset::USUAL)?,
        },
    };
    let jobs = described(app, fields)?;
    let data = ctx.data()?;
    let settings = ctx.settings(user.as_ref().and_then(|name| data.user(name)))?;
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let template = Template { user: account(app), policy: settings.policy.as_str(), jobs };
    template::write(ctx, &path, &template, force)?;
    let shown = path.display().to_string();
    let text = format!("Wrote {} with {}.", escape(&shown), counted(names.len(), "job"));
    Ok(Output::new(text, &TemplateDocument { file: &path, jobs: &names }))
}
