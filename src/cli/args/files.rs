//! The arguments of what job files need around them: `convert`, `schema`, `secrets`.

use clap::{Args, Subcommand, ValueEnum};

use super::Deferred;

/// The commands about job files.
#[derive(Debug, Subcommand)]
pub enum JobFiles {
    /// Convert a job file of another tool
    #[command(
        after_help = "Examples:\n  tpu convert jobman config.yaml\n  tpu convert jobman config.yaml > train.yaml\n  tpu convert sbatch train.sh\n  tpu convert cloudmesh jobset.yaml"
    )]
    Convert(Deferred<Convert>),
    /// Print a format as a JSON Schema, for editors
    #[command(
        after_help = "Examples:\n  tpu schema jobfile\n  tpu schema jobfile > ~/.config/tpu/jobfile.schema.json\n\nThe first line of a file has an editor's YAML server look at it:\n  # yaml-language-server: $schema=FILE"
    )]
    Schema(Deferred<FormatSchema>),
    /// Set, list or remove secrets for job files
    #[command(
        after_help = "Examples:\n  tpu secrets\n  tpu secrets set WANDB_API_KEY\n  tpu secrets remove HF_TOKEN\n\nA value is typed where nobody sees it, or piped in (< FILE); no command\nshows it."
    )]
    Secrets(Deferred<SecretStore>),
    /// Show who is notified of what, or send a test
    #[command(
        after_help = "Examples:\n  tpu notify\n  tpu set-settings notify error,finished=me@example.org\n  tpu notify test\n  tpu notify test 2\n\nWho is told says the setting `notify` and, of one job, --notify or notify: in\nits file. The daemon delivers: what happens first at once, and what happens within\na minute behind it together. A value that nobody should read is named, as in\nhttps://HOST/${NAME}, and kept by `tpu secrets set NAME`."
    )]
    Notify(Deferred<Notify>),
}

/// `tpu notify`.
#[derive(Debug, Args)]
pub struct Notify {
    /// What to do [default: list them]
    #[command(subcommand)]
    pub step: Option<NotifyStep>,
}

/// What can be done about those who are told.
#[derive(Clone, Debug, Subcommand)]
pub enum NotifyStep {
    /// List them, with what waits for each and what went wrong last
    List {
        /// Whose
        #[arg(value_name = "USER")]
        words: Vec<String>,
    },
    /// Send a test to all of them, or to one
    Test {
        /// Number, kind or address of a receiver as in the list; and its user
        #[arg(value_name = "RECEIVER|USER")]
        words: Vec<String>,
    },
}

/// `tpu convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Whose file it is
    #[arg(value_enum)]
    pub from: ForeignJobFile,
    /// The file
    pub file: String,
}

/// Tools whose job files can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForeignJobFile {
    /// A config of JobMan for TPUs, version 2 or 3
    Jobman,
    /// A jobset or a queue of Cloudmesh
    Cloudmesh,
    /// A batch script of Slurm
    Sbatch,
}

/// `tpu schema`.
#[derive(Debug, Args)]
pub struct FormatSchema {
    /// Which format
    #[arg(value_enum)]
    pub of: FormatName,
}

/// Formats that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Job files
    Jobfile,
}

/// `tpu secrets`.
#[derive(Debug, Args)]
pub struct SecretStore {
    /// What to do [default: list them]
    #[command(subcommand)]
    pub step: Option<SecretsStep>,
}

/// What can be done with secrets.
#[derive(Clone, Debug, Subcommand)]
pub enum SecretsStep {
    /// List their names
    List,
    /// Keep one, from the standard input
    Set {
        /// The variable
        name: String,
    },
    /// Forget one
    Remove {
        /// The variable
        name: String,
    },
}
