//! The providers that are open. Several are, where the targets of one data file are of several: each is known
//! by its name, its project and the address of its API, and is opened anew when a setting changes how.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use tpu_core::model::data::Data;
use tpu_core::model::ids::TargetName;
use tpu_core::model::settings::{CloudAuth, Settings};
use tpu_core::model::target::{Machines, ProviderAt, Registration};
use tpu_engine::kinds::{Kinds, Within};
use tpu_engine::provider::Provider;

use crate::{Ctx, Error};

/// The providers that are at work.
#[derive(Default)]
pub struct Providers {
    /// This one, whatever the settings and the targets say.
    fixed: Option<Arc<dyn Provider>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was last known of the settings.
    settings: Option<Settings>,
    open: Vec<Open>,
    /// How many were opened.
    opened: u64,
}

/// One that is open.
struct Open {
    at: ProviderAt,
    how: How,
    provider: Numbered,
}

/// What settings say about every provider.
#[derive(PartialEq)]
struct How {
    auth: CloudAuth,
    node: Map<String, Value>,
}

/// A provider with a number: answers of another one say nothing about this one's targets.
#[derive(Clone)]
pub(crate) struct Numbered {
    /// Where it is asked.
    pub(crate) at: ProviderAt,
    /// The door to it.
    pub(crate) door: Arc<dyn Provider>,
    /// How many were opened before.
    pub(crate) number: u64,
}

impl Providers {
    /// This one, whatever the settings and the targets say.
    pub fn fixed(provider: Arc<dyn Provider>) -> Self {
        Self { fixed: Some(provider), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings about providers. As long as nobody knows them, what was known last holds.
    pub(super) fn settings(&self, now: Option<Settings>) -> Option<Settings> {
        let mut state = self.state();
        if now.is_some() {
            state.settings = now;
        }
        state.settings.clone()
    }

    /// The provider there, opened if none is or if the settings want it otherwise than until now.
    fn get(
        &self,
        at: &ProviderAt,
        settings: &Settings,
        open: impl FnOnce() -> Arc<dyn Provider>,
    ) -> Numbered {
        if let Some(fixed) = &self.fixed {
            return Numbered { at: at.clone(), door: Arc::clone(fixed), number: 0 };
        }
        let how = How { auth: settings.cloud_auth, node: settings.cloud_node.clone() };
        let mut state = self.state();
        if let Some(known) = state.open.iter().find(|known| known.at == *at && known.how == how) {
            return known.provider.clone();
        }
        let provider = Numbered { at: at.clone(), door: open(), number: state.opened };
        state.opened += 1;
        state.open.retain(|known| known.at != *at);
        state.open.push(Open { at: at.clone(), how, provider: provider.clone() });
        provider
    }
}

/// Which provider each target has.
#[derive(Clone, Debug)]
pub struct Places {
    kinds: Kinds,
    /// What the settings say.
    said: ProviderAt,
    /// The provider of targets whose registration names none.
    usual: ProviderAt,
    /// All targets have it.
    is_fixed: bool,
}

impl Places {
    /// The provider of targets whose registration names none.
    pub fn usual(&self) -> &ProviderAt {
        &self.usual
    }

    /// The kinds of target that there are.
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The provider that somebody names; what he leaves out is as the settings say.
    pub fn asked(&self, told: &ProviderAt) -> ProviderAt {
        self.kinds.at(ProviderAt {
            name: told.name.clone(),
            project: told.project.clone().or_else(|| self.said.project.clone()),
            endpoint: told.endpoint.clone().or_else(|| self.said.endpoint.clone()),
        })
    }

    /// The provider of a target.
    pub fn of(&self, data: &Data, name: &TargetName) -> Cow<'_, ProviderAt> {
        data.registration(name).map_or(Cow::Borrowed(&self.usual), |known| self.told(known))
    }

    /// The provider of a target that is so registered.
    pub fn told(&self, registration: &Registration) -> Cow<'_, ProviderAt> {
        let Registration { provider, project, endpoint, .. } = registration;
        let is_told = provider.is_some() || project.is_some() || endpoint.is_some();
        if self.is_fixed || !is_told {
            return Cow::Borrowed(&self.usual);
        }
        Cow::Owned(self.asked(&ProviderAt {
            name: provider.clone().unwrap_or_else(|| self.said.name.clone()),
            project: project.clone(),
            endpoint: endpoint.clone(),
        }))
    }

    /// Every provider that some target has, first the usual one.
    pub fn all(&self, data: &Data) -> Vec<ProviderAt> {
        let mut all = vec![self.usual.clone()];
        for (_, registration) in data.registry().registrations() {
            let at = self.told(registration);
            if registration.machines() == Machines::Provided && !all.contains(&at) {
                all.push(at.into_owned());
            }
        }
        all
    }
}

impl Ctx {
    /// Which provider each target has, as the settings are now.
    pub fn places(&self) -> Places {
        let settings = self.provider_settings();
        let fixed = self.providers.fixed.as_ref().map(|fixed| fixed.name());
        let is_fixed = fixed.is_some();
        let said = ProviderAt {
            name: fixed.unwrap_or(settings.cloud),
            project: settings.project,
            endpoint: settings.cloud_endpoint,
        };
        Places { kinds: self.kinds.clone(), usual: self.kinds.at(said.clone()), said, is_fixed }
    }

    /// A provider.
    pub fn provider(&self, at: &ProviderAt) -> Arc<dyn Provider> {
        self.numbered(at).door
    }

    /// The same with its number.
    pub(crate) fn numbered(&self, at: &ProviderAt) -> Numbered {
        let settings = self.provider_settings();
        let within = Within { effects: &self.effects, settings: &settings };
        self.providers.get(at, &settings, || self.kinds.open(at, within))
    }

    /// The provider of a target.
    pub(crate) fn provider_of(&self, name: &TargetName) -> Result<Arc<dyn Provider>, Error> {
        let data = self.data()?;
        Ok(self.provider(&self.places().of(&data, name)))
    }

    /// The provider of targets whose registration names none, in words.
    pub fn usual_provider(&self) -> String {
        self.places().usual().to_string()
    }
}
