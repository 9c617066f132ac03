//! `notify:`: who is told of a job.

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::notify::{self, Receiver};

use super::values::bad;

const EXAMPLE: &str = "notify: {on: [error, finished], mail: me@example.org}";

/// The receivers, each wrong one where it stands.
pub(super) fn read(value: &Yaml, field: &str) -> Result<Vec<Receiver>, BadFile> {
    let all = match &value.value {
        YamlValue::List(all) => all.as_slice(),
        YamlValue::Blank | YamlValue::Text(_) | YamlValue::Map(_) => std::slice::from_ref(value),
    };
    let mut receivers = Vec::new();
    for one in all {
        let is_said = match &one.value {
            YamlValue::Map(members) => {
                members.iter().all(|(_, of)| !matches!(of.value, YamlValue::Blank))
            }
            YamlValue::Text(text) => !text.contains('\0'),
            YamlValue::Blank | YamlValue::List(_) => false,
        };
        if !is_said {
            return Err(bad(one, field, "it is no receiver", format!("as in {EXAMPLE}")));
        }
        let read = notify::receivers(&one.plain());
        receivers.extend(read.map_err(|wrong| bad(one, field, wrong.what, wrong.hint))?);
    }
    Ok(receivers)
}
