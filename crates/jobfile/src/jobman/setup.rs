//! JobMan's modules as those of ours.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};

use super::ConversionNote;
use super::block::{Block, made, map_of, word};

/// The environments, of which a job has one at most.
pub(super) const ENVIRONMENTS: [&str; 3] = ["docker", "conda", "venv"];

/// The cache of a bucket: JobMan's keys and ours.
const CACHE: [(&str, &str); 7] = [
    ("dir", "dir"),
    ("metadata_ttl_secs", "metadata_ttl_secs"),
    ("stat_cache_max_size_mb", "stat_max_size_mb"),
    ("type_cache_max_size_mb", "type_max_size_mb"),
    ("file_cache_max_size_mb", "file_max_size_mb"),
    ("cache_file_for_range_read", "file_for_range_read"),
    ("enable_parallel_downloads", "parallel_downloads"),
];

/// A module of a document as one of ours; `None` where its block says nothing.
pub(super) fn module(
    document: &Yaml,
    name: &str,
    notes: &mut Vec<ConversionNote>,
) -> Result<Option<Yaml>, BadFile> {
    let mut block = Block::of(document, name)?;
    if block.is_empty() {
        return Ok(None);
    }
    let at = document.get(name).unwrap_or(document);
    let (ours, said) = match name {
        "ssh" => ("ssh_keys", ssh(&mut block, at, notes)?),
        "gcsfuse" => ("gcsfuse", Some(gcsfuse(&mut block, at, notes)?)),
        "docker" => ("docker", Some(docker(&mut block, at)?)),
        "conda" => {
            let name = block.need("name", "train")?.clone();
            let file = block.take("config_file").cloned();
            ("conda", Some(map_of(at, vec![("name", Some(name)), ("file", file)])))
        }
        _ => ("venv", Some(venv(&mut block, at)?)),
    };
    block.rest(notes);
    Ok(said.map(|said| map_of(at, vec![(ours, Some(said))])))
}

fn ssh(
    block: &mut Block<'_>,
    at: &Yaml,
    notes: &mut Vec<ConversionNote>,
) -> Result<Option<Yaml>, BadFile> {
    if let Some(key) = block.take("private_key") {
        let what = "left out: which key opens the machines is a setting of yours, ssh_key";
        notes.push(block.note(key, "private_key", what));
    }
    let mut all = Vec::new();
    // Version 2 has one pair of keys.
    let (private, public) = (block.take("tpu_private_key"), block.take("tpu_public_key"));
    if let Some(first) = private.or(public) {
        let keys = [("private_key", private.cloned()), ("public_key", public.cloned())];
        all.push(map_of(first, keys.to_vec()));
    }
    for identity in block.list("identities")? {
        let mut of = Block::below(identity, "ssh.identities".to_owned())?;
        let keys = ["private_key", "public_key", "config_entry"];
        let said = keys.map(|key| (key, of.take(key).cloned()));
        all.push(map_of(identity, said.to_vec()));
        of.rest(notes);
    }
    Ok((!all.is_empty())
        .then(|| map_of(at, vec![("identities", Some(made(at, YamlValue::List(all))))])))
}

fn gcsfuse(
    block: &mut Block<'_>,
    at: &Yaml,
    notes: &mut Vec<ConversionNote>,
) -> Result<Yaml, BadFile> {
    let bucket = block.need("bucket_name", "my-bucket")?;
    let mount = block.need("mount_path", "/mnt/bucket")?.clone();
    let cache = cache(block, notes)?;
    let mut more = Vec::new();
    for one in block.list("extra_mounts")? {
        let mut of = Block::below(one, "gcsfuse.extra_mounts".to_owned())?;
        let mount = of.need("mount_path", "/mnt/other")?.clone();
        // Without a word it is the same bucket.
        let bucket = of.take("bucket_name").unwrap_or(bucket).clone();
        let cache = self::cache(&mut of, notes)?;
        of.rest(notes);
        let said = vec![("bucket", Some(bucket)), ("mount", Some(mount)), ("cache", cache)];
        more.push(map_of(one, said));
    }
    let more = (!more.is_empty()).then(|| made(at, YamlValue::List(more)));
    Ok(map_of(
        at,
        vec![
            ("bucket", Some(bucket.clone())),
            ("mount", Some(mount)),
            ("cache", cache),
            ("extra_mounts", more),
        ],
    ))
}

fn cache(block: &mut Block<'_>, notes: &mut Vec<ConversionNote>) -> Result<Option<Yaml>, BadFile> {
    let Some(at) = block.take("cache") else { return Ok(None) };
    let mut of = Block::below(at, "gcsfuse.cache".to_owned())?;
    let said = CACHE.map(|(theirs, ours)| (ours, of.take(theirs).cloned()));
    if let Some(prefix) = of.take("prefix") {
        let what = "left out: write it as a step of its own above the bucket, {name, run}";
        notes.push(of.note(prefix, "prefix", what));
    }
    of.rest(notes);
    Ok(Some(map_of(at, said.to_vec())))
}

fn docker(block: &mut Block<'_>, at: &Yaml) -> Result<Yaml, BadFile> {
    let image = block.need("image", "registry/image:tag")?.clone();
    let mounts = block.list("mount_dirs")?.iter().map(|dir| match dir.text() {
        // A directory by itself stands in the container where it stands outside.
        Some(same) if !same.contains(':') => word(dir, format!("{same}:{same}")),
        _ => dir.clone(),
    });
    let mounts: Vec<Yaml> = mounts.collect();
    let mounts = (!mounts.is_empty()).then(|| made(at, YamlValue::List(mounts)));
    Ok(map_of(
        at,
        vec![
            ("image", Some(image)),
            ("mounts", mounts),
            ("workdir", block.take("workdir").cloned()),
            ("flags", block.take("flags").cloned()),
        ],
    ))
}

fn venv(block: &mut Block<'_>, at: &Yaml) -> Result<Yaml, BadFile> {
    let name = block.need("name", "train")?.clone();
    let python = block.take("python").map(|said| match said.text() {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => {
            word(said, format!("python{version}"))
        }
        _ => said.clone(),
    });
    let requirements = block.take("requirements_file").cloned();
    Ok(map_of(at, vec![("name", Some(name)), ("python", python), ("requirements", requirements)]))
}
