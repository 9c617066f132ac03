//! What every command works with: the global flags, the environment, and the effects, opened when first
//! needed.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_core::model::settings::Settings;
use tpu_core::model::time::Zone;
use tpu_ops::base::setting_layers::Layers;
use tpu_ops::base::watch;
use tpu_ops::front::open::{Opening, open};
use tpu_ops::waiting::settings_files::SettingsPlaces;
use tpu_ops::waiting::whose::{About, Purpose, Requester};
use tpu_ops::{Ctx, Error, Kind};
use tpu_system::effects::{Effects, Onlooker, Warnings};
use tpu_system::sys::env::Env;

use super::args::{Globals, kinds};
use super::console;
use super::whose;

/// One command, and what it works with.
pub(super) struct App {
    /// The flags that stand before or after any command.
    pub(super) global: Globals,
    /// What the process was started with.
    pub(super) env: Env,
    /// The command, for the journal and for those who wait for our lock.
    pub(super) name: String,
    /// The words behind the program's name, as they were typed.
    pub(super) typed: Vec<OsString>,
    /// `<config dir>/tpu` of the account that runs this process: the machine's settings and the lab's patterns.
    pub(super) config_dir: Option<PathBuf>,
    /// Whom a person has named when asked.
    asked_user: OnceCell<UserName>,
    /// What a person should know in the end, whichever command finds it.
    pub(super) warnings: Warnings,
    /// Who sees how far a command is.
    pub(super) onlooker: Onlooker,
    ctx: OnceCell<Ctx>,
}

impl App {
    /// Wraps what was typed: the command `name` among `typed`. Nothing is opened yet.
    pub(super) fn new(global: Globals, env: Env, name: String, typed: Vec<OsString>) -> Self {
        let config_dir = directories::ProjectDirs::from("", "", "tpu");
        Self {
            global,
            env,
            name,
            typed,
            config_dir: config_dir.map(|dirs| dirs.config_dir().to_owned()),
            asked_user: OnceCell::new(),
            warnings: Warnings::default(),
            onlooker: Onlooker::default(),
            ctx: OnceCell::new(),
        }
    }

    /// The same where nobody is asked: what is done is as its person has said.
    pub(super) fn agreeing(mut self) -> Self {
        self.global.yes = true;
        self
    }

    /// The same with the state file in this directory.
    pub(super) fn in_directory(mut self, dir: &Path) -> Self {
        self.global.data = Some(self.env.cwd.join(dir).join("data.json"));
        self
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
        let mut ctx = self.ctx.into_inner().expect("opened a line above");
        // What draws the terminal itself says there how far it is.
        ctx.effects.onlooker = Onlooker::default();
        Ok(ctx)
    }

    /// The effects, for the daemon, which acts in its own name.
    pub(super) fn into_daemon(self) -> Result<Arc<Ctx>, Error> {
        let mut ctx = self.into_ctx()?;
        watch::ACTOR.clone_into(&mut ctx.effects.actor);
        Ok(Arc::new(ctx))
    }

    fn open(&self) -> Result<Ctx, Error> {
        let places = self.settings_places();
        let layers = Layers::read_by(move || places.read())?;
        let stack = layers.now();
        let refs: Vec<_> = stack.iter().map(|(origin, layer)| (origin.clone(), layer)).collect();
        let settings = Settings::merge(&refs)?;
        let ctx = open(Opening {
            data: self.data_path(&settings)?,
            tmux_socket: self.global.tmux_socket.clone(),
            env: self.env.clone(),
            actor: self.name.clone(),
            tpu: Self::program(),
            layers: Vec::new(),
            patterns: self.config_dir.as_ref().map(|dir| dir.join("patterns.toml")),
            secrets: self.config_dir.as_ref().map(|dir| dir.join("secrets")),
            kinds: kinds().clone(),
        });
        kinds().checked(settings)?;
        // The process ends with it: to take the document that was read apart, record by record, is work for nothing.
        std::mem::forget(Arc::clone(&ctx.store));
        let warnings = self.warnings.clone();
        let effects = Effects { warnings, onlooker: self.onlooker.clone(), ..ctx.effects };
        let effects = if self.global.dry_run { effects.dry_run() } else { effects };
        Ok(Ctx { effects, layers: Arc::new(layers), ..ctx })
    }

    /// What `--verbose` says: which file, server, cloud and user hold.
    pub(super) fn circumstances(&self) -> Vec<String> {
        let Ok(ctx) = self.ctx() else { return Vec::new() };
        let socket = ctx.tmux_socket.as_deref().unwrap_or("default");
        let mut said = vec![
            format!("data file: {}", ctx.store.paths().data().display()),
            format!("tmux server: {socket}"),
        ];
        if let Ok(data) = ctx.data() {
            let user = self.known_user(&data).map_or("nobody".to_owned(), |name| name.to_string());
            said.push(format!("user, where none is named: {user}"));
        }
        if let Ok(settings) = ctx.settings(None) {
            said.push(format!("cloud: {}", settings.cloud.as_str()));
        }
        said
    }

    /// This program, for launchers to call back.
    pub(super) fn program() -> PathBuf {
        std::env::current_exe().unwrap_or_else(|_| PathBuf::from("tpu"))
    }

    /// Whether somebody has said which the data file is.
    pub(super) fn names_data(&self) -> Result<bool, Error> {
        Ok(self.global.data.is_some() || self.ctx()?.settings(None)?.data.is_some())
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
    fn settings_places(&self) -> SettingsPlaces {
        SettingsPlaces {
            machine: self.config_dir.as_ref().map(|dir| dir.join("settings.json")),
            named: self.global.settings.as_ref().map(|path| self.env.cwd.join(path)),
            env: self.env.clone(),
            cloud: self.global.cloud.clone(),
        }
    }

    /// The global flags that a process which this one starts is to have: what is not in the environment.
    pub(super) fn flags(&self) -> Vec<String> {
        self.global.to_flags(&self.env.cwd)
    }

    /// Whoever typed the command.
    pub(super) fn requester(&self) -> Result<Requester<'_>, Error> {
        Ok(Requester {
            ctx: self.ctx()?,
            named: self.global.user.as_deref().map(UserName::from),
            ask: Box::new(|data| self.ask_user(data)),
        })
    }

    /// Asks the person for a user, once in a command.
    fn ask_user(&self, data: &Data) -> Result<UserName, Error> {
        if let Some(answered) = self.asked_user.get() {
            return Ok(answered.clone());
        }
        let user = whose::ask(data, &self.typed, self.may_ask())?;
        Ok(self.asked_user.get_or_init(|| user).clone())
    }

    /// The user whom a command that changes something is about.
    pub(super) fn user(&self, data: &Data, word: Option<UserName>) -> Result<UserName, Error> {
        self.requester()?.user(data, &About { word, purpose: Purpose::Change, jobs: &[] })
    }

    /// The user who is at work here, if anything says who.
    pub(super) fn known_user(&self, data: &Data) -> Option<UserName> {
        self.requester().ok()?.user_named(data, None).ok().flatten()
    }

    /// The zone in which times are shown: of whoever works here by the setting `user`, else of the user whom the command is
    /// about, else of the one whom the account names.
    pub(super) fn zone(&self, data: &Data, about: Option<&UserName>) -> Result<Zone, Error> {
        let person = self.requester()?.reader(data, about);
        let ctx = self.ctx()?;
        let settings = ctx.settings(person.as_ref().and_then(|name| data.user(name)))?;
        Ok(ctx.zone(&settings))
    }

    /// Whether a person can be asked.
    pub(super) fn may_ask(&self) -> bool {
        !self.global.no_input && !self.global.json && console::may_ask()
    }

    /// Whether results go to a person's terminal.
    pub(super) fn on_terminal(&self) -> bool {
        !self.global.json && console::is_terminal()
    }

    /// Columns of the terminal that reads the results, else of `$COLUMNS`; `None` if nobody says.
    pub(super) fn width(&self) -> Option<usize> {
        let said = || self.env.non_empty("COLUMNS").and_then(|columns| columns.parse().ok());
        console::columns().or_else(said).filter(|columns| *columns > 0)
    }

    /// Whether the user is the one at work here. Where nothing says who that is, everybody whom a command
    /// names is.
    pub(super) fn is_own(&self, user: &UserName) -> Result<bool, Error> {
        let data = self.ctx()?.data()?;
        let at_work = self.requester()?.user_at_work(&data).ok().flatten();
        Ok(at_work.is_none_or(|at_work| at_work == *user))
    }

    /// Whether [`App::confirm`] puts its question: `-y` and a dry run have answered it.
    pub(super) fn asks(&self) -> bool {
        !self.global.yes && !self.global.dry_run
    }

    /// Asks for a yes, unless `-y` or a dry run has given it. Fails where nobody can be asked, and says what
    /// the question is.
    pub(super) fn confirm(&self, question: &str) -> Result<bool, Error> {
        if !self.asks() {
            return Ok(true);
        }
        if !self.may_ask() {
            return Err(Error::usage(format!("nobody can be asked: {question}"))
                .hint("add -y to answer yes"));
        }
        let answer = console::ask(&format!("{question} [y/N] "))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Goes on only with a yes. A no is an error: what was not done, and how to do it.
    pub(super) fn agree(&self, question: &str, undone: Undone<'_>) -> Result<(), Error> {
        if self.confirm(question)? {
            return Ok(());
        }
        Err(Error::new(Kind::Interrupted, undone.what).hint(undone.hint))
    }

    /// Says how far a long command is; nobody who reads JSON is told.
    pub(super) fn tell(&self, line: &str) {
        if !self.global.json {
            // Whoever closed it does not want to know.
            drop(console::err(format!("{}\n", tpu_core::text::escape(line)).as_bytes()));
        }
    }
}

/// What is said of a no, with [`App::agree`].
#[derive(Clone, Copy)]
pub(super) struct Undone<'a> {
    /// What was not done.
    pub(super) what: &'a str,
    /// How to do it.
    pub(super) hint: &'a str,
}

/// What is said of a no that has left everything as it was.
pub(super) const UNDONE: Undone<'_> = Undone { what: "nothing was done", hint: "`-y` answers yes" };

/// Set once a person or the system asks this process to end, with one of these signals.
pub(super) fn asked_to_end(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&stop))
            .map_err(|e| Error::failed(format!("cannot listen for signals: {e}")))?;
    }
    Ok(stop)
}
