//! How much lies where: buckets and directories by what is directly below them, asked side by side, and kept with their age.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use tpu_core::model::checkpoint::{is_named_like_one, step_of};
use tpu_core::model::objects::{ObjectAt, ObjectFact, StoragePlace};
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::retry;
use tpu_engine::provider::storage::ObjectQuery;
use tpu_system::sys::clock::Clock;
use tpu_system::sys::random::Random;
use tpu_system::sys::threads::next_of;

use crate::act::checkpoints::shelf::{self, Shelf};
use crate::base::answer_cache::{self, Aged};
use crate::{Ctx, Error};

/// An answer that is younger is not asked for again.
const FRESH_S: u64 = 15 * 60;
/// How long a whole bucket may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What lies in a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageFigures {
    /// Bytes.
    pub bytes: u64,
    /// Objects or files.
    pub objects: u64,
    /// When the oldest was written.
    pub oldest: Option<Timestamp>,
    /// The largest checkpoint and its bytes.
    pub largest: Option<(String, u64)>,
}

/// A row: a place, or what is directly below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRow {
    /// The place.
    pub name: String,
    /// What is there; `None` where nobody has ever said.
    pub figures: Option<StorageFigures>,
    /// How old the answer is.
    pub age_s: Option<u64>,
    /// Why it could not be asked now.
    pub unknown: Option<String>,
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageReport {
    /// In the order in which they were asked for.
    pub rows: Vec<StorageRow>,
    /// What a person can do about those that are unknown.
    pub hints: Vec<String>,
}

impl StorageReport {
    /// Whether nothing at all is known.
    pub fn is_unknown(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.figures.is_none())
    }
}

/// What was counted in a place.
#[derive(Debug)]
struct Counted {
    rows: Vec<(String, StorageFigures)>,
    /// Directories below it that could not be read, and why.
    unread: Vec<(String, String)>,
}

/// What was said of a place.
type Said = Aged<Vec<(String, StorageFigures)>>;

/// Counts what lies in these places; in all buckets of the project where none is named.
pub fn report(ctx: &Ctx, named: &[String], anew: bool) -> Result<StorageReport, Error> {
    let shelf = shelf::open(ctx);
    let (places, is_split) = if named.is_empty() {
        let shelf = shelf.as_ref().map_err(Error::again)?;
        let buckets = shelf.ask(ctx, |door| door.buckets())?;
        let place = |name| StoragePlace::Bucket(ObjectAt::new(name, ""));
        (buckets.into_iter().map(place).collect(), false)
    } else {
        let read = |text: &String| {
            StoragePlace::parse(text).map(|place| absolute(ctx, place)).map_err(|why| {
                Error::usage(why).hint("name buckets as gs://BUCKET, directories by their paths")
            })
        };
        (named.iter().map(read).collect::<Result<Vec<_>, _>>()?, true)
    };
    if let (Some(StoragePlace::Bucket(_)), Err(error)) =
        (places.iter().find(|place| place.bucket().is_some()), &shelf)
    {
        return Err(error.again());
    }
    let shelf = shelf.ok();
    let question =
        |place: &StoragePlace| format!("storage of {place}{}", if is_split { "/" } else { "" });
    let is_old = |place: &&StoragePlace| {
        anew || answer_cache::last::<Vec<(String, StorageFigures)>>(ctx, &question(place), FRESH_S)
            .is_none()
    };
    let asked: Vec<StoragePlace> = places.iter().filter(is_old).cloned().collect();
    let (say, said) = channel();
    for (at, place) in asked.iter().enumerate() {
        let (say, place, shelf) = (say.clone(), place.clone(), shelf.clone());
        let tries = Tries { clock: ctx.clock.clone(), random: ctx.random.clone() };
        ctx.threads.spawn(Box::new(move || {
            // Whoever asked may have gone.
            drop(say.send((at, counted(&tries, shelf.as_ref(), &place, is_split))));
        }));
    }
    drop(say);
    let mut failed: BTreeMap<String, Error> = BTreeMap::new();
    let mut partly: BTreeMap<String, Counted> = BTreeMap::new();
    for _ in 0..asked.len() {
        let Ok((at, answer)) = next_of(&*ctx.threads, &said, PATIENCE) else { break };
        let Some(place) = asked.get(at) else { continue };
        match answer {
            Ok(counted) if counted.unread.is_empty() => {
                drop(answer_cache::keep(ctx, &question(place), counted.rows));
            }
            // Somebody may mend it: it is asked for again.
            Ok(counted) => drop(partly.insert(question(place), counted)),
            Err(error) => drop(failed.insert(question(place), error)),
        }
    }
    let mut report = StorageReport::default();
    for place in &places {
        let question = question(place);
        if let Some(Counted { rows, unread }) = partly.remove(&question) {
            let now = Aged { answer: rows, at: ctx.clock.now() };
            told(ctx, &mut report, place, (Some(now), None));
            let row = |(name, why)| {
                let unknown = Some(format!("it could not be read, and is not counted: {why}"));
                StorageRow { name, figures: None, age_s: None, unknown }
            };
            report.rows.extend(unread.into_iter().map(row));
            continue;
        }
        // However old it is: it says so.
        let known = answer_cache::last(ctx, &question, u64::MAX);
        told(ctx, &mut report, place, (known, failed.get(&question)));
    }
    Ok(report)
}

/// Adds what is known of a place, and why there is no newer answer.
fn told(
    ctx: &Ctx,
    report: &mut StorageReport,
    place: &StoragePlace,
    (known, why): (Option<Said>, Option<&Error>),
) {
    if let Some(hint) = why.and_then(|error| error.hint.clone())
        && !report.hints.contains(&hint)
    {
        report.hints.push(hint);
    }
    let unknown = why.map(|error| error.message.clone());
    let Some(Aged { answer, at }) = known else {
        let name = place.to_string();
        let unknown = unknown.or_else(|| Some("no answer came".to_owned()));
        report.rows.push(StorageRow { name, figures: None, age_s: None, unknown });
        return;
    };
    let age_s = Some(ctx.clock.now().seconds_since(at));
    report.rows.extend(answer.into_iter().map(|(name, figures)| StorageRow {
        name,
        figures: Some(figures),
        age_s,
        unknown: unknown.clone(),
    }));
}

fn absolute(ctx: &Ctx, place: StoragePlace) -> StoragePlace {
    match place {
        StoragePlace::Directory(dir) => StoragePlace::Directory(ctx.env.cwd.join(dir)),
        bucket @ StoragePlace::Bucket(_) => bucket,
    }
}

/// What trying again takes, on another thread.
struct Tries {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// Figures by what is directly below a place, or of the whole.
struct Counts<'a> {
    place: &'a StoragePlace,
    is_split: bool,
    rows: BTreeMap<String, StorageFigures>,
    checkpoints: BTreeMap<String, BTreeMap<String, u64>>,
    unread: Vec<(String, String)>,
}

impl Counts<'_> {
    /// Counts a file by its path below the place.
    fn add(&mut self, below: &str, bytes: u64, written: Option<Timestamp>) {
        let top = below.split_once('/').map_or("", |(top, _)| top);
        let name = if self.is_split { self.place.join(top) } else { self.place.clone() };
        let name = name.to_string();
        let row = self.rows.entry(name.clone()).or_default();
        row.bytes = row.bytes.saturating_add(bytes);
        row.objects += 1;
        row.oldest = [row.oldest, written].into_iter().flatten().min();
        let mut path = String::new();
        for part in below.split('/') {
            path = if path.is_empty() { part.to_owned() } else { format!("{path}/{part}") };
            if step_of(part, None).is_some() && is_named_like_one(part) {
                let of = self.place.join(&path).to_string();
                *self.checkpoints.entry(name).or_default().entry(of).or_default() += bytes;
                return;
            }
        }
    }

    fn done(mut self) -> Counted {
        if self.rows.is_empty() {
            self.rows.insert(self.place.to_string(), StorageFigures::default());
        }
        for (name, all) in self.checkpoints {
            let largest = all.into_iter().max_by_key(|(_, bytes)| *bytes);
            if let Some(row) = self.rows.get_mut(&name) {
                row.largest = largest;
            }
        }
        Counted { rows: self.rows.into_iter().collect(), unread: self.unread }
    }
}

fn counted(
    tries: &Tries,
    shelf: Option<&Shelf>,
    place: &StoragePlace,
    is_split: bool,
) -> Result<Counted, Error> {
    let (rows, checkpoints, unread) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut counts = Counts { place, is_split, rows, checkpoints, unread };
    let read = |dir: &Path| fs::read_dir(dir);
    match (place, shelf) {
        (StoragePlace::Directory(dir), _) => walk(&read, dir, "", &mut counts).map_err(|e| {
            let what = format!("what is in {} is unknown: {e}", dir.display());
            if e.kind() == io::ErrorKind::NotFound {
                Error::not_found(what).hint("name a directory that is there")
            } else {
                Error::unreachable(what).hint("nothing was changed; try again when it can be read")
            }
        })?,
        (StoragePlace::Bucket(at), Some(shelf)) => {
            let (prefix, mut page) = (at.prefix(), None::<String>);
            loop {
                let query = ObjectQuery {
                    bucket: &at.bucket,
                    prefix: &prefix,
                    by_directory: false,
                    page: page.take(),
                };
                let door = shelf.door()?;
                let ask = || door.list_objects(&query);
                let got = retry::persistently(&*tries.clock, &*tries.random, ask)?;
                for ObjectFact { at, size, updated, .. } in got.objects {
                    let below = at.name.strip_prefix(&prefix).unwrap_or(&at.name);
                    counts.add(below, size, updated);
                }
                page = got.next;
                if page.is_none() {
                    break;
                }
            }
        }
        (StoragePlace::Bucket(at), None) => return Err(shelf::none_for(at)),
    }
    Ok(counts.done())
}

/// Opens a directory.
type ReadDir<'a> = &'a dyn Fn(&Path) -> io::Result<fs::ReadDir>;

/// Counts the files below a directory. Links are not followed: what is behind them lies elsewhere. One below it that cannot
/// be read is named, and the others are counted.
fn walk(read: ReadDir<'_>, dir: &Path, above: &str, counts: &mut Counts<'_>) -> io::Result<()> {
    for entry in read(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let below = if above.is_empty() { name } else { format!("{above}/{name}") };
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Removed meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        if meta.is_dir() {
            match walk(read, &entry.path(), &below, counts) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    counts.unread.push((entry.path().display().to_string(), e.to_string()));
                }
                Ok(()) | Err(_) => {}
            }
        } else {
            let written = meta.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok());
            counts.add(&below, meta.len(), written.map(Timestamp::from_jiff));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_read_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/closed", "b"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (name, size) in [("a/one", 10), ("a/closed/two", 100), ("b/three", 1000)] {
            fs::File::create(dir.path().join(name)).unwrap().set_len(size).unwrap();
        }
        let place = StoragePlace::Directory(dir.path().to_owned());
        let (rows, checkpoints, unread) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut counts = Counts { place: &place, is_split: false, rows, checkpoints, unread };
        let read = |path: &Path| {
            if path.ends_with("closed") {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
            fs::read_dir(path)
        };
        walk(&read, dir.path(), "", &mut counts).unwrap();
        let counted = counts.done();
        assert_eq!(counted.rows[0].1.bytes, 1010);
        let closed = dir.path().join("a/closed").display().to_string();
        assert_eq!(counted.unread[0].0, closed);
        assert!(
            walk(
                &read,
                &dir.path().join("a/closed"),
                "",
                &mut Counts {
                    place: &place,
                    is_split: false,
                    rows: BTreeMap::new(),
                    checkpoints: BTreeMap::new(),
                    unread: Vec::new(),
                }
            )
            .is_err(),
            "of the place itself nothing is known"
        );
    }
}
