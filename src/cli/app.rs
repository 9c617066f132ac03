//! What every command works with: the global flags, the environment, and the effects, opened when first
//! needed.

use std::cell::OnceCell;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::model::data::Data;
use crate::model::ids::UserName;
use crate::model::settings::{Layer, Origin, Settings};
use crate::ops::open::{Opening, open};
use crate::ops::{Ctx, Error, ctx::user_of};
use crate::sys::env::Env;

use super::args::Globals;

/// One run of the program.
pub(super) struct App {
    /// The flags that stand before or after any command.
    pub(super) global: Globals,
    /// What the process was started with.
    pub(super) env: Env,
    /// The command, for the journal and for those who wait for our lock.
    pub(super) name: String,
    ctx: OnceCell<Ctx>,
}

impl App {
    /// Wraps what was typed. Nothing is opened yet.
    pub(super) fn new(global: Globals, env: Env, name: &str) -> Self {
        Self { global, env, name: name.to_owned(), ctx: OnceCell::new() }
    }

    /// The effects. Opening them reads the settings files and nothing else.
    pub(super) fn ctx(&self) -> Result<&Ctx, Error> {
        if let Some(ctx) = self.ctx.get() {
            return Ok(ctx);
        }
        let ctx = self.open()?;
        Ok(self.ctx.get_or_init(|| ctx))
    }

    /// The effects, to be handed to the screen.
    pub(super) fn into_ctx(self) -> Result<Ctx, Error> {
        self.ctx()?;
        Ok(self.ctx.into_inner().expect("opened a line above"))
    }

    fn open(&self) -> Result<Ctx, Error> {
        let layers = self.layers()?;
        let refs: Vec<_> = layers.iter().map(|(origin, layer)| (origin.clone(), layer)).collect();
        let settings = Settings::merge(&refs)?;
        Ok(open(Opening {
            data: self.data_path(&settings)?,
            tmux_socket: self.global.tmux_socket.clone(),
            env: self.env.clone(),
            actor: self.name.clone(),
            tpu: Self::program(),
            layers,
            patterns: Self::config_dir().map(|dir| dir.join("patterns.toml")),
        }))
    }

    /// Effects that share nothing with the person's own: data, state, settings and tmux server below `root`,
    /// and a simulated cloud. For the demo.
    pub(super) fn apart(&self, root: &Path) -> Result<Ctx, Error> {
        let mut env = self.env.clone();
        env.vars.retain(|name, _| name.to_str().is_none_or(|name| !name.starts_with("TPU_")));
        let config = root.join("config");
        env.vars.insert("TMUX_TMPDIR".into(), root.as_os_str().to_owned());
        env.vars.insert("XDG_CONFIG_HOME".into(), config.as_os_str().to_owned());
        env.vars.insert("TPU_CLOUD".into(), "sim".into());
        root.clone_into(&mut env.cwd);
        let origin = Origin::Environment("TPU_CLOUD".to_owned());
        let mut layer = Layer::default();
        layer.set("cloud", "sim", &origin)?;
        Ok(open(Opening {
            data: root.join("data.json"),
            tmux_socket: Some("demo".to_owned()),
            env,
            actor: self.name.clone(),
            tpu: Self::program(),
            layers: vec![(origin, layer)],
            patterns: Some(config.join("tpu").join("patterns.toml")),
        }))
    }

    /// This program, for launchers to call back.
    fn program() -> PathBuf {
        std::env::current_exe().unwrap_or_else(|_| PathBuf::from("tpu"))
    }

    /// The data file: `--data` or `$TPU_DATA`, settings, else the user's data directory.
    fn data_path(&self, settings: &Settings) -> Result<PathBuf, Error> {
        let path = match (&self.global.data, &settings.data) {
            (Some(path), _) => path.clone(),
            (None, Some(path)) => PathBuf::from(path),
            (None, None) => match directories::ProjectDirs::from("", "", "tpu") {
                Some(dirs) => dirs.data_dir().join("data.json"),
                None => {
                    return Err(Error::usage("there is no home directory to keep data.json in")
                        .hint("name a file: --data FILE or TPU_DATA=FILE"));
                }
            },
        };
        Ok(if path.is_absolute() { path } else { self.env.cwd.join(path) })
    }

    /// The machine's settings file, `--settings`, and what the environment sets.
    fn layers(&self) -> Result<Vec<(Origin, Layer)>, Error> {
        let mut layers = Vec::new();
        if let Some(dir) = Self::config_dir() {
            let path = dir.join("settings.json");
            let origin = Origin::File(path.display().to_string());
            layers.extend(read_layer(&path, &origin, true)?);
        }
        if let Some(path) = &self.global.settings {
            let path = self.env.cwd.join(path);
            let origin = Origin::Given(path.display().to_string());
            layers.extend(read_layer(&path, &origin, false)?);
        }
        for (variable, key) in [
            ("TPU_USER", "user"),
            ("TPU_CLOUD", "cloud"),
            ("TPU_PROJECT", "project"),
            ("TPU_CLOUD_ENDPOINT", "cloud_endpoint"),
        ] {
            if let Some(value) = self.env.non_empty(variable) {
                let origin = Origin::Environment(variable.to_owned());
                let mut layer = Layer::default();
                layer.set(key, value, &origin)?;
                layers.push((origin, layer));
            }
        }
        if let Some(cloud) = &self.global.cloud {
            let origin = Origin::Flag("--cloud".to_owned());
            let mut layer = Layer::default();
            layer.set("cloud", cloud, &origin)?;
            layers.push((origin, layer));
        }
        Ok(layers)
    }

    /// `<config dir>/tpu`.
    pub(super) fn config_dir() -> Option<PathBuf> {
        directories::ProjectDirs::from("", "", "tpu").map(|dirs| dirs.config_dir().to_owned())
    }

    /// Whose jobs, when no word said so: `--user`, `$TPU_USER`, settings, the account's own name, the
    /// only user there is.
    pub(super) fn user(&self, data: &Data, word: Option<UserName>) -> Result<UserName, Error> {
        let settings = self.ctx()?.settings(None)?;
        let flag = self.global.user.as_deref().map(UserName::from);
        if let (Some(word), Some(flag)) = (&word, &flag)
            && word != flag
        {
            return Err(Error::usage(format!("two users are named: {word} and --user {flag}"))
                .hint("name one"));
        }
        if let Some(name) = word.or(flag).or(settings.user.as_deref().map(UserName::from)) {
            return user_of(data, &name).map(|user| user.name.clone());
        }
        let account = ["USER", "LOGNAME"].iter().find_map(|name| self.env.non_empty(name));
        if let Some(user) = account.and_then(|name| data.user(&UserName::from(name))) {
            return Ok(user.name.clone());
        }
        match data.users() {
            [] => Err(Error::not_found("there is no user yet").hint("add one: tpu add-user NAME")),
            [only] => Ok(only.name.clone()),
            several => {
                let names: Vec<&str> = several.iter().map(|user| user.name.as_str()).collect();
                Err(Error::usage(format!("whose? There are {}", names.join(", ")))
                    .hint("add the name to the command, or set it once: export TPU_USER=NAME"))
            }
        }
    }

    /// Whether a person can be asked.
    pub(super) fn may_ask(&self) -> bool {
        !self.global.no_input
            && !self.global.json
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal()
    }

    /// Whether results go to a person's terminal.
    pub(super) fn on_terminal(&self) -> bool {
        !self.global.json && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }

    /// Asks for a yes; without a person to ask, or with `-y`, the answer is yes.
    pub(super) fn confirm(&self, question: &str) -> Result<bool, Error> {
        if self.global.yes || !self.may_ask() {
            return Ok(true);
        }
        let answer = Self::ask(&format!("{question} [y/N] "))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks for a line.
    pub(super) fn ask(question: &str) -> Result<String, Error> {
        use std::io::{BufRead as _, Write as _};
        let mut stderr = std::io::stderr();
        let shown = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
        let mut line = String::new();
        let read = shown.and_then(|()| std::io::stdin().lock().read_line(&mut line));
        match read {
            Ok(0) | Err(_) => Err(Error::new(crate::ops::Kind::Interrupted, "no answer").hint("run it where it can ask, or give everything on the command line (`tpu help COMMAND`)")),
            Ok(_) => Ok(line.trim_end_matches('\n').to_owned()),
        }
    }
}

/// Set once a person or the system asks this process to end, with one of these signals.
pub(super) fn asked_to_end(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&stop))
            .map_err(|e| Error::failed(format!("cannot listen for signals: {e}")))?;
    }
    Ok(stop)
}

/// Reads a settings file; one that need not be there is no layer if it is not.
fn read_layer(
    path: &Path,
    origin: &Origin,
    optional: bool,
) -> Result<Option<(Origin, Layer)>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((origin.clone(), Layer::parse(&text, origin)?))),
        Err(e) if optional && e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => {
            Err(Error::usage(format!("cannot read the settings file {}: {e}", path.display()))
                .hint("check --settings and $TPU_SETTINGS"))
        }
    }
}
