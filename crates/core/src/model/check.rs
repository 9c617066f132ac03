//! Whether a text is JSON of which all that is ever looked at can be read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Whether `text` is JSON of which all that is ever looked at can be read: the escapes of its texts mean
/// characters, and its numbers have values. A reader that skips what it does not need never learns that.
pub(crate) fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Readable { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// A value that is read and not kept.
#[derive(Clone, Copy)]
struct Readable {
    /// How many containers it stands in.
    depth: usize,
}

/// Lists of the original that are only carried along, and how many containers stand around the one that
/// holds them: the document has one, and each user (document, `users`).
const LOGS: [(usize, &str); 2] = [(0, "MONITOR_logs"), (2, "logs")];

impl Readable {
    fn below(self) -> Self {
        Self { depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Readable {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Readable {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(self.below())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(is_log) = map.next_key_seed(IsLog { depth: self.depth })? {
            if is_log {
                let IgnoredAny = map.next_value()?;
            } else {
                map.next_value_seed(self.below())?;
            }
        }
        Ok(())
    }
}

/// Whether a key is one of [`LOGS`].
struct IsLog {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for IsLog {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsLog {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(LOGS.iter().any(|(depth, log)| *depth == self.depth && *log == key))
    }
}
