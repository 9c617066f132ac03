//! What lies over the settings of data.json. It is taken anew while a program runs: the daemon and the screen see a
//! setting that was made after their start.

use std::sync::{Arc, Mutex, PoisonError};

use tpu_core::model::settings::{Layer, SettingOrigin};

use crate::Error;

/// Settings with where they come from, from the weakest to the strongest.
pub(crate) type Stack = Vec<(SettingOrigin, Layer)>;

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
            let is_there = |origin: &SettingOrigin| layers.iter().any(|(other, _)| other == origin);
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
                return Err(Error::state(format!("{gone} is gone; its last values are used"))
                    .hint("write {} into it to set nothing"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_holds_as_it_was_and_the_others_are_read_on() {
        let (gone, other) =
            (SettingOrigin::File("gone".to_owned()), SettingOrigin::File("other".to_owned()));
        let layer = |length: u32| {
            Layer::parse(&format!("{{\"show_length\": {length}}}"), &SettingOrigin::BuiltIn)
                .unwrap()
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
