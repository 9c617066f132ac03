//! The command line as others borrow it: a server whose routes answer in its words, as those of Cloudmesh do.

use serde_json::{Map, Value};

use crate::{Ctx, Error};
use tpu_core::model::ids::UserName;

/// The command line.
pub trait LentCommands: Send + Sync {
    /// Words that no name of a job may be, as they are commands.
    fn words(&self) -> Vec<String>;

    /// Carries a command out in these surroundings, for this user, if one is meant. Nobody is asked: what is done is what
    /// was said.
    fn run(&self, ctx: Ctx, user: Option<&UserName>, words: &[String]) -> Result<Told, Error>;
}

/// What a command has said.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// For people.
    pub text: String,
    /// For programs: the members of its document.
    pub members: Map<String, Value>,
    /// What people should know beside it.
    pub notes: Vec<String>,
    /// Its exit code: of several things some may have failed.
    pub code: u8,
}
