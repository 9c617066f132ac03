//! Sweeps: members of one group that differ in the values of some configs.

use std::ffi::OsString;

use serde_json::{Value, json};

use crate::text::fields::fill;

use super::member::Array;
use super::read::{self, DataError, Fields, Json, Path};

/// What differs between the members of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Each config with its values, in the order in which they were typed.
    axes: Vec<(String, Vec<String>)>,
    /// Whether the first member takes the first value of each, and so on; else every combination is a member, of which
    /// the last config changes fastest.
    is_zipped: bool,
    /// Those whose values are filled into the command, where `{{lr}}` stands: they are no arguments.
    filled: Vec<String>,
}

/// Why configs are no sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSweep {
    /// Nothing has several values.
    #[error("no config has several values")]
    Nothing,
    /// Values that are to be paired are not as many.
    #[error("{first} has {of_first} values and {second} {of_second}")]
    Unequal {
        /// A config.
        first: String,
        /// How many values it has.
        of_first: usize,
        /// Another one.
        second: String,
        /// How many values that has.
        of_second: usize,
    },
    /// There would be too many members.
    #[error("{0} members; a group has at most {most}", most = Array::MOST)]
    TooMany(usize),
    /// A value between two commas is empty.
    #[error("{0} has an empty value")]
    Empty(String),
}

impl Sweep {
    /// Takes the configs with several values out of `configs`: `1e-3,1e-4` and `0-4`.
    pub fn take(configs: &mut Vec<(String, String)>, is_zipped: bool) -> Result<Self, BadSweep> {
        let mut axes = Vec::new();
        let mut rest = Vec::new();
        for (key, value) in configs.drain(..) {
            let values = values(&value);
            if values.iter().any(String::is_empty) && values.len() > 1 {
                return Err(BadSweep::Empty(key));
            }
            if values.len() > 1 {
                axes.push((key, values));
            } else {
                rest.push((key, value));
            }
        }
        *configs = rest;
        Self::of(axes, is_zipped, Vec::new())
    }

    /// A sweep of these configs, of which the values of those in `filled` are filled into the command.
    pub fn of(
        axes: Vec<(String, Vec<String>)>,
        is_zipped: bool,
        filled: Vec<String>,
    ) -> Result<Self, BadSweep> {
        let sweep = Self { axes, is_zipped, filled };
        let Some(((first, values), others)) = sweep.axes.split_first() else {
            return Err(BadSweep::Nothing);
        };
        let unequal = others.iter().find(|(_, other)| is_zipped && other.len() != values.len());
        if let Some((second, other)) = unequal {
            return Err(BadSweep::Unequal {
                first: first.clone(),
                of_first: values.len(),
                second: second.clone(),
                of_second: other.len(),
            });
        }
        match sweep.members() {
            most if most > Array::MOST => Err(BadSweep::TooMany(most)),
            _ => Ok(sweep),
        }
    }

    /// How many members it has.
    pub fn members(&self) -> usize {
        let mut counts = self.axes.iter().map(|(_, values)| values.len());
        if self.is_zipped {
            return counts.next().unwrap_or_default();
        }
        counts.fold(1, usize::saturating_mul)
    }

    /// Each config with its values, in the order in which they were typed.
    pub fn axes(&self) -> &[(String, Vec<String>)] {
        &self.axes
    }

    /// Whether the first values of all go together, then the second ones, and so on.
    pub fn is_zipped(&self) -> bool {
        self.is_zipped
    }

    /// Those whose values are filled into the command.
    pub fn filled(&self) -> &[String] {
        &self.filled
    }

    /// The configs of a member, from 0.
    pub fn configs(&self, member: u32) -> Vec<(String, String)> {
        let mut rest = member as usize;
        let mut configs: Vec<(String, String)> = Vec::new();
        for (key, values) in self.axes.iter().rev() {
            let count = values.len().max(1);
            let at = if self.is_zipped { rest } else { rest % count };
            if !self.is_zipped {
                rest /= count;
            }
            configs.extend(values.get(at).map(|value| (key.clone(), value.clone())));
        }
        configs.reverse();
        configs
    }

    /// Those of a member that are given to its program as arguments.
    pub fn given(&self, member: u32) -> Vec<(String, String)> {
        let all = self.configs(member).into_iter();
        all.filter(|(key, _)| !self.filled.contains(key)).collect()
    }

    /// The command of a member.
    pub fn command(&self, member: u32, command: &[OsString]) -> Vec<OsString> {
        if self.filled.is_empty() {
            return command.to_vec();
        }
        let configs = self.configs(member);
        let value = |name: &str| {
            let known = configs.iter().find(|(key, _)| key == name && self.filled.contains(key));
            known.map(|(_, value)| value.as_str())
        };
        let word = |word: &OsString| {
            word.to_str().map_or_else(|| word.clone(), |text| fill(text, value).into())
        };
        command.iter().map(word).collect()
    }

    /// What differs, in words: `lr=1e-3,1e-4 config.seed=0,1`.
    pub fn in_words(&self) -> String {
        let axis = |(key, values): &(String, Vec<String>)| format!("{key}={}", values.join(","));
        self.axes.iter().map(axis).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let axis = |value: Json<'_>, path: &Path<'_>| {
            let fields = Fields::new(value, path)?;
            let values = |value: Json<'_>, path: &Path<'_>| read::list(value, path, read::text);
            Ok((
                fields.need("config", "text", read::text)?,
                fields.need("values", "a list", values)?,
            ))
        };
        let axes = |value: Json<'_>, path: &Path<'_>| read::list(value, path, axis);
        Ok(Self {
            axes: fields.need("axes", "a list", axes)?,
            is_zipped: fields.with_or("zipped", false, read::flag)?,
            filled: fields
                .with("filled", |value, path| read::list(value, path, read::text))?
                .unwrap_or_default(),
        })
    }

    pub(super) fn write(&self) -> Value {
        let axis =
            |(key, values): &(String, Vec<String>)| json!({ "config": key, "values": values });
        let axes: Vec<Value> = self.axes.iter().map(axis).collect();
        let mut sweep = json!({ "axes": axes, "zipped": self.is_zipped });
        if let (false, Some(members)) = (self.filled.is_empty(), sweep.as_object_mut()) {
            members.insert("filled".to_owned(), json!(self.filled));
        }
        sweep
    }
}

/// The values of a config: those between commas, or each of a range INT-INT.
pub fn values(text: &str) -> Vec<String> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_plain.then(|| text.parse::<u64>().ok()).flatten()
    };
    let most = Array::MOST as u64;
    text.split(',')
        .flat_map(|part| match part.split_once('-').map(|(a, b)| (number(a), number(b))) {
            Some((Some(first), Some(last))) if first <= last && last - first <= most => {
                (first..=last).map(|value| value.to_string()).collect()
            }
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(words: &str) -> Vec<(String, String)> {
        let pair = |word: &str| {
            let (key, value) = word.split_once('=').unwrap();
            (key.to_owned(), value.to_owned())
        };
        words.split(' ').map(pair).collect()
    }

    fn members(words: &str, is_zipped: bool) -> Vec<Vec<(String, String)>> {
        let sweep = Sweep::take(&mut configs(words), is_zipped).unwrap();
        (0..u32::try_from(sweep.members()).unwrap()).map(|at| sweep.configs(at)).collect()
    }

    #[test]
    fn a_product_has_every_combination_and_the_last_changes_fastest() {
        let mut all = configs("lr=1e-3,1e-4 batch=64 config.seed=0-2");
        let sweep = Sweep::take(&mut all, false).unwrap();
        assert_eq!(all, configs("batch=64"));
        assert_eq!(sweep.members(), 6);
        assert_eq!(sweep.configs(0), configs("lr=1e-3 config.seed=0"));
        assert_eq!(sweep.configs(2), configs("lr=1e-3 config.seed=2"));
        assert_eq!(sweep.configs(3), configs("lr=1e-4 config.seed=0"));
        assert_eq!(sweep.configs(5), configs("lr=1e-4 config.seed=2"));
        assert_eq!(members("a=1,2 b=x,y", false).len(), 4);
    }

    #[test]
    fn pairs_take_one_value_of_each() {
        assert_eq!(members("a=1,2 b=x,y", true), [configs("a=1 b=x"), configs("a=2 b=y")]);
        let error = Sweep::take(&mut configs("a=1,2 b=x,y,z"), true).unwrap_err();
        assert_eq!(error.to_string(), "a has 2 values and b 3");
    }

    #[test]
    fn only_whole_numbers_are_ranges() {
        for one in ["1e-3", "2024-01-02", "a-b", "-1", "5-1", "0-"] {
            assert_eq!(values(one), [one], "{one}");
        }
        assert_eq!(values("0-2,7"), ["0", "1", "2", "7"]);
        let wrong = |words: &str| Sweep::take(&mut configs(words), false).unwrap_err();
        assert_eq!(wrong("a=1"), BadSweep::Nothing);
        assert_eq!(wrong("a=1,,2"), BadSweep::Empty("a".to_owned()));
        assert_eq!(wrong("a=0-99 b=0-99"), BadSweep::TooMany(10_000));
    }

    #[test]
    fn it_reads_what_it_writes() {
        let sweep = Sweep::take(&mut configs("a=1,2 b=x,y"), true).unwrap();
        let text = sweep.write().to_string();
        assert_eq!(Sweep::read(Json::new(&text), &Path::Root).unwrap(), sweep);
    }
}
