//! The arguments of what is served over HTTP: `serve`, `token`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use tpu_core::model::target_limit::TargetLimit;
use tpu_core::model::token::TokenRole;

use super::Deferred;

/// The commands about HTTP.
#[derive(Debug, Subcommand)]
pub enum Http {
    /// Serve the page for browsers and the HTTP API
    #[command(
        after_help = "Examples:\n  tpu serve\n  tpu serve --listen 127.0.0.1:8000\n  tpu serve --open\n  tpu serve --socket ~/tpu.sock\n  tpu serve --listen 0.0.0.0:7960 --cert chain.pem --key key.pem\n\nA port takes a token with each request (`tpu token create`), a socket its owner\nalone. /docs says what there is."
    )]
    Serve(Deferred<ServeCommand>),
    /// Create, list or revoke tokens of the API
    #[command(
        after_help = "Examples:\n  tpu token create phone --role viewer --expires 30d\n  TOKEN=$(tpu token create notebook --role operator --user alice)\n  tpu token list\n  tpu token revoke phone\n\nThe token alone goes to the standard output, once; no command shows it again.\n--user names whose jobs it is about: an operator acts on theirs, a viewer sees\ntheirs alone. An admin acts on all."
    )]
    Token(Deferred<TokenArgs>),
}

/// `tpu serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeCommand {
    /// Where, and as what
    #[command(flatten)]
    pub how: ServeArgs,
    /// Print a link that logs a browser in, once, and open it where there is a browser
    #[arg(long, conflicts_with = "socket")]
    pub open: bool,
}

/// Where to answer over HTTP, and as what.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Address and port; port 0 takes any that is free [default: 127.0.0.1:7960]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "socket")]
    pub listen: Option<SocketAddr>,
    /// A socket in the file system instead, for its owner alone
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Speak TLS: the chain of certificates, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// A proxy in front of the server speaks TLS
    #[arg(long)]
    pub behind_proxy: bool,
    /// Another host name under which the server is called
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
}

impl ServeArgs {
    /// The same as words that another process is started with, whose directory may be another one than `here`.
    pub fn to_flags(&self, here: &Path) -> Vec<String> {
        let Self { listen, socket, cert, key, behind_proxy, host } = self;
        let file = |path: &Option<PathBuf>| {
            path.as_ref().map(|path| here.join(path).display().to_string())
        };
        let said = [
            ("--listen", listen.map(|listen| listen.to_string())),
            ("--socket", file(socket)),
            ("--cert", file(cert)),
            ("--key", file(key)),
        ];
        let said = said.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let hosts = host.iter().map(|name| ["--host".to_owned(), name.clone()]);
        let proxy = behind_proxy.then(|| "--behind-proxy".to_owned());
        said.chain(hosts).flatten().chain(proxy).collect()
    }
}

/// `tpu token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do [default: list them]
    #[command(subcommand)]
    pub step: Option<TokenStep>,
}

/// What can be done with tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenStep {
    /// Create a token and print it; jobs that it starts have the rights of the account that runs the server
    Create(TokenCreateArgs),
    /// List the names of the secrets
    List,
    /// Take one back
    Revoke {
        /// What it is called
        name: String,
    },
}

/// `tpu token create`.
#[derive(Clone, Debug, Args)]
pub struct TokenCreateArgs {
    /// Name of the token; the journal shows it
    pub name: String,
    /// What it may do: viewer, operator or admin
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: TokenRole,
    /// Also let it create, reserve and release targets. With patterns of names or types, as in 'v4-*': only these targets,
    /// and its jobs run on no others
    #[arg(long, value_name = "PATTERNS", num_args = 0..=1, value_parser = targets)]
    pub targets: Option<Option<TargetLimit>>,
    /// How long it is valid, as in 30d [default: for ever]
    #[arg(long, value_name = "SPAN")]
    pub expires: Option<String>,
}

fn targets(patterns: &str) -> Result<TargetLimit, String> {
    TargetLimit::parse(patterns).map_err(|error| error.to_string())
}

fn role(word: &str) -> Result<TokenRole, String> {
    TokenRole::parse(word)
        .ok_or_else(|| format!("one of {}", TokenRole::ALL.map(TokenRole::as_str).join(", ")))
}
