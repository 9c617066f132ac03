//! A config of JobMan's, block by block.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::text::either;

use super::block::{Block, made, map_of, word};
use super::parts::{literal, parted, prefixes};
use super::setup::{self, ENVIRONMENTS};
use super::{ConversionNote, Converted};

/// Blocks that mean something to JobMan.
const BLOCKS: [&str; 9] =
    ["job", "tpu", "gcsfuse", "ssh", "docker", "conda", "venv", "command", "setup"];

/// Its words for what a machine costs, and ours.
const PRICING: [(&str, &str); 3] =
    [("spot", "spot"), ("preemptible", "preemptible"), ("ondemand", "on-demand")];

/// A config as a document of ours.
pub(super) fn converted(document: &Yaml) -> Result<Converted, BadFile> {
    let mut notes = Vec::new();
    let mut job = Block::of(document, "job")?;
    let Request { target, tpu } = request(document, &mut job, &mut notes)?;
    let name = job.take("name").cloned();
    let repeats = job.truth("loop")?.filter(|(_, is_said)| *is_said);
    if let Some((at, _)) = repeats {
        let what = "repeat: always, with a pause of 60 s, which JobMan does not make";
        notes.push(job.note(at, "loop", what));
    }
    let mut steps = modules(document, &mut job, &mut notes)?;
    steps.modules.extend(of_queue(&mut job, &mut notes)?);
    let (command, workers) = command(document, &steps, &mut notes)?;
    let notify = mail(document, &mut notes)?;
    let user = job.take("remote_user").cloned();
    let (env, secrets) = environment_of(document, &mut job, &mut notes)?;
    job.rest(&mut notes);
    others(document, &mut notes);
    let setup = (!steps.modules.is_empty()).then(|| made(document, YamlValue::List(steps.modules)));
    let document = map_of(
        document,
        vec![
            ("name", name),
            ("target", Some(target)),
            ("tpu", Some(tpu)),
            ("user", user),
            ("repeat", repeats.map(|(at, _)| word(at, "always"))),
            ("env", env),
            ("secrets", secrets),
            ("setup", setup),
            ("workers", workers),
            ("command", command),
            ("notify", notify),
        ],
    );
    Ok(Converted { document: literal(&document), notes })
}

/// `tpu:` as a target of ours, and what its request adds.
struct Request {
    target: Yaml,
    tpu: Yaml,
}

fn request(
    document: &Yaml,
    job: &mut Block<'_>,
    notes: &mut Vec<ConversionNote>,
) -> Result<Request, BadFile> {
    let Some(at) = document.get("tpu") else {
        let hint = "as in tpu: {allocation_mode: queued-resources, accelerator: v6e-1, name: my-tpu, zone: \
                    us-east1-d, version: v2-alpha-tpuv6e, pricing: spot}";
        let bad = BadFile::new(document.line, "tpu", "it is missing: nothing says on what", hint);
        return Err(bad.at_column(document.column));
    };
    let mut tpu = Block::of(document, "tpu")?;
    let modes = ["tpu-vm", "queued-resources"];
    tpu.need("allocation_mode", &either(&modes))?;
    let mode = tpu.one_of("allocation_mode", &modes)?.map(|(at, mode)| word(at, mode));
    let prices = PRICING.map(|(theirs, _)| theirs);
    tpu.need("pricing", &either(&prices))?;
    let pricing = tpu.one_of("pricing", &prices)?;
    let pricing = pricing.and_then(|(at, said)| {
        let (_, ours) = PRICING.iter().find(|(theirs, _)| *theirs == said)?;
        Some(word(at, *ours))
    });
    let target = vec![
        ("accelerator", Some(tpu.need("accelerator", "v6e-1")?.clone())),
        ("zone", Some(tpu.need("zone", "us-east1-d")?.clone())),
        ("pricing", pricing),
        ("version", tpu.take("version").cloned()),
        ("mode", mode),
    ];
    let name = tpu.need("name", "my-tpu")?;
    let number = job.take("worker_num").cloned().unwrap_or_else(|| {
        let what = "a number without gaps stands behind it, where JobMan puts that of the job";
        notes.push(tpu.note(name, "name", what));
        word(name, "auto")
    });
    for key in ["num_workers", "ips"] {
        if let Some(value) = tpu.take(key) {
            notes.push(tpu.note(value, key, "left out: JobMan wrote it; tpu asks the cloud"));
        }
    }
    // Version 3 has a block job:, and hands none of these on.
    if document.get("job").is_some() {
        for key in ["tags", "metadata", "startup_script"] {
            if let Some(value) = document.get("tpu").and_then(|tpu| tpu.get(key)) {
                notes.push(tpu.note(
                    value,
                    key,
                    "it has an effect here, where JobMan 3 ignores it",
                ));
            }
        }
    }
    let flags = tpu.list("flags")?.first().and(tpu.take("flags")).cloned();
    let request = vec![
        ("name", Some(name.clone())),
        ("number", Some(number)),
        ("tags", tpu.take("tags").cloned()),
        ("metadata", tpu.take("metadata").cloned()),
        ("startup_script", tpu.take("startup_script").cloned()),
        ("flags", flags),
    ];
    tpu.rest(notes);
    Ok(Request { target: map_of(at, target), tpu: map_of(at, request) })
}

/// What is set up, in order, and whether the command runs behind it.
struct Steps {
    modules: Vec<Yaml>,
    has_command: bool,
}

/// The modules that `setup.modules` names; without it, keys, buckets and the environment, as version 3 does.
fn modules(
    document: &Yaml,
    job: &mut Block<'_>,
    notes: &mut Vec<ConversionNote>,
) -> Result<Steps, BadFile> {
    let mut setup = Block::of(document, "setup")?;
    let named = setup.take("modules").is_some();
    let mut steps = Steps { modules: Vec::new(), has_command: !named };
    let kind = job.one_of("env_type", &ENVIRONMENTS)?;
    if !named {
        setup.rest(notes);
        let environment = environment(document, kind.map(|(_, kind)| kind), notes)?;
        for name in ["ssh", "gcsfuse"].into_iter().chain(environment) {
            steps.modules.extend(setup::module(document, name, notes)?);
        }
        return Ok(steps);
    }
    let mut before: Option<&str> = None;
    for said in setup.list("modules")? {
        let name = said.text().unwrap_or_default();
        match name {
            "command" => steps.has_command = true,
            "ssh" | "gcsfuse" | "docker" | "conda" | "venv" => {
                if ENVIRONMENTS.contains(&name) {
                    if let Some(before) = before {
                        let what = format!("{before} is its environment already");
                        return Err(setup.bad(said, "modules", what, "name one of them"));
                    }
                    before = Some(name);
                }
                if steps.has_command {
                    let what = format!("{name} is set up before the command, not behind it");
                    notes.push(setup.note(said, "modules", what));
                }
                let module = setup::module(document, name, notes)?;
                let Some(module) = module else {
                    let what = format!("there is no block {name}: that says what is set up");
                    return Err(setup.bad(said, "modules", what, "write it, or leave this away"));
                };
                steps.modules.push(module);
            }
            _ => notes.push(setup.note(
                said,
                "modules",
                format!("{name} is left out: JobMan has no such module"),
            )),
        }
    }
    setup.rest(notes);
    for (name, value) in document.members("")? {
        let is_module = ["ssh", "gcsfuse", "command"].contains(&name.as_str())
            || ENVIRONMENTS.contains(&name.as_str());
        let is_named = setup.list("modules")?.iter().any(|said| said.text() == Some(name));
        if is_module && !is_named {
            let place = value.key.unwrap_or((value.line, value.column));
            let what = "left out: setup.modules does not name it".to_owned();
            notes.push(ConversionNote { place, field: name.clone(), what });
        }
    }
    Ok(steps)
}

/// Which environment is set up where `setup.modules` says nothing.
fn environment<'a>(
    document: &Yaml,
    said: Option<&'a str>,
    notes: &mut Vec<ConversionNote>,
) -> Result<Option<&'a str>, BadFile> {
    let there = ENVIRONMENTS.into_iter().filter_map(|name| Some((name, document.get(name)?)));
    let there: Vec<(&str, &Yaml)> = there.collect();
    let is_v3 = document.get("job").is_some();
    match (said, there.as_slice()) {
        (None, [(name, _)]) if !is_v3 => Ok(Some(name)),
        (None, [(first, _), (second, at), ..]) if !is_v3 => {
            let what = format!("{first} is its environment already");
            let hint = "setup: {modules: […]} says which of them is meant";
            Err(BadFile::new(at.line, *second, what, hint).at_column(at.column))
        }
        (said, there) => {
            for (name, at) in there.iter().filter(|(name, _)| Some(*name) != said) {
                let place = at.key.unwrap_or((at.line, at.column));
                let what = "left out: job.env_type does not name it".to_owned();
                notes.push(ConversionNote { place, field: (*name).to_owned(), what });
            }
            Ok(said)
        }
    }
}

/// `job.environment`, and the names of those of it whose values are not to stand in a record.
fn environment_of(
    document: &Yaml,
    job: &mut Block<'_>,
    notes: &mut Vec<ConversionNote>,
) -> Result<(Option<Yaml>, Option<Yaml>), BadFile> {
    let Some(env) = job.take("environment") else { return Ok((None, None)) };
    let all = env.members("job.environment").map_err(|bad| bad.at_column(env.column))?;
    Ok(parted(document, all.to_vec(), notes))
}

/// `job.queue`: the scripts before its tasks; the tasks have a file of their own.
fn of_queue(job: &mut Block<'_>, notes: &mut Vec<ConversionNote>) -> Result<Vec<Yaml>, BadFile> {
    let Some(at) = job.take("queue") else { return Ok(Vec::new()) };
    let mut queue = Block::below(at, "job.queue".to_owned())?;
    if let Some((at, true)) = queue.truth("enabled")? {
        let file = queue.take("config").and_then(Yaml::text).unwrap_or("tasks.yaml");
        let what = format!("left out: its tasks are submitted by themselves, `tpu submit {file}`");
        notes.push(queue.note(at, "enabled", what));
    }
    queue.take("config");
    let steps = queue.take("prefix").map(|prefix| prefixes(prefix, notes)).transpose()?;
    queue.rest(notes);
    Ok(steps.unwrap_or_default())
}

/// The command and its workers, as they are.
fn command(
    document: &Yaml,
    steps: &Steps,
    notes: &mut Vec<ConversionNote>,
) -> Result<(Option<Yaml>, Option<Yaml>), BadFile> {
    if !steps.has_command {
        return Ok((None, None));
    }
    let mut block = Block::of(document, "command")?;
    // `run` in version 2, `cmd` in version 3.
    let said = block.take("cmd").or(block.take("run")).cloned();
    let workers = block.take("workers").cloned();
    block.rest(notes);
    Ok((said, workers))
}

/// `brevo_email`, which one branch of JobMan has. The key that stands in it is nobody's business, and is named alone.
fn mail(document: &Yaml, notes: &mut Vec<ConversionNote>) -> Result<Option<Yaml>, BadFile> {
    let mut block = Block::of(document, "brevo_email")?;
    let Some(receiver) = block.take("receiver") else { return Ok(None) };
    let Some(sender) = block.take("sender") else {
        let to = receiver.text().unwrap_or("NAME@HOST");
        let what =
            format!("left out: no sender:; notify: {{on: [finished, error], mail: {to}}} says it");
        notes.push(block.note(receiver, "receiver", what));
        return Ok(None);
    };
    let what = "notify: tells of ends, and of no start; its key: tpu secrets set BREVO_API_KEY";
    notes.push(block.note(receiver, "receiver", what));
    let on = ["finished", "error", "preempted"].map(|one| word(receiver, one)).to_vec();
    let members = vec![
        ("on", Some(made(receiver, YamlValue::List(on)))),
        ("webhook", Some(word(receiver, "https://api.brevo.com/v3/smtp/email"))),
        ("shape", Some(word(receiver, "brevo"))),
        ("secret", Some(word(receiver, "BREVO_API_KEY"))),
        ("from", Some(sender.clone())),
        ("to", Some(receiver.clone())),
    ];
    Ok(Some(map_of(receiver, members)))
}

/// Notes blocks that mean nothing to JobMan.
fn others(document: &Yaml, notes: &mut Vec<ConversionNote>) {
    let YamlValue::Map(members) = &document.value else { return };
    let others = members.iter().filter(|(key, _)| !BLOCKS.contains(&key.as_str()));
    for (key, value) in others.filter(|(key, _)| key != "brevo_email") {
        let place = value.key.unwrap_or((value.line, value.column));
        let what = "left out: JobMan does nothing with it".to_owned();
        notes.push(ConversionNote { place, field: key.clone(), what });
    }
}
