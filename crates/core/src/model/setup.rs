//! What a job sets up where it runs, before its command: modules, in order. Each looks first, and brings about what is
//! not so. What a module does is compiled in `jobfile::modules`; here is what was said of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read::{self, DataError, Json, Path};
use super::words::words;

/// How a job sets up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetUpHow {
    /// What is not so is brought about.
    #[default]
    Auto,
    /// Everything is brought about, also what is so already.
    Force,
    /// Nothing is looked at: it is said to be so.
    Skip,
}

words! {
    /// The spelling on the command line and in data.json.
    SetUpHow {
        Auto: "auto",
        Force: "force",
        Skip: "skip",
    }
}

impl SetUpHow {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.as_str() == text)
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        read::one_of(value, path, Self::parse, "auto, force or skip")
    }
}

/// A module of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Module {
    /// Keys and entries of the account's ssh.
    SshKeys(SshKeys),
    /// A bucket of Cloud Storage as a directory.
    Gcsfuse(Gcsfuse),
    /// A directory of a server.
    Nfs(Nfs),
    /// A container for the command.
    Docker(Docker),
    /// An environment of conda for the command.
    Conda(Conda),
    /// A virtual environment of Python for the command.
    Venv(Venv),
    /// A login at Weights & Biases.
    Wandb(Wandb),
    /// What its writer says himself.
    Step(OwnStep),
    /// Those of a recipe of the lab, by its name.
    Recipe(String),
}

/// Keys and entries of ssh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshKeys {
    /// In order.
    pub identities: Vec<Identity>,
}

/// A pair of keys, and what the account's configuration says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The private key, a file of this machine; `~/` is our home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// The public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Lines for `~/.ssh/config` there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_entry: Option<String>,
}

/// Buckets as directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gcsfuse {
    /// Each bucket with its place.
    pub mounts: Vec<BucketMount>,
}

/// A bucket as a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketMount {
    /// The bucket's name, without `gs://`.
    pub bucket: String,
    /// The directory; `~/` is the account's home there.
    pub mount: String,
    /// What is said of its cache: options of gcsfuse and their values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
}

/// A directory of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nfs {
    /// `SERVER:/PATH`.
    pub export: String,
    /// The directory.
    pub mount: String,
    /// Options of mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Docker {
    /// The image.
    pub image: String,
    /// `OUTSIDE:INSIDE`, or one path that is the same on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Where the command runs inside; without one where it runs outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// More words of `docker run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// An environment of conda.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conda {
    /// Its name.
    pub name: String,
    /// What it is made of: a file of this machine. Without one it has to be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A virtual environment of Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Venv {
    /// Its name, which is a directory's below `~/.venvs`.
    pub name: String,
    /// The Python of which it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The packages: a file of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<String>,
}

/// A login at Weights & Biases, with a key that is a secret of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wandb {
    /// The variable that holds the key.
    pub key: String,
    /// The server, where it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Wandb {
    /// The server of whoever names none.
    pub const HOST: &str = "api.wandb.ai";
}

/// A step that its writer says himself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnStep {
    /// Its name.
    pub name: String,
    /// Shell text that ends with 0 where it is so already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Shell text that brings it about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Files that are put there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StepFile>,
    /// On which workers; all without a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<Vec<u32>>,
    /// Seconds that it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// Whether it is done once on each machine, however often the job begins there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_once: bool,
}

/// A file that a step puts onto a worker, whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Here; `~/` is our home.
    pub from: String,
    /// There; `~/` is the account's home.
    pub to: String,
    /// Its rights.
    pub mode: u32,
}

impl Module {
    /// The word by which people know it, also that of its logs.
    pub fn name(&self) -> &str {
        match self {
            Self::SshKeys(_) => "ssh_keys",
            Self::Gcsfuse(_) => "gcsfuse",
            Self::Nfs(_) => "nfs",
            Self::Docker(_) => "docker",
            Self::Conda(_) => "conda",
            Self::Venv(_) => "venv",
            Self::Wandb(_) => "wandb",
            Self::Step(step) => &step.name,
            Self::Recipe(name) => name,
        }
    }

    /// Whether the command runs within it.
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Docker(_) | Self::Conda(_) | Self::Venv(_))
    }
}

impl fmt::Display for Module {
    /// In a line of a plan: `docker repo/image:tag`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SshKeys(keys) => {
                f.write_str(&crate::text::counted(keys.identities.len(), "ssh key"))
            }
            Self::Gcsfuse(buckets) => {
                let all = buckets.mounts.iter().map(|of| format!("{} at {}", of.bucket, of.mount));
                write!(f, "gcsfuse {}", all.collect::<Vec<_>>().join(", "))
            }
            Self::Nfs(of) => write!(f, "nfs {} at {}", of.export, of.mount),
            Self::Docker(of) => write!(f, "docker {}", of.image),
            Self::Conda(of) => write!(f, "conda {}", of.name),
            Self::Venv(of) => write!(f, "venv {}", of.name),
            Self::Wandb(of) => write!(f, "wandb by {}", of.key),
            Self::Step(of) => f.write_str(&of.name),
            Self::Recipe(name) => write!(f, "recipe {name}"),
        }
    }
}

/// Reads modules that were [written](write_modules()).
pub(super) fn read_modules(value: Json<'_>, path: &Path<'_>) -> Result<Vec<Module>, DataError> {
    serde_json::from_value(value.to_value())
        .map_err(|_| path.error("modules of a set-up, as this version knows them", Some(value)))
}

/// Modules for the file; `None` without any.
pub(super) fn write_modules(modules: &[Module]) -> Option<Value> {
    let written = serde_json::to_value(modules).ok();
    written.filter(|_| !modules.is_empty())
}
