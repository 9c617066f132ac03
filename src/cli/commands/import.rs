//! `import`: what other tools know becomes known here, and of every field it is said what became of it.

use std::fmt::Write as _;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CloudmeshFiles, ForeignTool, ImportFrom};
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::text::escape;
use tpu_jobfile::cloudmesh::{ImportedHost, ImportedJob, ReadField};
use tpu_ops::act::hosts::words::added_all_the_same;
use tpu_ops::front::cloudmesh::import::{
    self, CloudmeshRequest, HostFate, ImportedFile, PolicyFate,
};
use tpu_ops::front::cloudmesh::place;
use tpu_ops::front::cloudmesh::ready::JobFate;
use tpu_wire::cloudmesh::CloudmeshDocument;

/// `import …`.
pub(in crate::cli) fn run(app: &App, args: &ImportFrom) -> Outcome {
    match &args.from {
        ForeignTool::Cloudmesh(files) => cloudmesh(app, files),
    }
}

fn cloudmesh(app: &App, args: &CloudmeshFiles) -> Outcome {
    let ctx = app.ctx()?;
    let paths = args.files.iter().map(|file| place(ctx, file)).collect::<Result<Vec<_>, _>>()?;
    let commands = legacy::command_words();
    let import = import::import(
        ctx,
        &CloudmeshRequest {
            paths: &paths,
            user: app.known_user(&*ctx.data()?),
            is_asked: !args.no_probe && !app.global.dry_run,
            commands: &commands,
        },
    )?;
    let text: String = import.files.iter().map(of_file).collect();
    let is_same = !import.files.iter().any(ImportedFile::changes);
    let end = if is_same { "Nothing is other than before.\n" } else { "" };
    let silent = import.answers.iter().filter_map(|(name, answer)| {
        let why = answer.as_ref().err()?;
        Some(added_all_the_same(name.as_str(), why))
    });
    let mut notes: Vec<String> = silent.map(|note| escape(&note).into_owned()).collect();
    let fates = || import.files.iter().flat_map(|file| &file.jobs);
    if fates().any(|fate| *fate == JobFate::Nobody) {
        notes.push("whose are the jobs? say --user NAME, and import again".to_owned());
    }
    if fates().any(|fate| matches!(fate, JobFate::Added(_))) {
        notes.push("nothing begins by an import: tpu cms job run starts what is ready".to_owned());
    }
    Ok(Output::new(format!("{text}{end}"), &CloudmeshDocument::from(&import)).notes(notes))
}

/// What became of a file, line by line.
fn of_file(imported: &ImportedFile) -> String {
    let file = &imported.file;
    let path = imported.path.display().to_string();
    let mut text = format!("{}: {}\n", escape(&path), escape(&file.kind.in_words()));
    text += &fields("  ", &file.fields);
    for (host, fate) in imported.each_host() {
        text += &of_host(host, fate);
    }
    if let (Some(policy), Some(fate)) = (file.policy, &imported.policy) {
        let _ = writeln!(text, "  policy {}: {}", policy.as_str(), of_policy(fate));
    }
    for (job, fate) in imported.each_job() {
        text += &of_job(job, fate);
    }
    text
}

fn of_host(host: &ImportedHost, fate: &HostFate) -> String {
    let fate = match fate {
        HostFate::Added => "added".to_owned(),
        HostFate::Joined(pool) => format!("known already, and in the pool {pool} from now on"),
        HostFate::Known => "known already".to_owned(),
        HostFate::Differs(how) => format!(
            "known already with other values, and left as it is: {}; change it: tpu hosts set {}",
            how.join("; "),
            host.name
        ),
    };
    format!("  host {}: {}\n{}", escape(&host.name), escape(&fate), fields("    ", &host.fields))
}

fn of_policy(fate: &PolicyFate) -> String {
    match fate {
        PolicyFate::Set(user) => format!("that of {user} from now on"),
        PolicyFate::Same(user) => format!("that of {user} already"),
        PolicyFate::Other(user, policy, origin) => {
            let origin = escape(origin);
            format!("left alone, for {user} has {} ({origin})", policy.as_str())
        }
        PolicyFate::Nobody => "nobody's, as no user is named: tpu set-settings policy".to_owned(),
    }
}

fn of_job(job: &ImportedJob, fate: &JobFate) -> String {
    let name = escape(&job.name);
    let what = fate.in_words(&job.name);
    let mut text = format!("  job {name}: {}\n", escape(&what));
    if let JobFate::Added(notes) = fate {
        text.extend(notes.iter().map(|note| format!("    {}\n", escape(note))));
    }
    text + &fields("    ", &job.fields)
}

/// A line for each field: what stands there, and what became of it.
fn fields(indent: &str, fields: &[ReadField]) -> String {
    let line = |field: &ReadField| {
        let (name, becomes) = (escape(&field.name), escape(&field.becomes));
        let value = if field.value.is_empty() { "''".into() } else { escape(&field.value) };
        format!("{indent}{name} {value} -> {becomes}\n")
    };
    fields.iter().map(line).collect()
}
