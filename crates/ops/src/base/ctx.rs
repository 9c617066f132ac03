//! What a use case is given: effects, settings, patterns, and the kinds of target with their providers.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tpu_core::classify::Classifier;
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::settings::{Layer, SettingOrigin, Settings};
use tpu_core::model::target_limit::TargetLimit;
use tpu_core::model::time::Zone;
use tpu_engine::kinds::Kinds;
use tpu_system::effects::{Effects, Onlooker, Warnings};
use tpu_system::store::Tx;

use super::ancestors::Ancestors;
use super::error::{Error, did_you_mean};
use super::insisted::Insisted;
use super::providers::Providers;
use super::seen_lately::SeenLately;
use super::setting_layers::Layers;

/// A use case's surroundings: its [`Effects`], and the settings, patterns and kinds of target that hold for it.
#[derive(Clone)]
pub struct Ctx {
    /// The doors to the world, and who acts.
    pub effects: Effects,
    /// Settings above those of data.json: the machine's file, `--settings`, environment, flags.
    pub layers: Arc<Layers>,
    /// The lab's own patterns, laid over the built-in ones if the file is there.
    pub patterns: Option<PathBuf>,
    /// The directory in which the account keeps its secrets; none where it has no home.
    pub secrets: Option<PathBuf>,
    /// The classifier, prepared when it is first needed.
    pub classifier: Arc<OnceLock<Option<Classifier>>>,
    /// The kinds of target that there are.
    pub kinds: Kinds,
    /// The providers of targets, each opened when it is first needed.
    pub providers: Arc<Providers>,
    /// What whoever acts has read, and insists on.
    pub insisted: Arc<Insisted>,
    /// What was found in the archive of the lineages that are looked at.
    pub ancestors: Arc<Ancestors>,
    /// What was gathered last of what was seen of targets.
    pub seen_lately: Arc<SeenLately>,
    /// The targets on which whoever acts may start anything.
    pub only_on: TargetLimit,
}

/// Use cases name a door as what lies below `ops` does: `ctx.store`, `ctx.clock`.
impl Deref for Ctx {
    type Target = Effects;

    fn deref(&self) -> &Effects {
        &self.effects
    }
}

impl Ctx {
    /// The same for one who acts through this process: `actor` is named in the journal, warnings are that one's own,
    /// and no secret is taken from what this process was started with.
    #[must_use]
    pub fn on_behalf(&self, actor: &str) -> Self {
        let mut effects = self.effects.clone();
        actor.clone_into(&mut effects.actor);
        effects.warnings = Warnings::default();
        effects.onlooker = Onlooker::default();
        effects.env = effects.env.without_secrets();
        let only_on = TargetLimit::default();
        Self { effects, insisted: Arc::default(), only_on, ..self.clone() }
    }

    /// The same for one who is limited to some targets.
    #[must_use]
    pub fn only_on(self, limit: &TargetLimit) -> Self {
        Self { only_on: limit.clone(), ..self }
    }

    /// The same where nothing is changed: what is written goes to a copy.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Self { effects: self.effects.clone().dry_run(), ..self.clone() }
    }

    /// The same where this user is at work, by the request.
    pub fn in_the_place_of(self, user: &UserName) -> Result<Self, Error> {
        let mut stack = (*self.layers.now()).clone();
        let origin = SettingOrigin::Environment("the request".to_owned());
        let mut layer = Layer::default();
        layer.set("user", user.as_str(), &origin)?;
        stack.push((origin, layer));
        Ok(Self { layers: Arc::new(Layers::fixed(stack)), ..self })
    }

    /// Applies `change` to what the state file holds now, in one transaction; an error changes nothing.
    pub fn transact<T>(
        &self,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.effects.transact(|tx| self.insisted.change(tx, change))
    }

    /// Insists from now on that a job is as it is now when it is changed: whoever came in between has it refused.
    pub fn insist_on(&self, id: &JobId) -> Result<(), Error> {
        self.insisted.on(&*self.data()?, id);
        Ok(())
    }

    /// The classifier with the lab's patterns. A file with mistakes is not used, and each is a warning.
    pub fn classifier(&self) -> &Classifier {
        let own = self.classifier.get_or_init(|| {
            let path = self.patterns.as_ref()?;
            let bytes = self.store.disk().read(path).ok()?.bytes;
            let text = String::from_utf8_lossy(&bytes);
            let (classifier, errors) = Classifier::with_overlay(&text, &path.display().to_string());
            if let Some(first) = errors.first() {
                self.warn([format!("{first}; only the built-in patterns are used")]);
                return None;
            }
            Some(classifier)
        });
        own.as_ref().unwrap_or_else(|| Classifier::builtin())
    }

    /// Takes anew what was set since the last time; to be called by whoever runs for long. What cannot be
    /// understood leaves the settings as they were.
    pub fn refresh_settings(&self) -> Result<(), Error> {
        self.layers.refresh()
    }

    /// The settings about providers: the machine's; where those name none, the settings of the first user who
    /// names one. Where they cannot be read now, those that were read last.
    pub fn provider_settings(&self) -> Settings {
        let known = self.providers.settings(self.known_provider_settings());
        known.unwrap_or_else(|| self.settings(None).unwrap_or_default())
    }

    /// The same; `None` where a person may have said something that cannot be read now.
    fn known_provider_settings(&self) -> Option<Settings> {
        let machine = self.settings(None).ok()?;
        if !machine.cloud.is_none() {
            return Some(machine);
        }
        let data = self.data().ok()?;
        let users: Vec<_> = data.users().iter().map(|user| self.settings(Some(user))).collect();
        let mut said = users.iter().flatten().filter(|said| !said.cloud.is_none());
        match said.next() {
            Some(said) => Some(said.clone()),
            None => users.iter().all(Result::is_ok).then_some(machine),
        }
    }

    /// The settings that hold for a user, or for nobody in particular.
    pub fn settings(&self, user: Option<&User>) -> Result<Settings, Error> {
        let users = user.map(|u| (SettingOrigin::User(u.name.as_str().to_owned()), &u.settings));
        let layers = self.layers.now();
        let layers = layers.iter().map(|(origin, layer)| (origin.clone(), layer));
        let merged = Settings::merge(&users.into_iter().chain(layers).collect::<Vec<_>>())?;
        Ok(self.kinds.checked(merged)?)
    }

    /// The zone in which times are shown to a person who has these settings.
    pub fn zone(&self, settings: &Settings) -> Zone {
        let machine = self.env.local_zone();
        Zone::named(&settings.time_zone, machine.clone()).unwrap_or_else(|| Zone::local(machine))
    }

    /// Reads the state file.
    pub fn data(&self) -> Result<Arc<Data>, Error> {
        Ok(self.effects.data()?)
    }
}

/// The user, or an error that names the users there are.
pub fn user_of<'a>(data: &'a Data, name: &UserName) -> Result<&'a User, Error> {
    data.user(name).ok_or_else(|| {
        let known: Vec<&str> = data.users().iter().map(|user| user.name.as_str()).collect();
        let near = did_you_mean(name.as_str(), known.iter().copied());
        let hint = match (near, known.is_empty()) {
            (Some(near), _) => near,
            (None, true) => "type this in the directory of your code: tpu init".to_owned(),
            (None, false) => format!("known users: {}", known.join(", ")),
        };
        Error::not_found(format!("no user '{name}'")).hint(hint)
    })
}

/// What somebody does next whose code is not known yet.
pub fn how_to_begin(user: &UserName) -> String {
    format!("in the directory of your code: tpu init --name {user}")
}

/// The job, or an error that says which windows the user has.
pub fn job_of<'a>(data: &'a Data, id: &JobId) -> Result<&'a Job, Error> {
    let user = user_of(data, &id.user)?;
    user.job(id.window).ok_or_else(|| no_job(data, user, id))
}

/// The job in a transaction's data, or the same error.
pub fn job_mut<'a>(data: &'a mut Data, id: &JobId) -> Result<&'a mut Job, Error> {
    job_of(data, id)?;
    Ok(data.job_mut(id).expect("found a line above"))
}

fn no_job(data: &Data, user: &User, id: &JobId) -> Error {
    let windows: Vec<String> =
        user.jobs().iter().rev().take(8).map(|job| job.windows_id.to_string()).collect();
    let others = data.users().iter().filter(|other| other.job(id.window).is_some());
    let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
    let hint = if let [only] = others.as_slice() {
        format!("{only} has one: --user {only}")
    } else if !others.is_empty() {
        format!("{} have one: add --user NAME", others.join(", "))
    } else if windows.is_empty() {
        format!("{} has no jobs; start one: tpu run TARGET {}", user.name, user.name)
    } else {
        format!("newest jobs of {}: {}", user.name, windows.join(", "))
    };
    Error::not_found(format!("{} has no job {}", id.user, id.window)).hint(hint)
}
