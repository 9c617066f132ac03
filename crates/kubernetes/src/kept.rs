//! What containers have printed, kept here: it outlives the pod, its node and the cluster.
//!
//! A log can only be asked for from some second on, so what comes is compared with what is kept: a line is kept once,
//! whoever reads it, however often, and wherever a reader was killed. The kept text and the note of how far it goes are
//! two files: text that the note does not know yet was written by somebody who did not come to write the note, and what
//! is read next begins with it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use tpu_system::store::atomic;
use tpu_system::store::{Store, StoreError};

use super::stamped::{Line, Place};

/// What was printed.
const TEXT: &str = "output.log";
/// How far each container is kept.
const KEPT: &str = "output.kept";
const LOCK: &str = "output.lock";

/// How far a log is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Extent {
    /// Bytes of the text that these lines make.
    length: u64,
    /// The last line of each pod, by its identity.
    last: BTreeMap<String, Place>,
    /// The pods of which everything is kept that they have ever printed.
    whole: Vec<String>,
}

/// Where lines begin that are to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogBegins {
    /// At a second that was asked for: with the last line that is kept, if it is still there.
    Anew,
    /// Behind those that came before in the same answer.
    Behind,
}

/// Stands where lines are missing. A kubelet throws away the oldest lines of a log that grows large.
const MISSING: &str =
    "[tpu: what was printed before this is not kept: its node had thrown it away by then]\n";

/// The kept log of one launch.
#[derive(Clone)]
pub(super) struct KeptLog {
    store: Arc<Store>,
    dir: PathBuf,
}

impl KeptLog {
    /// The one in a directory.
    pub(super) fn new(store: &Arc<Store>, dir: PathBuf) -> Self {
        Self { store: Arc::clone(store), dir }
    }

    /// Whether anything is kept.
    pub(super) fn is_there(&self) -> bool {
        self.store.disk().stat(&self.text()).is_ok()
    }

    /// Where the text lies.
    pub(super) fn text(&self) -> PathBuf {
        self.dir.join(TEXT)
    }

    fn extent(&self) -> io::Result<Extent> {
        match self.store.disk().read(&self.dir.join(KEPT)) {
            Ok(contents) => Ok(serde_json::from_slice(&contents.bytes)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Extent::default()),
            Err(e) => Err(e),
        }
    }

    /// From which second on the log of a pod is wanted: that of the last line that is kept.
    pub(super) fn since(&self, pod: &str) -> Option<String> {
        let last = self.extent().ok()?.last.get(pod)?.at;
        let second = jiff::Timestamp::from_second(last.as_second()).ok()?;
        Some(second.to_string())
    }

    /// Whether everything is kept that a pod has ever printed.
    pub(super) fn is_whole(&self, pod: &str) -> bool {
        self.extent().is_ok_and(|extent| extent.whole.iter().any(|known| known == pod))
    }

    /// Keeps those of some lines of a pod that are not kept yet. `is_all` says that nothing comes behind them.
    pub(super) fn keep(
        &self,
        pod: &str,
        (begins, lines): (LogBegins, &[Line]),
        is_all: bool,
    ) -> Result<(), StoreError> {
        if lines.is_empty() && !is_all {
            return Ok(());
        }
        let add = || self.add(pod, (begins, lines), is_all);
        let kept = self.store.locking(&self.dir.join(LOCK), add)?;
        kept.map_err(|source| StoreError::Io {
            op: "keep the log in",
            path: self.dir.clone(),
            source,
        })
    }

    fn add(
        &self,
        pod: &str,
        (begins, lines): (LogBegins, &[Line]),
        is_all: bool,
    ) -> io::Result<()> {
        let mut extent = self.extent()?;
        let before = extent.last.get(pod).copied();
        let new: Vec<&Line> =
            lines.iter().filter(|line| before.is_none_or(|last| line.place > last)).collect();
        // The answer should have begun with the last line that is kept.
        let first = lines.first().filter(|_| begins == LogBegins::Anew);
        let is_missing = before.zip(first).is_some_and(|(last, first)| first.place > last);
        let missing = if is_missing { MISSING } else { "" };
        let printed = new.iter().flat_map(|line| line.text.iter().copied());
        let text: Vec<u8> = missing.bytes().chain(printed).collect();
        self.append(extent.length, &text)?;
        extent.length += text.len() as u64;
        if let Some(last) = new.last() {
            extent.last.insert(pod.to_owned(), last.place);
        }
        if is_all && !extent.whole.iter().any(|known| known == pod) {
            extent.whole.push(pod.to_owned());
        }
        let note = serde_json::to_vec(&extent)?;
        atomic::write_passing(&**self.store.disk(), &self.dir.join(KEPT), &note, 0o644)
            .map_err(io::Error::other)
    }

    /// Has the text go on behind `length` with this. What stands there already was written by somebody who did not come
    /// to say so: as far as it is the same it stays, and the rest of it goes.
    fn append(&self, length: u64, text: &[u8]) -> io::Result<()> {
        let path = self.text();
        let disk = self.store.disk();
        let there = match disk.stat(&path) {
            Ok(stat) => stat.size,
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            Err(e) => return Err(e),
        };
        let unsaid = usize::try_from(there.saturating_sub(length)).unwrap_or(usize::MAX);
        if unsaid == 0 {
            return if text.is_empty() { Ok(()) } else { disk.append(&path, text, 0o644, false) };
        }
        let tail = disk.read_at(&path, length, unsaid)?;
        match text.strip_prefix(tail.as_slice()) {
            Some([]) => Ok(()),
            Some(rest) => disk.append(&path, rest, 0o644, false),
            None if tail.starts_with(text) => Ok(()),
            None => self.rewrite(&path, length, text),
        }
    }

    /// Replaces what stands behind `length`.
    fn rewrite(&self, path: &Path, length: u64, text: &[u8]) -> io::Result<()> {
        let disk = &**self.store.disk();
        let mut whole = disk.read_at(path, 0, usize::try_from(length).unwrap_or(usize::MAX))?;
        whole.extend_from_slice(text);
        atomic::write_file(disk, path, &whole, 0o644).map_err(io::Error::other)
    }
}
