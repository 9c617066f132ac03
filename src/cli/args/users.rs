//! The arguments of the commands about users and their settings.

use clap::Args;

/// `tpu add-user`.
#[derive(Debug, Args)]
pub struct AddUser {
    /// Name of the user; asked for when missing
    pub name: Option<String>,
    /// tmux session [default: the name]
    #[arg(long, value_name = "NAME")]
    pub tmux_name: Option<String>,
    /// Working directory 1
    #[arg(long, value_name = "PATH")]
    pub dir: Option<String>,
    /// us, cn, or an IANA name such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
}

/// `tpu get-settings`.
#[derive(Debug, Args)]
pub struct GetSettings {
    /// User
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
    /// Show where each value comes from
    #[arg(long)]
    pub origin: bool,
}

/// A setting and its value.
#[derive(Debug, Clone, Default, Args)]
pub struct SetSettings {
    /// The key
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    /// The value, which may look like anything
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// A user
    #[arg(value_name = "USER")]
    pub words: Vec<String>,
}
