//! `tpu cms job template`; jobs that options describe.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::CmsJobFields;
use crate::cli::print::Output;
use tpu_core::text::{counted, escape};
use tpu_jobfile::cloudmesh::template::{Template, TemplateJob};
use tpu_ops::Error;
use tpu_ops::base::account;
use tpu_ops::base::named::expanded;
use tpu_ops::front::cloudmesh::{self, jobset, template};
use tpu_wire::cloudmesh::TemplateDocument;

use super::user_at_work;

/// The jobs that options describe, each option one value for all or one for each.
pub(super) fn described(
    fields: &CmsJobFields,
    user: Option<&str>,
) -> Result<Vec<TemplateJob>, Error> {
    let names = expanded(fields.name.as_deref().unwrap_or("job"))?;
    let zipped =
        |option: &str, said: &Option<String>| template::for_each(&names, option, said.as_deref());
    let plain = [
        &fields.name,
        &fields.executable,
        &fields.directory,
        &fields.status,
        &fields.shell,
        &fields.gpu,
    ];
    for said in plain.into_iter().flatten() {
        template::refuse_unsafe(said)?;
    }
    let one = |said: &Option<String>, usual: &str| said.clone().unwrap_or_else(|| usual.to_owned());
    let (ips, inputs) = (zipped("ip", &fields.ip)?, zipped("input", &fields.input)?);
    let outputs = zipped("output", &fields.output)?;
    let gpus = match names.as_slice() {
        // Several GPUs of one job, and no list of values.
        [_] => vec![fields.gpu.clone()],
        _ => zipped("gpu", &fields.gpu)?,
    };
    let arguments = zipped("arguments", &fields.arguments)?;
    let usual = if fields.executable.is_none() { "-a" } else { " " };
    let user = user.unwrap_or(" ");
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
                ("user", user.to_owned()),
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
fn named_account(app: &App) -> String {
    app.global.user.clone().unwrap_or_else(|| account::account(&app.env))
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
    let jobs = described(fields, Some(&named_account(app)))?;
    let data = ctx.data()?;
    let settings = ctx.settings(user.as_ref().and_then(|name| data.user(name)))?;
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let template = Template { user: named_account(app), policy: settings.policy.as_str(), jobs };
    template::write(ctx, &path, &template, force)?;
    let shown = path.display().to_string();
    let text = format!("Wrote {} with {}.", escape(&shown), counted(names.len(), "job"));
    Ok(Output::new(text, &TemplateDocument { file: &path, jobs: &names }))
}
