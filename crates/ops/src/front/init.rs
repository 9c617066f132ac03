//! `init`: the first user, this account's settings, example scripts. Each step says what it did; what is
//! there already stays as it is.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use tpu_core::model::ids::UserName;
use tpu_system::store::{StoreError, atomic};

use super::dirs;
use crate::base::disk::make_dirs;
use crate::waiting::users::{self, NewUser};
use crate::{Ctx, Error};

/// The scripts of the example, with their modes.
const SCRIPTS: [(&str, &str, u32); 4] = [
    ("staging.sh", include_str!("../../../../assets/example/staging.sh"), 0o755),
    ("run_remote.sh", include_str!("../../../../assets/example/run_remote.sh"), 0o755),
    ("ka.sh", include_str!("../../../../assets/example/ka.sh"), 0o644),
    ("config.sh", include_str!("../../../../assets/example/config.sh"), 0o644),
];

/// Mode of the settings of this account.
const SETTINGS_MODE: u32 = 0o600;

/// `init`, resolved.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The user.
    pub user: NewUser,
    /// The directory of the code, which becomes slot 1.
    pub dir: PathBuf,
    /// Put the example scripts there.
    pub scripts: bool,
    /// The settings of this account, and what is to stand there.
    pub settings: Option<(PathBuf, Vec<(String, Value)>)>,
}

/// Does what is not done yet; says what it did, one sentence each.
pub fn begin(ctx: &Ctx, beginning: &Beginning) -> Result<Vec<String>, Error> {
    let mut said = Vec::new();
    let name = UserName::from(beginning.user.name.as_str());
    let known = match ctx.data() {
        Ok(data) => data.user(&name).map(|user| user.dir(1).map(str::to_owned)),
        Err(_) if matches!(ctx.store.read(), Err(StoreError::Missing { .. })) => None,
        Err(error) => return Err(error),
    };
    let dir = beginning.dir.to_string_lossy().into_owned();
    match known {
        None => {
            users::add(ctx, &NewUser { dir: Some(dir.clone()), ..beginning.user.clone() })?;
            let data = ctx.store.paths().data().display().to_string();
            said.push(format!("Added user {name} to {data}."));
            said.push(format!("Made {dir} directory 1 of {name}."));
        }
        Some(None) => {
            dirs::set(ctx, &name, 1, &beginning.dir)?;
            said.push(format!("User {name} is there already; made {dir} directory 1."));
        }
        Some(Some(slot)) => {
            said.push(format!("User {name} is there already, with {slot} as directory 1."));
            said.extend(in_no_slot(ctx, &name, &dir)?);
        }
    }
    if let Some((path, values)) = &beginning.settings {
        said.push(write_settings(ctx, path, values)?);
    }
    if beginning.scripts {
        said.extend(write_scripts(ctx, &beginning.dir)?);
    }
    Ok(said)
}

/// That a directory is none of a user's, and how it becomes one.
fn in_no_slot(ctx: &Ctx, name: &UserName, dir: &str) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let slots = data.user(name).map(|user| &user.working_dir);
    let Some(slots) = slots.filter(|slots| !slots.iter().any(|(_, path)| path == dir)) else {
        return Ok(None);
    };
    let last = slots.iter().map(|(slot, _)| *slot).max().unwrap_or_default();
    let free = last + 1;
    Ok(Some(format!(
        "This directory is none of {name}'s; to run from here too: tpu set-dir {dir} {free}"
    )))
}

/// Adds values to the settings of this account; the others stay.
pub fn write_settings(ctx: &Ctx, path: &Path, values: &[(String, Value)]) -> Result<String, Error> {
    let disk = &**ctx.store.disk();
    let mut map: Map<String, Value> = match disk.read(path) {
        Ok(contents) => serde_json::from_slice(&contents.bytes).map_err(|e| {
            Error::usage(format!("{}: {e}", path.display()))
                .hint("correct the file, or move it away to begin anew")
        })?,
        Err(_) => Map::new(),
    };
    let mut names = Vec::new();
    for (key, value) in values {
        if map.get(key) != Some(value) {
            map.insert(key.clone(), value.clone());
            names.push(format!("{key} = {value}"));
        }
    }
    if names.is_empty() {
        return Ok(format!("The settings in {} stay as they are.", path.display()));
    }
    if !ctx.store.is_dry_run() {
        if let Some(dir) = path.parent() {
            make_dirs(ctx, dir)?;
        }
        let text = format!("{:#}\n", json!(map));
        atomic::write_file(disk, path, text.as_bytes(), SETTINGS_MODE)?;
    }
    Ok(format!("Wrote {} into {}.", names.join(", "), path.display()))
}

/// Puts the example scripts into a directory that has none.
fn write_scripts(ctx: &Ctx, dir: &Path) -> Result<Vec<String>, Error> {
    let there = SCRIPTS.iter().find(|(name, ..)| dir.join(name).exists());
    if let Some((name, ..)) = there {
        return Ok(vec![format!(
            "{} has a {name} already: no scripts were put there.",
            dir.display()
        )]);
    }
    let mut names = Vec::new();
    for (name, text, mode) in SCRIPTS {
        if !ctx.store.is_dry_run() {
            atomic::write_file(&**ctx.store.disk(), &dir.join(name), text.as_bytes(), mode)?;
        }
        names.push(name);
    }
    Ok(vec![format!(
        "Put {} into {}; config.sh names what to change.",
        names.join(", "),
        dir.display()
    )])
}
