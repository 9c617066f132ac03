//! Those who wait for a target, in the order in which they came (`waiting` in data.json).

use serde_json::{Value, json};

use super::ids::UserName;
use super::read::{self, DataError, Fields, Path};
use super::time::Timestamp;

/// A place in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Names it.
    pub id: String,
    /// For whom.
    pub user: UserName,
    /// The types, as typed.
    pub types: Vec<String>,
    /// Reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
    /// The process that waits, as an owner of leases: when it is dead the place is free.
    pub owner: String,
    /// Since when.
    pub since: Timestamp,
}

/// Reads the line.
pub(super) fn read(value: &Value, path: &Path<'_>) -> Result<Vec<Ticket>, DataError> {
    read::list(value, path, |value, path| {
        let fields = Fields::new(read::object(value, path)?, path);
        Ok(Ticket {
            id: fields.need("id", "text", read::text)?,
            user: UserName::new(fields.need("user", "a user", read::text)?),
            types: fields
                .with("types", |value, path| read::list(value, path, read::text))?
                .unwrap_or_default(),
            reclaimable: fields.with("reclaimable", read::flag)?,
            owner: fields.with("owner", read::text)?.unwrap_or_default(),
            since: fields.need("since", "an instant", read::instant)?,
        })
    })
}

/// The line, for the file.
pub(super) fn write(line: &[Ticket]) -> Value {
    line.iter()
        .map(|ticket| {
            json!({
                "id": ticket.id,
                "user": ticket.user,
                "types": ticket.types,
                "reclaimable": ticket.reclaimable,
                "owner": ticket.owner,
                "since": ticket.since.to_rfc3339(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back() {
        let line = vec![Ticket {
            id: "1f".to_owned(),
            user: UserName::from("alice"),
            types: vec!["v2".to_owned(), "v3+".to_owned()],
            reclaimable: Some(false),
            owner: "host:boot:1:2".to_owned(),
            since: Timestamp::from_second(1_795_161_731),
        }];
        assert_eq!(read(&write(&line), &Path::Root).unwrap(), line);
        assert_eq!(read(&Value::Null, &Path::Root).unwrap(), []);
    }
}
