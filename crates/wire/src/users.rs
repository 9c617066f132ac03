//! Users, their directories and their config aliases.

use tpu_core::model::data::User;
use tpu_core::model::ids::UserName;

use super::document::documents;
use super::words::Members;

documents! {
    /// The user who was added.
    pub struct AddedUserDocument<'a> {
        /// Name.
        user: &'a str,
    }

    /// The user who was removed.
    pub struct RemovedUserDocument<'a> {
        /// Name.
        user: &'a UserName,
        /// How many records went to the archive.
        archived: usize,
    }

    /// All users.
    pub struct UsersDocument<'a> {
        /// In the order of the data file.
        users: Vec<UserPart<'a>>,
    }

    /// A user.
    pub struct UserPart<'a> from user: &'a User {
        /// Number.
        id: u32,
        /// Name.
        name: &'a UserName,
        /// tmux session.
        tmux_name: &'a str,
        /// How many jobs the data file has.
        jobs: usize = user.jobs().len(),
    }

    /// The directories of a user.
    pub struct DirsDocument<'a> from (user, dirs): (&'a UserName, &'a [(u32, String)]) {
        /// Whose.
        user: &'a UserName = user,
        /// Path by slot.
        dirs: Members<&'a str> =
            dirs.iter().map(|(slot, path)| (slot.to_string(), &**path)).collect(),
    }

    /// One directory.
    pub struct DirDocument<'a> {
        /// Its path.
        path: &'a str,
    }

    /// A slot that is empty now.
    pub struct ForgottenDirDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// Its number.
        slot: u32,
    }

    /// Two slots that have each other's directory now.
    pub struct SwappedDirsDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// Their numbers.
        slots: [u32; 2],
    }

    /// An alias of a config key.
    pub struct ConfigAliasDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// The alias.
        alias: &'a str,
        /// The config key that it stands for.
        full: &'a str,
    }

    /// The config aliases of a user.
    pub struct ConfigAliasesDocument<'a> from (owner, name): (&'a User, &'a UserName) {
        /// Whose.
        user: &'a UserName = name,
        /// Config key by alias.
        aliases: Members<&'a str> =
            owner.config_aliases.iter().map(|(alias, full)| (alias.clone(), &**full)).collect(),
    }

    /// An alias that stands for nothing any more.
    pub struct ForgottenConfigAliasDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// The alias.
        alias: &'a str,
    }
}
