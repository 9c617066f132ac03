//! What stands in many documents: instants, words of closed lists, maps in a given order.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use tpu_core::model::facts::{Class, ErrorKind, Origin, Phase, QueuedState, Source, TargetState};
use tpu_core::model::job::{LaunchMode, Status};
use tpu_core::model::notify::Occasion;
use tpu_core::model::queue::{QueuePolicy, QueueState};
use tpu_core::model::rules::Action;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_core::model::token::TokenRole;
use tpu_core::model::view::Shown;
use tpu_core::plan::board::Standing;
use tpu_ops::Kind;
use tpu_ops::front::disk_use::FilePurpose;
use tpu_ops::front::doctor::Severity;
use tpu_ops::front::uninstall::LeftoverKind;

/// An instant to the second.
#[derive(Clone, Copy, Debug)]
pub struct TimePart(pub Timestamp);

impl Serialize for TimePart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339())
    }
}

impl JsonSchema for TimePart {
    fn schema_name() -> Cow<'static, str> {
        "TimePart".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "format": "date-time", "description": "An instant, RFC 3339 in UTC",
        })
    }
}

/// A type whose values are known by words of a closed list.
pub(crate) trait Worded {
    /// The name of the list in the schema.
    const NAME: &'static str;
    /// What the schema says of it.
    const MEANING: &'static str;

    /// Every word.
    fn words() -> Vec<&'static str>;

    /// The word of this one.
    fn word(&self) -> &'static str;
}

/// A value that leaves as its word.
#[derive(Clone, Copy, Debug)]
pub struct Word<T>(pub T);

impl<T: Worded> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<T: Worded> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": T::MEANING, "enum": T::words() })
    }
}

/// Says for an enumeration of the model that its own list holds every word.
macro_rules! worded {
    ($($type:ident: $meaning:literal;)+) => {
        $(impl Worded for $type {
            const NAME: &'static str = stringify!($type);
            const MEANING: &'static str = $meaning;

            fn words() -> Vec<&'static str> {
                Self::ALL.into_iter().map(Self::as_str).collect()
            }

            fn word(&self) -> &'static str {
                self.as_str()
            }
        })+
    };
}

worded! {
    ErrorKind: "The kind of failure";
    Origin: "Who has to act on a failure";
    Action: "What is done by itself";
    Phase: "What a job is doing at the moment";
    Source: "The kind of fact that a statement rests on";
    TargetState: "The state of a target, reduced to what differs for us";
    QueuedState: "The state of a queued request, reduced to what differs for us";
    Pricing: "How a target is paid for";
    Standing: "How a target stands on the board";
    QueuePolicy: "Who of a queue may begin before whom";
    QueueState: "What a queue does";
    LaunchMode: "Whether the users' own script does the work, or a command does";
    Occasion: "What people can be told of";
    FilePurpose: "What files are";
    LeftoverKind: "What is removed when tpu is left";
    Severity: "Whether it is as it should be";
    TokenRole: "What the bearer of a token may do";
    Kind: "The kind of failure of a command; its exit code says the same";
}

impl Worded for Status {
    const NAME: &'static str = "Status";
    const MEANING: &'static str = "The status of a job as it is stored";

    fn words() -> Vec<&'static str> {
        Self::WORDS.to_vec()
    }

    fn word(&self) -> &'static str {
        // A record that has none yet belongs to a job that is about to start.
        Self::word(self).unwrap_or("starting")
    }
}

impl Worded for &Shown {
    const NAME: &'static str = "ShownStatus";
    const MEANING: &'static str = "The status of a job after all facts were heard";

    fn words() -> Vec<&'static str> {
        Shown::words().collect()
    }

    fn word(&self) -> &'static str {
        Shown::word(self)
    }
}

impl Worded for Class {
    const NAME: &'static str = "Class";
    const MEANING: &'static str = "What a text says of a job";

    fn words() -> Vec<&'static str> {
        let plain = [Self::Running, Self::Finished, Self::None];
        plain.into_iter().chain(ErrorKind::ALL.map(Self::Failed)).map(Self::as_str).collect()
    }

    fn word(&self) -> &'static str {
        self.as_str()
    }
}

/// Members whose names are not known beforehand, in this order.
#[derive(Clone, Debug)]
pub struct Members<V>(pub Vec<(String, V)>);

impl<V> FromIterator<(String, V)> for Members<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<V: Serialize> Serialize for Members<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<V: JsonSchema> JsonSchema for Members<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("MembersOf{}", V::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<V>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that leave are those that are stored.
    #[track_caller]
    fn are_stored_so<T: Serialize + Worded>(all: impl IntoIterator<Item = T>) {
        for one in all {
            assert_eq!(serde_json::to_value(&one).unwrap(), one.word(), "{}", T::NAME);
        }
    }

    #[test]
    fn a_word_leaves_as_it_is_stored() {
        are_stored_so(Phase::ALL);
        are_stored_so(Source::ALL);
        are_stored_so(TargetState::ALL);
        are_stored_so(QueuedState::ALL);
        are_stored_so(Pricing::ALL);
    }

    #[test]
    fn every_status_has_its_word_in_the_list() {
        let all = [
            Status::Unset,
            Status::Starting,
            Status::Running,
            Status::Finished,
            Status::Error(ErrorKind::Oom),
            Status::Killed(None),
            Status::Resumed(None),
            Status::Rerunned(None),
        ];
        assert!(all.iter().all(|status| Status::WORDS.contains(&Worded::word(status))));
    }
}
