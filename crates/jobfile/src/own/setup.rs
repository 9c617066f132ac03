//! `setup:`: the modules of a job.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::setup::{
    BucketMount, Conda, Docker, Gcsfuse, Identity, Module, Nfs, OwnStep, SshKeys, StepFile, Venv,
    Wandb,
};
use tpu_core::model::time;
use tpu_core::model::variables;

use super::values::{bad, bad_key, map, text, texts, unknown, word};

const EXAMPLE: &str = "setup: [{venv: {requirements: r.txt}}]";

/// The modules that have a name.
pub(super) const MODULES: [&str; 8] =
    ["ssh_keys", "gcsfuse", "nfs", "docker", "conda", "venv", "wandb", "recipe"];

/// The keys of a step that its writer says himself.
const STEP: [&str; 7] = ["name", "check", "run", "files", "workers", "timeout", "once_per"];

/// The cache of a bucket: our keys, and the options of gcsfuse (its `--help`, and Cloud Storage `FUSE` CLI options).
pub(super) const CACHE: [(&str, &str); 7] = [
    ("dir", "cache-dir"),
    ("metadata_ttl_secs", "metadata-cache-ttl-secs"),
    ("stat_max_size_mb", "stat-cache-max-size-mb"),
    ("type_max_size_mb", "type-cache-max-size-mb"),
    ("file_max_size_mb", "file-cache-max-size-mb"),
    ("file_for_range_read", "file-cache-cache-file-for-range-read"),
    ("parallel_downloads", "file-cache-enable-parallel-downloads"),
];

/// The modules of a job, in order.
pub(super) fn modules(value: &Yaml, field: &str) -> Result<Vec<Module>, BadFile> {
    let YamlValue::List(all) = &value.value else {
        return Err(bad(value, field, "a list is wanted here", format!("as in {EXAMPLE}")));
    };
    let mut modules: Vec<Module> = Vec::new();
    for one in all {
        let module = module(one, field)?;
        let before = modules.iter().find(|before| before.is_environment());
        if let Some(first) = before.filter(|_| module.is_environment()) {
            let what = format!("{} is its environment already", first.name());
            return Err(bad(one, field, what, "a command runs in one of docker, conda and venv"));
        }
        if modules.iter().any(|before| before.name() == module.name()) {
            let what = format!("{} is there already", module.name());
            return Err(bad(one, field, what, "each has a name of its own, which its log has too"));
        }
        modules.push(module);
    }
    Ok(modules)
}

fn module(one: &Yaml, field: &str) -> Result<Module, BadFile> {
    let members = map(one, field, EXAMPLE)?;
    let named = members.iter().find(|(key, _)| MODULES.contains(&key.as_str()));
    let Some((name, of)) = named else { return step(one, members, field) };
    if let Some((other, value)) = members.iter().find(|(key, _)| key != name) {
        let what = format!("{name} is a module, and stands alone");
        let hint = "each module is an entry of its own: begin a line with `- `";
        return Err(bad_key(value, &format!("{field}.{other}"), what, hint));
    }
    let field = format!("{field}.{name}");
    Ok(match name.as_str() {
        "recipe" => Module::Recipe(plain(of, &field, "recipe: mount-disk")?),
        "ssh_keys" => Module::SshKeys(ssh_keys(of, &field)?),
        "gcsfuse" => Module::Gcsfuse(gcsfuse(of, &field)?),
        "nfs" => Module::Nfs(nfs(of, &field)?),
        "docker" => Module::Docker(docker(of, &field)?),
        "conda" => Module::Conda(conda(of, &field)?),
        "wandb" => Module::Wandb(wandb(of, &field)?),
        _ => Module::Venv(venv(of, &field)?),
    })
}

/// The members of a module, each read by its key; all others are refused.
struct Keys<'a> {
    at: &'a Yaml,
    field: &'a str,
    members: &'a [(String, Yaml)],
    example: &'static str,
}

impl<'a> Keys<'a> {
    fn of(
        at: &'a Yaml,
        field: &'a str,
        known: &[&str],
        example: &'static str,
    ) -> Result<Self, BadFile> {
        let members = map(at, field, example)?;
        for (key, value) in members {
            if !known.contains(&key.as_str()) {
                let known = known.iter().copied();
                return Err(unknown(value, (&format!("{field}.{key}"), key), known));
            }
        }
        Ok(Self { at, field, members, example })
    }

    /// What stands behind a key; blank is as if it were not there.
    fn get(&self, key: &str) -> Option<&'a Yaml> {
        let (_, value) = self.members.iter().find(|(known, _)| known == key)?;
        Some(value).filter(|value| !matches!(value.value, YamlValue::Blank))
    }

    fn text(&self, key: &str) -> Result<Option<String>, BadFile> {
        let of =
            |value| Ok(text(value, &format!("{}.{key}", self.field), self.example)?.to_owned());
        self.get(key).map(of).transpose()
    }

    fn need(&self, key: &str) -> Result<String, BadFile> {
        self.text(key)?.ok_or_else(|| {
            bad(
                self.at,
                self.field,
                format!("{key}: is missing"),
                format!("as in {}", self.example),
            )
        })
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, BadFile> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        if matches!(&value.value, YamlValue::List(all) if all.is_empty()) {
            return Ok(Vec::new());
        }
        let all = texts(value, &format!("{}.{key}", self.field), self.example)?;
        Ok(all.into_iter().map(|(_, text)| text.to_owned()).collect())
    }

    /// Shell text, with its blanks.
    fn shell(&self, key: &str) -> Result<Option<String>, BadFile> {
        let field = format!("{}.{key}", self.field);
        let of = |value| {
            text(value, &field, self.example)?;
            Ok(word(value, &field)?.to_owned())
        };
        self.get(key).map(of).transpose()
    }
}

fn ssh_keys(at: &Yaml, field: &str) -> Result<SshKeys, BadFile> {
    const EXAMPLE: &str = "ssh_keys: {identities: [{private_key: ~/.ssh/id_ed25519}]}";
    const IDENTITY: [&str; 3] = ["private_key", "public_key", "config_entry"];
    let keys = Keys::of(at, field, &["identities"], EXAMPLE)?;
    let all = match keys.get("identities").map(|value| &value.value) {
        Some(YamlValue::List(all)) if !all.is_empty() => all,
        _ => return Err(bad(at, field, "identities: is a list", format!("as in {EXAMPLE}"))),
    };
    let field = format!("{field}.identities");
    let identity = |one: &Yaml| {
        let keys = Keys::of(one, &field, &IDENTITY, EXAMPLE)?;
        Ok(Identity {
            private_key: keys.text("private_key")?,
            public_key: keys.text("public_key")?,
            config_entry: keys.shell("config_entry")?,
        })
    };
    Ok(SshKeys { identities: all.iter().map(identity).collect::<Result<_, BadFile>>()? })
}

fn gcsfuse(at: &Yaml, field: &str) -> Result<Gcsfuse, BadFile> {
    const EXAMPLE: &str = "gcsfuse: {bucket: my-bucket, mount: /mnt/bucket}";
    let keys = Keys::of(at, field, &["bucket", "mount", "cache", "extra_mounts"], EXAMPLE)?;
    let mut mounts = vec![bucket(&keys, None)?];
    let others = match keys.get("extra_mounts").map(|value| &value.value) {
        None => &[],
        Some(YamlValue::List(all)) => all.as_slice(),
        Some(_) => {
            return Err(bad(at, field, "extra_mounts: is a list", "as in [{mount: /mnt/x}]"));
        }
    };
    let first = mounts.first().map(|of| of.bucket.clone());
    let field = format!("{field}.extra_mounts");
    for one in others {
        let keys = Keys::of(one, &field, &["bucket", "mount", "cache"], EXAMPLE)?;
        mounts.push(bucket(&keys, first.as_deref())?);
    }
    Ok(Gcsfuse { mounts })
}

/// A bucket with its place. Without a name it is the `usual` one.
fn bucket(keys: &Keys<'_>, usual: Option<&str>) -> Result<BucketMount, BadFile> {
    let said = match (keys.text("bucket")?, usual) {
        (None, Some(usual)) => usual.to_owned(),
        (None, None) => keys.need("bucket")?,
        (Some(said), _) => said,
    };
    let bucket = said.strip_prefix("gs://").unwrap_or(&said).trim_end_matches('/').to_owned();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if bucket.is_empty() || !bucket.chars().all(plain) {
        let at = keys.get("bucket").unwrap_or(keys.at);
        let hint = "lower-case letters, digits, -, _ and ., as in my-bucket";
        return Err(bad(at, keys.field, format!("'{said}' is no name of a bucket"), hint));
    }
    let mount = directory(keys, "mount")?;
    let mut options = Vec::new();
    if let Some(cache) = keys.get("cache") {
        let field = format!("{}.cache", keys.field);
        for (key, value) in map(cache, &field, "cache: {file_max_size_mb: 50000}")? {
            let Some((_, option)) = CACHE.iter().find(|(ours, _)| ours == key) else {
                let known = CACHE.iter().map(|(ours, _)| *ours);
                return Err(unknown(value, (&format!("{field}.{key}"), key), known));
            };
            let said = text(value, &format!("{field}.{key}"), "file_max_size_mb: 50000")?;
            options.push(((*option).to_owned(), said.to_owned()));
        }
    }
    Ok(BucketMount { bucket, mount, options })
}

/// A directory of a worker, which is absolute or below the account's home.
fn directory(keys: &Keys<'_>, key: &str) -> Result<String, BadFile> {
    let said = keys.need(key)?;
    as_directory(&said).ok_or_else(|| {
        let at = keys.get(key).unwrap_or(keys.at);
        let hint = "as in /mnt/data, or ~/data in the account's home there";
        bad(at, keys.field, format!("'{said}' is no directory of a worker"), hint)
    })
}

/// A path of a machine as a whole one or one below the account's home, without slashes at its end.
pub(super) fn as_directory(said: &str) -> Option<String> {
    let is_whole = said.starts_with('/') || said.starts_with("~/");
    let bare = said.trim_end_matches('/');
    (is_whole && bare.len() > 1 && !said.contains('\n')).then(|| bare.to_owned())
}

fn nfs(at: &Yaml, field: &str) -> Result<Nfs, BadFile> {
    const EXAMPLE: &str = "nfs: {export: 'server:/data', mount: /mnt/data}";
    let keys = Keys::of(at, field, &["export", "mount", "options"], EXAMPLE)?;
    let export = keys.need("export")?;
    if !export.contains(":/") {
        let hint = format!("as in {EXAMPLE}");
        return Err(bad(at, field, format!("'{export}' is no SERVER:/PATH"), hint));
    }
    Ok(Nfs { export, mount: directory(&keys, "mount")?, options: keys.text("options")? })
}

fn docker(at: &Yaml, field: &str) -> Result<Docker, BadFile> {
    const EXAMPLE: &str = "docker: {image: 'repo/image:tag'}";
    let keys = Keys::of(at, field, &["image", "mounts", "workdir", "flags"], EXAMPLE)?;
    Ok(Docker {
        image: keys.need("image")?,
        mounts: keys.texts("mounts")?,
        workdir: keys.text("workdir")?,
        flags: keys.texts("flags")?,
    })
}

fn conda(at: &Yaml, field: &str) -> Result<Conda, BadFile> {
    let keys = Keys::of(at, field, &["name", "file"], "conda: {name: train, file: env.yaml}")?;
    Ok(Conda { name: directory_name(&keys)?, file: keys.text("file")? })
}

fn venv(at: &Yaml, field: &str) -> Result<Venv, BadFile> {
    const EXAMPLE: &str = "venv: {name: train, requirements: r.txt}";
    let keys = Keys::of(at, field, &["name", "python", "requirements"], EXAMPLE)?;
    let python = keys.text("python")?;
    Ok(Venv { name: directory_name(&keys)?, python, requirements: keys.text("requirements")? })
}

fn wandb(at: &Yaml, field: &str) -> Result<Wandb, BadFile> {
    let keys = Keys::of(at, field, &["key", "host"], "wandb: {key: WANDB_API_KEY}")?;
    let key = keys.need("key")?;
    let at_key = keys.get("key").unwrap_or(at);
    variables::as_secret(&key).map_err(|(what, hint)| bad(at_key, field, what, hint))?;
    let host = keys.text("host")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if let Some(host) = host.as_ref().filter(|host| !host.chars().all(plain)) {
        let at = keys.get("host").unwrap_or(at);
        return Err(bad(
            at,
            field,
            format!("'{host}' is no name of a server"),
            "as in api.wandb.ai",
        ));
    }
    Ok(Wandb { key, host })
}

/// The name of an environment, which is a directory's as well.
fn directory_name(keys: &Keys<'_>) -> Result<String, BadFile> {
    let name = keys.text("name")?.unwrap_or_else(|| "tpu".to_owned());
    is_plain(keys.get("name").unwrap_or(keys.at), keys.field, &name)?;
    Ok(name)
}

fn is_plain(at: &Yaml, field: &str, name: &str) -> Result<(), BadFile> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(bad(at, field, format!("'{name}' cannot be a name here"), "letters, digits, -, _ and ."))
}

fn plain(at: &Yaml, field: &str, example: &str) -> Result<String, BadFile> {
    let name = text(at, field, example)?;
    is_plain(at, field, name)?;
    Ok(name.to_owned())
}

/// A step that its writer says himself.
fn step(at: &Yaml, members: &[(String, Yaml)], field: &str) -> Result<Module, BadFile> {
    const EXAMPLE: &str = "{name: wheels, check: test -e ~/.ok, run: pip install x && touch ~/.ok}";
    if let Some((key, value)) = members.iter().find(|(key, _)| !STEP.contains(&key.as_str())) {
        let known = MODULES.into_iter().chain(STEP);
        return Err(unknown(value, (&format!("{field}.{key}"), key), known));
    }
    let keys = Keys::of(at, field, &STEP, EXAMPLE)?;
    let name = keys.need("name")?;
    is_plain(keys.get("name").unwrap_or(at), field, &name)?;
    let step = OwnStep {
        name,
        check: keys.shell("check")?,
        run: keys.shell("run")?,
        files: files(&keys)?,
        workers: keys.get("workers").map(|value| workers(value, field)).transpose()?.flatten(),
        timeout_s: keys.get("timeout").map(|value| seconds(value, field)).transpose()?,
        is_once: match keys.text("once_per")?.as_deref() {
            None | Some("job") => false,
            Some("machine") => true,
            Some(other) => {
                let at = keys.get("once_per").unwrap_or(at);
                return Err(bad(
                    at,
                    field,
                    format!("once_per: {other} is unknown"),
                    "machine or job",
                ));
            }
        },
    };
    if step.run.is_none() && step.files.is_empty() {
        let what = format!("step {} has neither run: nor files:", step.name);
        return Err(bad(at, field, what, format!("as in {EXAMPLE}")));
    }
    Ok(Module::Step(step))
}

fn files(keys: &Keys<'_>) -> Result<Vec<StepFile>, BadFile> {
    const EXAMPLE: &str = "files: [{from: token, to: ~/.token, mode: 600}]";
    let all = match keys.get("files") {
        None => return Ok(Vec::new()),
        Some(Yaml { value: YamlValue::List(all), .. }) => all,
        Some(at) => {
            return Err(bad(at, keys.field, "files: is a list", format!("as in {EXAMPLE}")));
        }
    };
    let field = format!("{}.files", keys.field);
    let file = |one: &Yaml| {
        let keys = Keys::of(one, &field, &["from", "to", "mode"], EXAMPLE)?;
        let said = keys.text("mode")?.unwrap_or_else(|| "600".to_owned());
        let mode = u32::from_str_radix(&said, 8).ok().filter(|mode| *mode <= 0o777);
        let mode = mode.ok_or_else(|| {
            let at = keys.get("mode").unwrap_or(one);
            bad(at, &field, format!("'{said}' are no rights of a file"), "as in mode: 600")
        })?;
        Ok(StepFile { from: keys.need("from")?, to: directory(&keys, "to")?, mode })
    };
    all.iter().map(file).collect()
}

/// `workers:`: `all`, a number, or a list of them. `None` where it is all.
pub(super) fn workers(value: &Yaml, field: &str) -> Result<Option<Vec<u32>>, BadFile> {
    const EXAMPLE: &str = "workers: [0, 2]";
    if value.text() == Some("all") {
        return Ok(None);
    }
    let number = |(at, text): (&Yaml, &str)| {
        let hint = format!("all, a number, or a list: {EXAMPLE}");
        text.parse().map_err(|_| bad(at, field, format!("'{text}' is no number of a worker"), hint))
    };
    let all = texts(value, field, EXAMPLE)?.into_iter().map(number);
    let mut all: Vec<u32> = all.collect::<Result<_, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(Some(all))
}

/// A time such as `30m`, in seconds.
pub(super) fn seconds(value: &Yaml, field: &str) -> Result<u64, BadFile> {
    let said = text(value, field, "timeout: 30m")?;
    let seconds = time::parse_age(said).filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| bad(value, field, format!("'{said}' is no time"), "as in 90s, 30m or 2h"))
}
