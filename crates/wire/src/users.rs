//! Users, their directories and their config aliases.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::data::User;
use tpu_core::model::ids::UserName;

use super::words::Members;

/// The user who was added.
#[derive(Serialize, JsonSchema)]
pub struct AddedUserDocument<'a> {
    /// Name.
    pub user: &'a str,
}

/// The user who was removed.
#[derive(Serialize, JsonSchema)]
pub struct RemovedUserDocument<'a> {
    /// Name.
    pub user: &'a UserName,
    /// How many records went to the archive.
    pub archived: usize,
}

/// All users.
#[derive(Serialize, JsonSchema)]
pub struct UsersDocument<'a> {
    /// In the order of the data file.
    pub users: Vec<UserPart<'a>>,
}

/// A user.
#[derive(Serialize, JsonSchema)]
pub struct UserPart<'a> {
    /// Number.
    pub id: u32,
    /// Name.
    pub name: &'a UserName,
    /// tmux session.
    pub tmux_name: &'a str,
    /// How many jobs the data file has.
    pub jobs: usize,
}

impl<'a> From<&'a User> for UserPart<'a> {
    fn from(user: &'a User) -> Self {
        Self { id: user.id, name: &user.name, tmux_name: &user.tmux_name, jobs: user.jobs().len() }
    }
}

/// The directories of a user.
#[derive(Serialize, JsonSchema)]
pub struct DirsDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Path by slot.
    pub dirs: Members<&'a str>,
}

impl<'a> From<(&'a UserName, &'a [(u32, String)])> for DirsDocument<'a> {
    fn from((user, dirs): (&'a UserName, &'a [(u32, String)])) -> Self {
        Self { user, dirs: dirs.iter().map(|(slot, path)| (slot.to_string(), &**path)).collect() }
    }
}

/// One directory.
#[derive(Serialize, JsonSchema)]
pub struct DirDocument<'a> {
    /// Its path.
    pub path: &'a str,
}

/// A slot that is empty now.
#[derive(Serialize, JsonSchema)]
pub struct ForgottenDirDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Its number.
    pub slot: u32,
}

/// Two slots that have each other's directory now.
#[derive(Serialize, JsonSchema)]
pub struct SwappedDirsDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Their numbers.
    pub slots: [u32; 2],
}

/// An alias of a config key.
#[derive(Serialize, JsonSchema)]
pub struct ConfigAliasDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// The alias.
    pub alias: &'a str,
    /// The config key that it stands for.
    pub full: &'a str,
}

/// The config aliases of a user.
#[derive(Serialize, JsonSchema)]
pub struct ConfigAliasesDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Config key by alias.
    pub aliases: Members<&'a str>,
}

impl<'a> ConfigAliasesDocument<'a> {
    /// Those of a user.
    pub fn of(name: &'a UserName, user: &'a User) -> Self {
        let all = user.config_aliases.iter();
        let aliases = all.map(|(alias, full)| (alias.clone(), full.as_str())).collect();
        Self { user: name, aliases }
    }
}

/// An alias that stands for nothing any more.
#[derive(Serialize, JsonSchema)]
pub struct ForgottenConfigAliasDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// The alias.
    pub alias: &'a str,
}
