//! Groups of jobs: several members of one specification, under one number that no attempt has.

use std::fmt;

use serde_json::{Value, json};

use super::ids::JobNumber;
use super::pattern::{self, BadPattern};
use super::read::{self, DataError, Fields, Json, Path};

/// A member of a group, shown as `12_3`. Its attempts are jobs with numbers of their own; a member that is brought
/// back is the same member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The number of its group, of the user's own numbering.
    pub group: JobNumber,
    /// Which of the group.
    pub index: u32,
}

impl Member {
    /// Reads `12_3`; `None` when the text is not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let (group, index) = text.split_once('_')?;
        Some(Self { group: JobNumber(number(group)?), index: number(index)? })
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.group, self.index)
    }
}

/// The members that a group is to have, by their indexes: never none, none twice. And how many of them may run at
/// once, where not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    indexes: Vec<u32>,
    at_once: Option<u32>,
}

impl Array {
    /// A group has no more members than this.
    pub const MOST: usize = 1000;

    /// Reads `0-3` or `0,2,5-7`, and behind that `%2`.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let bad = |what: String| BadPattern { column: 1, what };
        let outside = |error: BadPattern| BadPattern { column: error.column - 1, ..error };
        let (text, at_once) = match text.split_once('%') {
            None => (text, None),
            Some((text, number)) => match number.parse() {
                Ok(at_once @ 1..) => (text, Some(at_once)),
                _ => return Err(bad("behind % stands how many may run at once".to_owned())),
            },
        };
        if text.contains(['[', ']']) {
            return Err(bad("members are as in 0-3 or 0,2,5-7".to_owned()));
        }
        let names = pattern::names(&format!("[{text}]")).map_err(outside)?;
        let mut indexes: Vec<u32> = Vec::new();
        for name in &names {
            let index = name.parse().map_err(|_| bad(format!("{name} is too large")))?;
            if !indexes.contains(&index) {
                indexes.push(index);
            }
            if indexes.len() > Self::MOST {
                return Err(bad(format!("a group has at most {} members", Self::MOST)));
            }
        }
        Ok(Self { indexes, at_once })
    }

    /// The indexes, in their order.
    pub fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// The same without one of them; `None` if there is no other.
    pub fn without(&self, index: u32) -> Option<Self> {
        self.only(self.indexes.iter().copied().filter(|own| *own != index).collect())
    }

    /// The same with one more.
    #[must_use]
    pub fn with(&self, index: u32) -> Self {
        let all = Self::of(self.indexes.iter().copied().chain([index]));
        Self { indexes: all.map(|all| all.indexes).unwrap_or_default(), at_once: self.at_once }
    }

    /// The same with no others than these of them; `None` if those are none.
    pub fn only(&self, indexes: Vec<u32>) -> Option<Self> {
        (!indexes.is_empty()).then_some(Self { indexes, at_once: self.at_once })
    }

    /// Those of these indexes, in order, all of which may run at once; `None` if there are none.
    pub fn of(indexes: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut indexes: Vec<u32> = indexes.into_iter().collect();
        indexes.sort_unstable();
        indexes.dedup();
        (!indexes.is_empty()).then_some(Self { indexes, at_once: None })
    }

    /// How many may run at once; `None` where all may.
    pub fn at_once(&self) -> Option<u32> {
        self.at_once
    }
}

/// As it could be typed.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.indexes.as_slice();
        let mut begin = "";
        while let Some(first) = rest.first() {
            let follows = rest.iter().zip(*first..=u32::MAX).take_while(|(a, b)| **a == *b).count();
            let (run, after) = rest.split_at(follows);
            match run {
                [.., last] if follows > 2 => write!(f, "{begin}{first}-{last}")?,
                [_, last] => write!(f, "{begin}{first},{last}")?,
                _ => write!(f, "{begin}{first}")?,
            }
            begin = ",";
            rest = after;
        }
        self.at_once.map_or(Ok(()), |at_once| write!(f, "%{at_once}"))
    }
}

/// Reads a member as a record keeps it.
pub(super) fn read_member(value: Json<'_>, path: &Path<'_>) -> Result<Member, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Member {
        group: JobNumber(fields.need("group", "a number", read::number)?),
        index: fields.need("index", "a number", read::number)?,
    })
}

/// A member, for the file.
pub(super) fn write_member(member: Member) -> Value {
    json!({ "group": member.group, "index": member.index })
}

/// Reads the members that a group is to have.
pub(super) fn read_array(value: Json<'_>, path: &Path<'_>) -> Result<Array, DataError> {
    let text = read::text(value, path)?;
    Array::parse(&text).map_err(|_| path.error("members such as 0-3", Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_reads_what_it_writes_and_nothing_else() {
        let member = Member { group: JobNumber(12), index: 3 };
        assert_eq!(Member::parse(&member.to_string()), Some(member));
        for odd in ["12", "_3", "12_", "12_+3", "a_3", "12_3_4", "12_99999999999", " 12_3"] {
            assert_eq!(Member::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_array_is_read_and_shown_as_it_is_typed() {
        for text in ["0-3", "0,2,5-7", "5", "3,1", "0,1", "0-3%2", "7%1"] {
            assert_eq!(Array::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Array::parse("00-02,1").unwrap().indexes(), [0, 1, 2]);
        assert_eq!(Array::parse("0-999").unwrap().indexes().len(), 1000);
        assert_eq!(Array::parse("0-9%2").unwrap().at_once(), Some(2));
        assert_eq!(Array::parse("0,4294967295").unwrap().to_string(), "0,4294967295");
        for odd in ["", "a", "3-1", "0-1000", "0,,1", "1-", "-1", "[1]", "0-3%", "5000000000"] {
            assert!(Array::parse(odd).is_err(), "{odd}");
        }
        for odd in ["0-3%0", "0-3%-1", "0-3%x", "0-3%1%1", "%2", "0%2,3"] {
            assert!(Array::parse(odd).is_err(), "{odd}");
        }
        assert_eq!(Array::parse("0,x").unwrap_err().column, 3);
    }
}
