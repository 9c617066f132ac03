//! Objects of Cloud Storage by name, and places where files lie: a directory, or the part of a bucket below a prefix.

use std::fmt;
use std::path::PathBuf;

use super::time::Timestamp;

/// What such an address begins with.
pub const SCHEME: &str = "gs://";

/// An object by name, or what lies below a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectAt {
    /// The bucket.
    pub bucket: String,
    /// The whole name within it, without a slash at the beginning.
    pub name: String,
}

impl ObjectAt {
    /// Names an object.
    pub fn new(bucket: impl Into<String>, name: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), name: name.into() }
    }

    /// Reads `gs://BUCKET[/NAME]`; `None` where a text is no such address.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(SCHEME)?;
        let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let is_bucket = bucket.len() >= 3 && bucket.chars().all(is_name);
        is_bucket.then(|| Self::new(bucket, name.trim_matches('/')))
    }

    /// What is called so below it.
    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        let name = match (self.name.as_str(), below) {
            (name, "") => name.to_owned(),
            ("", below) => below.to_owned(),
            (name, below) => format!("{name}/{below}"),
        };
        Self { bucket: self.bucket.clone(), name }
    }

    /// With what the names of all below it begin.
    pub fn prefix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}/", self.name) }
    }
}

impl fmt::Display for ObjectAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.name.is_empty() { "" } else { "/" };
        write!(f, "{SCHEME}{}{slash}{}", self.bucket, self.name)
    }
}

/// What is known of one version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFact {
    /// Which one.
    pub at: ObjectAt,
    /// Its bytes.
    pub size: u64,
    /// Its checksum (CRC32C, which every object has, also one that was composed of others).
    pub crc32c: Option<u32>,
    /// Its version: another one may have other bytes.
    pub generation: u64,
    /// When it was written.
    pub updated: Option<Timestamp>,
}

/// Where files lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoragePlace {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// In a bucket, below a prefix.
    Bucket(ObjectAt),
}

impl StoragePlace {
    /// Reads a path or an address; what says `gs://` and names no bucket is an error in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with(SCHEME) {
            return Ok(Self::Directory(PathBuf::from(text)));
        }
        let wrong = || format!("'{text}' names no bucket: as in gs://my-bucket/runs/7");
        ObjectAt::parse(text).map(Self::Bucket).ok_or_else(wrong)
    }

    /// What is called so below it.
    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        match self {
            Self::Directory(dir) if below.is_empty() => Self::Directory(dir.clone()),
            Self::Directory(dir) => Self::Directory(dir.join(below)),
            Self::Bucket(at) => Self::Bucket(at.join(below)),
        }
    }

    /// What of `whole` lies below this place: the path from here, empty for the place itself; `None` where it lies elsewhere.
    pub fn below(&self, whole: &Self) -> Option<String> {
        match (self, whole) {
            (Self::Directory(dir), Self::Directory(path)) => {
                Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned())
            }
            (Self::Bucket(at), Self::Bucket(of)) if at.bucket == of.bucket => {
                if at.name == of.name {
                    return Some(String::new());
                }
                of.name.strip_prefix(&at.prefix()).map(str::to_owned)
            }
            (Self::Directory(_) | Self::Bucket(_), _) => None,
        }
    }

    /// The bucket, if it is in one.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Self::Bucket(at) => Some(&at.bucket),
            Self::Directory(_) => None,
        }
    }
}

impl fmt::Display for StoragePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => dir.display().fmt(f),
            Self::Bucket(at) => at.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_what_is_below_it() {
        let at = ObjectAt::parse("gs://lab-us/runs/7/").unwrap();
        assert_eq!(at, ObjectAt::new("lab-us", "runs/7"));
        assert_eq!(at.join("step_1").to_string(), "gs://lab-us/runs/7/step_1");
        assert_eq!(ObjectAt::parse("gs://lab-us").unwrap().join("a").to_string(), "gs://lab-us/a");
        for wrong in ["gs://", "gs:///a", "gs://A/b", "s3://lab/a", "/runs"] {
            assert_eq!(ObjectAt::parse(wrong), None, "{wrong}");
        }
        assert!(StoragePlace::parse("gs://").is_err());
    }

    #[test]
    fn a_place_knows_what_lies_below_it_and_nothing_beside_it() {
        let place = |text: &str| StoragePlace::parse(text).unwrap();
        for (root, whole, below) in [
            ("gs://lab-us/logs", "gs://lab-us/logs/a/b", Some("a/b")),
            ("gs://lab-us/logs", "gs://lab-us/logs", Some("")),
            ("gs://lab-us/logs", "gs://lab-us/logs2/a", None),
            ("gs://lab-us", "gs://lab-us/a", Some("a")),
            ("gs://lab-us", "gs://lab-eu/a", None),
            ("/nfs/logs", "/nfs/logs/a", Some("a")),
            ("/nfs/logs", "/nfs/logs2", None),
            ("/nfs/logs", "gs://lab-us/logs", None),
        ] {
            assert_eq!(place(root).below(&place(whole)).as_deref(), below, "{root} {whole}");
        }
    }
}
