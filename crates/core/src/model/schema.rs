//! JSON Schemas of the names: each leaves the program as what it wraps.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::ids::{JobNumber, QueueName, TargetName, UserName};

/// Says that a type of the model leaves as what it wraps.
macro_rules! plain {
    ($($type:ident: $plain:ty;)+) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$plain>::json_schema(generator)
            }
        })+
    };
}

plain! {
    UserName: String;
    QueueName: String;
    TargetName: String;
    JobNumber: u32;
}
