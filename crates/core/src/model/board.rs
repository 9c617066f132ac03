//! What people wrote about targets: who uses which, notes, reservations (`board` in data.json).
//!
//! It is a claim and no fact: what live jobs and the control plane say outranks it (`plan::board`).

use serde_json::{Map, Value, json};

use super::ids::{TargetName, UserName};
use super::read::{self, DataError, Fields, Json, Path};
use super::time::Timestamp;
use super::words::words;

/// A status as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Anybody may take it.
    Free,
    /// Somebody computes on it.
    Running,
    /// Somebody keeps it.
    Reserved,
    /// Somebody keeps it, and something went wrong there.
    Error,
    /// It is not there any more.
    Gone,
}

words! {
    /// The spelling in data.json, CSV and JSON.
    Written {
        Free: "free",
        Running: "running",
        Reserved: "reserved",
        Error: "error",
        Gone: "gone",
    }
}

impl Written {
    /// Reads a spelling, those of the original's spreadsheet as well.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "闲的" => Some(Self::Free),
            "没了!" | "没了！" => Some(Self::Gone),
            "reserved(error)" => Some(Self::Error),
            word => Self::ALL.into_iter().find(|status| status.as_str() == word),
        }
    }
}

/// A target is kept for somebody, until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// For whom.
    pub user: UserName,
    /// The end.
    pub until: Timestamp,
}

/// What people wrote about one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Status.
    pub status: Option<Written>,
    /// Who uses it; need not be a user of ours.
    pub user: Option<String>,
    /// Notes.
    pub notes: String,
    /// The reservation, which may be over.
    pub reservation: Option<Reservation>,
}

impl Entry {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reservation, if it is not over and its user is still there.
    pub fn reserved(
        &self,
        now: Timestamp,
        is_user: impl Fn(&UserName) -> bool,
    ) -> Option<&Reservation> {
        self.reservation.as_ref().filter(|kept| kept.until > now && is_user(&kept.user))
    }
}

/// All entries, by full name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    entries: Vec<(TargetName, Entry)>,
}

impl Board {
    /// The entry of a target; an empty one if nobody wrote anything.
    pub fn entry(&self, name: &TargetName) -> Entry {
        let found = self.entries.iter().find(|(known, _)| known == name);
        found.map(|(_, entry)| entry.clone()).unwrap_or_default()
    }

    /// Writes the entry of a target; an empty one is none.
    pub fn set(&mut self, name: &TargetName, entry: Entry) {
        match self.entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = entry,
            None => self.entries.push((name.clone(), entry)),
        }
        self.entries.retain(|(_, entry)| !entry.is_empty());
    }

    /// The targets that something is written about.
    pub fn names(&self) -> impl Iterator<Item = &TargetName> {
        self.entries.iter().map(|(name, _)| name)
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let key = |key: &str| Some(TargetName::from(key));
        Ok(Self { entries: read::pairs(value, path, key, read_entry)? })
    }

    /// The value for the file, laid over `old`, which keeps what is not ours.
    pub(super) fn write(&self, old: Option<&Value>) -> Value {
        let entries = self.entries.iter().map(|(name, entry)| {
            let was = old.and_then(|old| old.get(name.as_str()));
            (name.as_str().to_owned(), super::json::overlay(was, write_entry(entry)))
        });
        Value::Object(entries.collect::<Map<_, _>>())
    }
}

fn read_entry(value: Json<'_>, path: &Path<'_>) -> Result<Entry, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Entry {
        status: fields.with("status", |value, path| {
            read::one_of(value, path, Written::parse, "free, running, reserved, error or gone")
        })?,
        user: fields.with("user", read::text)?,
        notes: fields.with("notes", read::text)?.unwrap_or_default(),
        reservation: fields.with("reservation", |value, path| {
            let fields = Fields::new(value, path)?;
            Ok(Reservation {
                user: UserName::new(fields.need("user", "a user", read::text)?),
                until: fields.need("until", "an instant", read::instant)?,
            })
        })?,
    })
}

fn write_entry(entry: &Entry) -> Value {
    json!({
        "status": entry.status.map(Written::as_str),
        "user": entry.user,
        "notes": entry.notes,
        "reservation": entry.reservation.as_ref().map(|kept| {
            json!({ "user": kept.user, "until": kept.until.to_rfc3339() })
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back_and_what_is_not_ours_stays() {
        let value = json!({ "t": { "status": "reserved(error)", "ours_later": 1, "user": "bob" } });
        let mut board = Board::read(Json::new(&value.to_string()), &Path::Root).unwrap();
        let name = TargetName::from("t");
        let mut entry = board.entry(&name);
        assert_eq!((entry.status, entry.user.as_deref()), (Some(Written::Error), Some("bob")));
        entry.notes = "disk full".to_owned();
        entry.reservation = Some(Reservation {
            user: UserName::from("alice"),
            until: Timestamp::from_second(1_795_161_731),
        });
        board.set(&name, entry.clone());
        let written = board.write(Some(&value));
        assert_eq!(written["t"]["ours_later"], 1);
        assert_eq!(
            Board::read(Json::new(&written.to_string()), &Path::Root).unwrap().entry(&name),
            entry
        );
        board.set(&name, Entry::default());
        assert_eq!(board.write(Some(&value)), json!({}));
    }

    #[test]
    fn a_reservation_outlives_neither_its_time_nor_its_user() {
        let entry = Entry {
            reservation: Some(Reservation {
                user: UserName::from("alice"),
                until: Timestamp::from_second(100),
            }),
            ..Entry::default()
        };
        assert!(entry.reserved(Timestamp::from_second(99), |_| true).is_some());
        assert!(entry.reserved(Timestamp::from_second(100), |_| true).is_none());
        assert!(entry.reserved(Timestamp::from_second(99), |_| false).is_none());
    }
}
