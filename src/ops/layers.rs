//! What lies over the settings of data.json, and the control plane that follows from all of them. Both are
//! taken anew while a program runs: MONITOR and the screen see a setting that was made after their start.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::model::settings::{CloudAuth, CloudKind, Layer, Origin, Settings};
use crate::provider::Provider;

use super::Error;

/// Settings with where they come from, from the weakest to the strongest.
pub type Stack = Vec<(Origin, Layer)>;

/// Reads them all once more.
type Reading = Box<dyn Fn() -> Result<Stack, Error> + Send + Sync>;

/// Settings above those of data.json: the machine's file, `--settings`, environment, flags.
pub struct Layers {
    now: Mutex<Arc<Stack>>,
    read: Option<Reading>,
}

impl Layers {
    /// Layers that stay as they are.
    pub fn fixed(layers: Stack) -> Self {
        Self { now: Mutex::new(Arc::new(layers)), read: None }
    }

    /// Layers that were read by `read`, and can be again.
    pub fn read_by(
        read: impl Fn() -> Result<Stack, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let fixed = Self::fixed(read()?);
        Ok(Self { read: Some(Box::new(read)), ..fixed })
    }

    /// As they are.
    pub fn now(&self) -> Arc<Stack> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads them anew. What cannot be read or understood leaves them as they were, and so does a file that was
    /// there and is gone: whoever saves one may take it away for a moment, and a disk may be missing.
    pub(super) fn refresh(&self) -> Result<(), Error> {
        if let Some(read) = &self.read {
            let mut layers = read()?;
            let is_there = |origin: &Origin| layers.iter().any(|(other, _)| other == origin);
            // Each in its place: what comes later wins.
            let gone: Vec<_> = self
                .now()
                .iter()
                .enumerate()
                .filter(|(_, (o, _))| !is_there(o))
                .map(|(at, layer)| (at, layer.clone()))
                .collect();
            let first = gone.first().map(|(_, (origin, _))| origin.clone());
            for (at, layer) in gone {
                layers.insert(at.min(layers.len()), layer);
            }
            *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(layers);
            if let Some(gone) = first {
                return Err(Error::state(format!("{gone} is gone, and holds as it was read last"))
                    .hint("write {} into it to set nothing"));
            }
        }
        Ok(())
    }
}

/// Which control plane the settings ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    kind: CloudKind,
    endpoint: Option<String>,
    project: Option<String>,
    auth: CloudAuth,
    node: Map<String, Value>,
}

impl Wanted {
    pub(super) fn by(settings: &Settings) -> Self {
        Self {
            kind: settings.cloud,
            endpoint: settings.cloud_endpoint.clone(),
            project: settings.project.clone(),
            auth: settings.cloud_auth,
            node: settings.cloud_node.clone(),
        }
    }

    /// For people: `google, project lab`.
    pub(super) fn in_words(&self) -> String {
        let mut words = self.kind.as_str().to_owned();
        // The others know neither.
        if self.kind == CloudKind::Google {
            words += &self.project.as_ref().map(|p| format!(", project {p}")).unwrap_or_default();
            words += &self.endpoint.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        }
        words
    }
}

/// The control plane that is at work.
#[derive(Default)]
pub struct ControlPlane(Mutex<Option<Open>>);

/// One that is open.
struct Open {
    /// For which settings; `None`: it is this one, whatever they say.
    wanted: Option<(Wanted, Settings)>,
    cloud: Arc<dyn Provider>,
    /// How many were open before.
    number: u64,
}

impl ControlPlane {
    /// This one, whatever the settings say.
    pub fn fixed(cloud: Arc<dyn Provider>) -> Self {
        Self(Mutex::new(Some(Open { wanted: None, cloud, number: 0 })))
    }

    /// The settings that the open one was opened for.
    pub(super) fn settings(&self) -> Option<Settings> {
        let door = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        door.as_ref()?.wanted.as_ref().map(|(_, settings)| settings.clone())
    }

    /// The one that these settings want, opened if it is another one than until now, and its number. As long as
    /// nobody knows what is wanted, the open one stays.
    pub(super) fn get(
        &self,
        settings: impl FnOnce() -> Option<Settings>,
        open: impl FnOnce(&Settings) -> Arc<dyn Provider>,
    ) -> (Arc<dyn Provider>, u64) {
        let mut door = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Open { wanted: None, cloud, number }) = &*door {
            return (Arc::clone(cloud), *number);
        }
        let settings = settings();
        let number = match (&*door, &settings) {
            (Some(known), None) => return (Arc::clone(&known.cloud), known.number),
            (Some(Open { wanted: Some((known, _)), cloud, number }), Some(settings))
                if *known == Wanted::by(settings) =>
            {
                return (Arc::clone(cloud), *number);
            }
            (Some(other), Some(_)) => other.number + 1,
            (None, _) => 0,
        };
        let Some(settings) = settings else { return (open(&Settings::default()), u64::MAX) };
        let cloud = open(&settings);
        let wanted = Some((Wanted::by(&settings), settings));
        *door = Some(Open { wanted, cloud: Arc::clone(&cloud), number });
        (cloud, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_holds_as_it_was_and_the_others_are_read_on() {
        let (gone, other) = (Origin::File("gone".to_owned()), Origin::File("other".to_owned()));
        let layer = |length: u32| {
            Layer::parse(&format!("{{\"show_length\": {length}}}"), &Origin::BuiltIn).unwrap()
        };
        let first = vec![(gone.clone(), layer(1)), (other.clone(), layer(2))];
        let later = vec![(other.clone(), layer(3))];
        let rounds = Mutex::new(vec![later, first]);
        let read = move || Ok(rounds.lock().unwrap().pop().unwrap());
        let layers = Layers::read_by(read).unwrap();
        let told = layers.refresh().unwrap_err();
        assert!(told.message.contains("gone"), "{told}");
        assert_eq!(*layers.now(), [(gone, layer(1)), (other, layer(3))]);
    }
}
