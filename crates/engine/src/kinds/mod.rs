//! **The registry of the kinds of target**: what each may say of itself, who its provider is, the way to its
//! workers, and what runs its jobs.
//!
//! The word of a kind is stored with a target, and [`Kinds::of`] is the only place where it is resolved. Whatever
//! pure code and the screen must know of a target are values on it, filled here; nobody else asks which kind it
//! is. To add one: a crate that implements [`KindOfTarget`], and its line in the root's `src/built_in.rs`.

pub mod local;
pub mod ssh;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::provider::Provider;
use crate::provider::none::NoProvider;
use crate::runner::window::WindowRunner;
use crate::runner::{RunError, Runner};
use tpu_core::model::facts::Room;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::EngineRun;
use tpu_core::model::options::KindOptions;
use tpu_core::model::settings::{Settings, SettingsError};
use tpu_core::model::target::{
    Machines, ProviderAt, ProviderName, Registration, Target, TargetKind,
};
use tpu_core::model::time::Timestamp;
use tpu_system::effects::Effects;
use tpu_system::remote::Remote;
use tpu_system::remote::ssh::{SshConfig, sockets};
use tpu_system::sys::env::Env;

/// A kind of target.
pub trait KindOfTarget: Send + Sync {
    /// The word that is stored with a target.
    fn word(&self) -> TargetKind;

    /// What it is, for people: `machines with addresses of their own`.
    fn in_words(&self) -> &'static str;

    /// What a person may say of a target of this kind, beside its name.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Refuses a registration that makes no sense, and fills in what it leaves out: also from the environment of
    /// whoever asks for it, which nobody has any more where the target is used.
    fn register(&self, _registration: &mut Registration, _env: &Env) -> Result<(), Refusal> {
        Ok(())
    }

    /// What may be wrong with a target that was just registered, as far as whoever runs its jobs says so at once.
    fn doubts(&self, _registration: &Registration, _effects: &Effects) -> Vec<String> {
        Vec::new()
    }

    /// The providers that know its targets. None where nobody watches them.
    fn providers(&self) -> Vec<ProviderName> {
        Vec::new()
    }

    /// Where one of its providers is asked: what this provider has no use for is left out.
    fn at(&self, wanted: ProviderAt) -> ProviderAt {
        wanted
    }

    /// Opens one of its providers. Nothing is asked yet.
    fn open(&self, _at: &ProviderAt, _within: Within<'_>) -> Option<Arc<dyn Provider>> {
        None
    }

    /// The way to the workers of a target.
    fn workers(&self, asked: &Destination<'_>, within: Within<'_>) -> Result<Door, Refusal>;

    /// What a person may say of a target of this kind alone: options of `tpu register`, kept with the target.
    fn own_options(&self) -> &'static [KindOption] {
        &[]
    }

    /// What a person may ask of one job on such a target: options of `tpu run`, kept with the job.
    fn job_options(&self) -> &'static [KindOption] {
        &[]
    }

    /// Whether the code of a job of which this is said is copied to where it runs.
    fn copies_code(&self, _said: &KindOptions) -> bool {
        true
    }

    /// What is kept of what a person says of a job. What lies where he says it, as a file does, is taken in: a job may begin
    /// elsewhere, and later. Paths begin in `dir`; without one there is nothing that he could mean by a path.
    fn kept(&self, said: KindOptions, _dir: Option<&Path>) -> Result<KindOptions, RunError> {
        Ok(said)
    }

    /// The target of this kind that is meant where this is said of a job and none is named; `None` where nothing of it is
    /// about this kind.
    fn usual_target(
        &self,
        _said: &KindOptions,
        _effects: &Effects,
    ) -> Option<Result<TargetName, RunError>> {
        None
    }

    /// Where its jobs find their code and their logs, as far as that was said of a target.
    fn roots(&self, _registration: &Registration) -> OwnRoots {
        OwnRoots::default()
    }

    /// What runs its jobs: windows, which are handed in with all that they need, or an engine that is opened
    /// instead, for a target that was registered so. Nothing is asked yet.
    fn runner<'a>(
        &self,
        _registration: Option<&Registration>,
        _effects: &'a Effects,
        windows: WindowRunner<'a>,
    ) -> Box<dyn Runner + 'a> {
        Box::new(windows)
    }

    /// The targets that there are where this is said of one, each as it is to be registered: what `tpu targets
    /// import --kind` makes known.
    fn found(
        &self,
        _said: &Registration,
        _effects: &Effects,
    ) -> Result<Vec<(TargetName, Registration)>, RunError> {
        Err(RunError::refused(
            format!("{} are in no list that could be imported", self.in_words()),
            format!("register each: tpu register NAME --kind {}", self.word()),
        ))
    }

    /// What engines of this kind say of the room of these targets, with as few questions as it takes: of each, by its
    /// place among them, as soon as that is known. Whoever is told later than after three seconds does not hear it.
    fn rooms(
        &self,
        _targets: &[Registration],
        _effects: &Effects,
        _said: &mut dyn FnMut(usize, Result<Room, RunError>),
    ) {
    }

    /// The engine that has a run, by what its handle says. `None` for a kind whose jobs run in windows. Nothing is
    /// asked yet.
    fn engine<'a>(&self, _run: &EngineRun, _effects: &'a Effects) -> Option<Box<dyn Runner + 'a>> {
        None
    }

    /// The account of this machine that a run belongs to, where an engine of this kind tells accounts apart: the daemons of
    /// others leave it alone.
    fn account(&self, _run: &EngineRun) -> Option<u32> {
        None
    }

    /// A number that changes when an engine of this kind has said by itself that something has happened. Asked
    /// several times a second.
    fn wakes(&self) -> u64 {
        0
    }

    /// Commands that the program has as long as it has this kind.
    fn commands(&self) -> &'static [KindCommand] {
        &[]
    }

    /// What is in a list that this kind keeps; `None` where it keeps no such list.
    fn listed(
        &self,
        _list: KindList<'_>,
        _effects: &Effects,
    ) -> Option<Result<KindAnswer, RunError>> {
        None
    }

    /// Whether this machine is the login node of such a target: many share it, and nothing is to stay there in the
    /// background unasked.
    fn is_at_login_node(&self, _registration: Option<&Registration>, _env: &Env) -> bool {
        false
    }

    /// Whether its jobs see the disk that this program sees.
    fn is_disk_ours(&self) -> bool {
        false
    }
}

/// An option that a kind adds to the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindOption {
    /// As typed behind `--`, and as stored.
    pub name: &'static str,
    /// What stands for its value in the help.
    pub value: &'static str,
    /// What it says, for the help.
    pub help: &'static str,
    /// Whether it may be said several times.
    pub is_many: bool,
    /// Its letter, as in `-i`.
    pub short: Option<char>,
    /// What a file of jobs calls it, where that is not its name.
    pub in_file: Option<&'static str>,
    /// Whether its value may be a map in a file of jobs. What was said is the JSON of it then.
    pub takes_map: bool,
    /// Whether the help leaves it out: another command says it.
    pub is_hidden: bool,
}

impl KindOption {
    /// One that is said once, and by its name alone.
    pub const fn new(name: &'static str, value: &'static str, help: &'static str) -> Self {
        let (is_many, takes_map, is_hidden) = (false, false, false);
        Self { name, value, help, is_many, short: None, in_file: None, takes_map, is_hidden }
    }
}

/// A command that a kind brings along.
#[derive(Debug)]
pub struct KindCommand {
    /// Its definition. A link to the program by one of its aliases is this command.
    pub command: fn() -> clap::Command,
    /// The words of a line as `command` has them, and as many: what else may be typed for it.
    pub spelled: fn(Vec<OsString>) -> Vec<OsString>,
    /// Whether something is lost by what was said.
    pub destroys: fn(&clap::ArgMatches) -> bool,
    /// Runs it.
    pub run: fn(&Effects, &clap::ArgMatches) -> Result<KindAnswer, RunError>,
}

/// A list that a kind may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindList<'a> {
    /// What jobs may ask for by name.
    Flavors,
    /// The images of its registry with this in their names.
    Images(&'a str),
}

/// What a command of a kind has come to.
#[derive(Debug, Default)]
pub struct KindAnswer {
    /// For people.
    pub text: String,
    /// For scripts.
    pub answer: serde_json::Value,
    /// A command of the program's own that does it, and says so itself where there is no text.
    pub then: Vec<OsString>,
}

/// Directories of a target's own, by absolute paths on the disk that its jobs see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRoots {
    /// Below it code is staged.
    pub stage: Option<String>,
    /// Below it logs and checkpoints lie.
    pub log: Option<String>,
}

/// What holds where a kind is asked.
#[derive(Clone, Copy)]
pub struct Within<'a> {
    /// The doors to the world.
    pub effects: &'a Effects,
    /// The settings about providers.
    pub settings: &'a Settings,
}

/// The target to whose workers a way is wanted.
pub struct Destination<'a> {
    /// Its name.
    pub name: &'a TargetName,
    /// What the data file says of it.
    pub target: Option<&'a Target>,
    /// What somebody has told of it.
    pub registration: Option<&'a Registration>,
    /// Whose it is.
    pub provider: &'a ProviderAt,
    /// When its machines were created, where its provider says so; asked only by whoever needs it.
    pub created_at: &'a dyn Fn() -> Option<Timestamp>,
}

impl Destination<'_> {
    /// OpenSSH, as the registration of the target wants it, else as the settings do. `alias` stands for its
    /// workers where addresses are given to new machines again.
    pub fn by_ssh(&self, within: Within<'_>, alias: Option<String>) -> SshConfig {
        let Within { effects, settings } = within;
        let told = |of: fn(&Registration) -> &Option<String>| {
            self.registration.and_then(|known| of(known).clone())
        };
        SshConfig {
            user: told(|known| &known.ssh_user).or_else(|| settings.ssh_user.clone()),
            key: told(|known| &known.ssh_key).or_else(|| settings.ssh_key.clone()),
            options: settings.ssh_options.clone().unwrap_or_default(),
            sockets: effects.env.non_empty("TPU_SSH_DIR").map_or_else(
                || sockets(effects.env.non_empty("XDG_RUNTIME_DIR"), effects.env.uid),
                Into::into,
            ),
            known_hosts: effects.store.paths().known_hosts(),
            alias,
        }
    }
}

/// The way to the workers of one target.
pub struct Door {
    /// The door.
    pub remote: Box<dyn Remote>,
    /// Whether they are other machines, with programs and disks of their own.
    pub is_elsewhere: bool,
    /// Whether each is reached by its address.
    pub is_by_address: bool,
}

/// Why a kind does not do what was asked, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    /// What cannot be done.
    pub what: String,
    /// What can be done instead.
    pub hint: String,
}

impl Refusal {
    /// A refusal and its way out.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// A word of the data file that no kind here has: another version of this program may know it. A target with
/// it is shown, and nothing is done with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its kind is '{word}', which this version of tpu does not know")]
pub struct UnknownKind {
    /// The word.
    pub word: TargetKind,
}

/// The kinds of target that there are.
#[derive(Clone)]
pub struct Kinds {
    all: Vec<Arc<dyn KindOfTarget>>,
    /// The kind of a target of which nobody has said one.
    usual: Arc<dyn KindOfTarget>,
}

impl std::fmt::Debug for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all().map(KindOfTarget::word)).finish()
    }
}

impl Kinds {
    /// These kinds. A target of which nobody has said a kind is of the default one ([`TargetKind::default`]), which is among
    /// them.
    pub fn new(all: Vec<Arc<dyn KindOfTarget>>) -> Self {
        let of_default = all.iter().position(|kind| kind.word() == TargetKind::default());
        let usual = Arc::clone(&all[of_default.unwrap_or(0)]);
        Self { all, usual }
    }

    /// With one more, in the place of one that has its word.
    #[must_use]
    pub fn and(mut self, kind: Arc<dyn KindOfTarget>) -> Self {
        self.all.retain(|other| other.word() != kind.word());
        self.all.push(kind);
        self
    }

    /// Every kind.
    pub fn all(&self) -> impl Iterator<Item = &dyn KindOfTarget> {
        self.all.iter().map(|kind| &**kind)
    }

    /// The kind of a target of which only the name is known.
    pub fn usual(&self) -> &dyn KindOfTarget {
        &*self.usual
    }

    /// The kinds of which a target can be registered: those that have options for it.
    pub fn to_register(&self) -> impl Iterator<Item = &dyn KindOfTarget> {
        self.all().filter(|kind| !kind.options().is_empty() || !kind.own_options().is_empty())
    }

    /// The kind of a target.
    pub fn of(&self, target: &Target) -> Result<&dyn KindOfTarget, UnknownKind> {
        self.named(&Self::word(&target.kind, target.machines))
    }

    /// The kind that a registration is of.
    pub fn of_registration(
        &self,
        registration: &Registration,
    ) -> Result<&dyn KindOfTarget, UnknownKind> {
        self.named(&Self::word(&registration.kind, registration.machines()))
    }

    /// Addresses were once registered under the word of machines that a provider makes.
    fn word(word: &TargetKind, machines: Machines) -> TargetKind {
        match machines {
            Machines::Fixed if *word == TargetKind::default() => TargetKind::SSH,
            Machines::Fixed | Machines::Provided | Machines::Here | Machines::Engine => {
                word.clone()
            }
        }
    }

    fn named(&self, word: &TargetKind) -> Result<&dyn KindOfTarget, UnknownKind> {
        self.all()
            .find(|kind| kind.word() == *word)
            .ok_or_else(|| UnknownKind { word: word.clone() })
    }

    /// The engine that has a run. `None` where nobody here knows its kind.
    pub fn engine<'a>(
        &self,
        run: &EngineRun,
        effects: &'a Effects,
    ) -> Option<Box<dyn Runner + 'a>> {
        self.named(&run.kind).ok()?.engine(run, effects)
    }

    /// The account of this machine that a run belongs to: see [`KindOfTarget::account`].
    pub fn account(&self, run: &EngineRun) -> Option<u32> {
        self.named(&run.kind).ok()?.account(run)
    }

    /// What is kept of what a person says of a job: see [`KindOfTarget::kept`]. Of which kind its target is may not be known
    /// yet; no kind knows another one's options.
    pub fn kept(&self, said: KindOptions, dir: Option<&Path>) -> Result<KindOptions, RunError> {
        self.all().try_fold(said, |said, kind| kind.kept(said, dir))
    }

    /// Every provider, and first that there is none.
    pub fn providers(&self) -> Vec<ProviderName> {
        let theirs = self.all().flat_map(KindOfTarget::providers);
        std::iter::once(ProviderName::NONE).chain(theirs).collect()
    }

    /// Settings whose provider is one of those.
    pub fn checked(&self, settings: Settings) -> Result<Settings, SettingsError> {
        settings.with_provider_of(&self.providers())
    }

    /// Where a provider is asked.
    pub fn at(&self, wanted: ProviderAt) -> ProviderAt {
        match self.with_provider(&wanted.name) {
            Some(kind) => kind.at(wanted),
            None => ProviderAt { name: wanted.name, ..ProviderAt::default() },
        }
    }

    /// Opens a provider. One that nobody knows watches nothing.
    pub fn open(&self, at: &ProviderAt, within: Within<'_>) -> Arc<dyn Provider> {
        let opened = self.with_provider(&at.name).and_then(|kind| kind.open(at, within));
        opened.unwrap_or_else(|| Arc::new(NoProvider))
    }

    fn with_provider(&self, name: &ProviderName) -> Option<&dyn KindOfTarget> {
        self.all().find(|kind| kind.providers().contains(name))
    }
}
