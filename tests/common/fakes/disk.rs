//! A disk in memory that fails on demand: at any operation it can refuse, tear a write in two, or lose
//! the process or the power.
//!
//! Contents reach the platter only when they are synced, names only when their directory is; a power
//! failure takes everything else away. A crash of the process alone takes nothing away.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tpu_system::store::disk::{Contents, Disk, Lock, Locked, Stat};

/// What happens to one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails with this error. A write has then written nothing.
    Error(io::ErrorKind),
    /// It fails with this error, and a write has written half.
    Torn(io::ErrorKind),
    /// The process ends before it. Every later operation fails until [`FakeDisk::restart`].
    Crash,
    /// The process ends in the middle of it: a write has written half, any other operation is done.
    CrashWithin,
}

/// Decides about each operation by its number, name and path.
pub(crate) type Faults = Box<dyn FnMut(u64, &'static str, &Path) -> Option<Fault> + Send>;

/// The disk.
pub(crate) struct FakeDisk {
    state: Mutex<State>,
}

/// Files without any name are taken away whenever so many bytes have been written: of a month each version of the data
/// file is megabytes, beside thousands of files of a few bytes.
const SWEPT_EVERY: usize = 32 << 20;

/// The inodes of paths, by directory: of thousands of files few are beside the one that is written.
#[derive(Clone, Default)]
struct Names(BTreeMap<PathBuf, BTreeMap<PathBuf, u64>>);

#[derive(Clone, Default)]
struct Platter {
    files: BTreeMap<u64, Inode>,
    names: Names,
    /// The names that a power failure leaves.
    durable: Names,
    /// Those that came or went in a directory since it was last brought to the platter.
    unsynced: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    dirs: BTreeMap<PathBuf, (u32, u32, u32)>,
    next_inode: u64,
    /// How many bytes were written since what has no name was taken away.
    written: usize,
    tick: i64,
    /// Effective user and group of the process.
    account: (u32, u32),
}

#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// The contents that a power failure leaves.
    synced: Vec<u8>,
    /// Whether what is there is no longer what is on the platter and more.
    is_replaced: bool,
    modified: i64,
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Names {
    fn get(&self, path: &Path) -> Option<u64> {
        self.0.get(path.parent()?)?.get(path).copied()
    }

    fn contains(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    fn insert(&mut self, path: &Path, id: u64) {
        let dir = path.parent().unwrap_or(path).to_owned();
        self.0.entry(dir).or_default().insert(path.to_owned(), id);
    }

    fn remove(&mut self, path: &Path) -> Option<u64> {
        self.0.get_mut(path.parent()?)?.remove(path)
    }

    fn all(&self) -> impl Iterator<Item = (&PathBuf, u64)> {
        self.0.values().flatten().map(|(path, id)| (path, *id))
    }

    fn remove_below(&mut self, dir: &Path) {
        for below in below(&self.0, dir) {
            self.0.remove(&below);
        }
        self.remove(dir);
    }
}

/// A directory and those below it.
fn below<T>(dirs: &BTreeMap<PathBuf, T>, dir: &Path) -> Vec<PathBuf> {
    // What begins with the same parts is side by side in the order of paths.
    let all = dirs.range(dir.to_owned()..).map(|(path, _)| path);
    all.take_while(|path| path.starts_with(dir)).cloned().collect()
}

impl Inode {
    /// Brings what there is to the platter: of what was only added to, what is new. A journal of a month is long.
    fn sync(&mut self) {
        if self.is_replaced {
            self.synced.clear();
            self.is_replaced = false;
        }
        if let Some(new) = self.bytes.get(self.synced.len()..) {
            self.synced.extend_from_slice(new);
        }
    }
}

struct State {
    platter: Platter,
    locked: BTreeSet<PathBuf>,
    operations: u64,
    faults: Option<Faults>,
    crashed: bool,
}

/// Whether an operation is to be done, half done, or not at all; then what it returns.
enum Step {
    Do,
    Half(io::Error),
    /// Done, and nobody learns of it.
    DoThen(io::Error),
}

impl FakeDisk {
    /// A disk with one empty directory.
    pub(crate) fn new(dir: &Path) -> Self {
        let mut platter = Platter { account: (1000, 1000), ..Platter::default() };
        platter.dirs.insert(dir.to_owned(), (0o770, 1000, 1000));
        let state =
            State { platter, locked: BTreeSet::new(), operations: 0, faults: None, crashed: false };
        Self { state: Mutex::new(state) }
    }

    /// Puts a file there, on the platter, past all faults.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8], mode: u32, owner: (u32, u32)) {
        let mut state = self.state();
        let id = state.platter.new_file(path, mode);
        state.platter.durable.insert(path, id);
        if let Some(file) = state.platter.files.get_mut(&id) {
            file.bytes = bytes.to_vec();
            file.synced = bytes.to_vec();
            (file.uid, file.gid) = owner;
        }
    }

    /// Decides about all further operations, which count from 0 again.
    pub(crate) fn set_faults(
        &self,
        faults: impl FnMut(u64, &'static str, &Path) -> Option<Fault> + Send + 'static,
    ) {
        let mut state = self.state();
        state.operations = 0;
        state.faults = Some(Box::new(faults));
    }

    /// How many operations there were since [`FakeDisk::set_faults`] or the beginning.
    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// A new process: no faults, no locks.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        state.crashed = false;
        state.faults = None;
        state.locked.clear();
    }

    /// A new process after a power failure: what was not brought to the platter is gone.
    pub(crate) fn power_failure(&self) {
        self.restart();
        let mut state = self.state();
        state.platter.names = state.platter.durable.clone();
        state.platter.unsynced.clear();
        for file in state.platter.files.values_mut() {
            file.bytes.clone_from(&file.synced);
        }
    }

    /// Lets somebody else hold a lock until [`FakeDisk::restart`].
    pub(crate) fn hold(&self, path: &Path, note: &[u8]) {
        self.put(path, note, 0o660, (1000, 1000));
        let _: bool = self.state().locked.insert(path.to_owned());
    }

    /// Acts as another account from now on; 0 may do everything.
    pub(crate) fn set_account(&self, uid: u32, gid: u32) {
        self.state().platter.account = (uid, gid);
    }

    /// The names of all files.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.state().platter.names.all().map(|(path, _)| path.clone()).collect()
    }

    /// Whether there is such a file, past all faults.
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        self.state().platter.names.contains(path)
    }

    /// The bytes of a file, past all faults.
    pub(crate) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let id = state.platter.names.get(path)?;
        state.platter.files.get(&id).map(|file| file.bytes.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One operation that only looks: it is done or not.
    fn look<T>(
        &self,
        name: &'static str,
        path: &Path,
        work: impl FnOnce(&mut Platter) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        match state.step(name, path) {
            Step::Do => work(&mut state.platter),
            Step::Half(error) => Err(error),
            Step::DoThen(error) => {
                drop(work(&mut state.platter));
                Err(error)
            }
        }
    }

    /// Adds bytes to a file; a fault in the middle leaves half of them.
    fn put_bytes(&self, name: &'static str, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        match state.step(name, path) {
            Step::Do => state.platter.append(path, bytes),
            Step::Half(error) => Err(error),
            Step::DoThen(error) => {
                let half = bytes.get(..bytes.len() / 2).unwrap_or(&[]);
                state.platter.append(path, half)?;
                Err(error)
            }
        }
    }
}

impl State {
    fn step(&mut self, name: &'static str, path: &Path) -> Step {
        let gone = || io::Error::other("the process has ended");
        if self.crashed {
            return Step::Half(gone());
        }
        let number = self.operations;
        self.operations += 1;
        match self.faults.as_mut().and_then(|faults| faults(number, name, path)) {
            None => Step::Do,
            Some(Fault::Error(kind)) => Step::Half(kind.into()),
            Some(Fault::Torn(kind)) => Step::DoThen(kind.into()),
            Some(Fault::Crash) => {
                self.crashed = true;
                Step::Half(gone())
            }
            Some(Fault::CrashWithin) => {
                self.crashed = true;
                Step::DoThen(gone())
            }
        }
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Platter {
    fn name(&mut self, path: &Path, id: u64) {
        self.names.insert(path, id);
        self.has_changed(path);
    }

    fn unname(&mut self, path: &Path) -> Option<u64> {
        let id = self.names.remove(path)?;
        self.has_changed(path);
        Some(id)
    }

    fn has_changed(&mut self, path: &Path) {
        let dir = path.parent().unwrap_or(path).to_owned();
        self.unsynced.entry(dir).or_default().insert(path.to_owned());
    }

    /// Brings what came or went in a directory to the platter.
    fn sync(&mut self, dir: &Path) {
        for path in self.unsynced.remove(dir).unwrap_or_default() {
            match self.names.get(&path) {
                Some(id) => self.durable.insert(&path, id),
                None => drop(self.durable.remove(&path)),
            }
        }
    }

    /// What has no name any more, and gets none back, is gone.
    fn sweep(&mut self) {
        if self.written < SWEPT_EVERY {
            return;
        }
        let named: BTreeSet<u64> =
            self.names.all().chain(self.durable.all()).map(|(_, id)| id).collect();
        self.files.retain(|id, _| named.contains(id));
        self.written = 0;
    }

    fn new_file(&mut self, path: &Path, mode: u32) -> u64 {
        self.next_inode += 1;
        self.tick += 1;
        let (uid, gid) = self.account;
        let file = Inode { mode, uid, gid, modified: self.tick, ..Inode::default() };
        self.files.insert(self.next_inode, file);
        self.name(path, self.next_inode);
        self.next_inode
    }

    fn id(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).ok_or_else(missing)
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut Inode> {
        let id = self.id(path)?;
        self.files.get_mut(&id).ok_or_else(missing)
    }

    fn need_dir(&self, path: &Path) -> io::Result<()> {
        let dir = path.parent().ok_or_else(missing)?;
        self.dirs.contains_key(dir).then_some(()).ok_or_else(missing)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        if let Some((mode, uid, gid)) = self.dirs.get(path).copied() {
            return Ok(Stat { file: (2, 0), size: 0, modified: (0, 0), mode, uid, gid });
        }
        let id = self.id(path)?;
        let file = self.files.get(&id).ok_or_else(missing)?;
        Ok(Stat {
            file: (1, id),
            size: file.bytes.len() as u64,
            modified: (file.modified, 0),
            mode: file.mode,
            uid: file.uid,
            gid: file.gid,
        })
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.tick += 1;
        let tick = self.tick;
        self.written += bytes.len();
        let file = self.file(path)?;
        file.bytes.extend_from_slice(bytes);
        file.modified = tick;
        Ok(())
    }
}

impl Disk for FakeDisk {
    fn read(&self, path: &Path) -> io::Result<Contents> {
        self.look("read", path, |platter| {
            let stat = platter.stat(path)?;
            let bytes = platter.file(path)?.bytes.clone();
            // Inodes are never used twice here, so there is nothing to pin.
            let pin: Box<dyn Any + Send + Sync> = Box::new(());
            Ok(Contents { bytes, stat, pin })
        })
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.look("read", path, |platter| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = &platter.file(path)?.bytes;
            Ok(bytes.iter().skip(from).take(len).copied().collect())
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.look("stat", path, |platter| platter.stat(path))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.look("create", path, |platter| {
            platter.need_dir(path)?;
            if platter.names.contains(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            platter.new_file(path, mode);
            Ok(())
        })?;
        self.put_bytes("write", path, bytes)?;
        self.look("sync", path, |platter| {
            platter.file(path)?.sync();
            Ok(())
        })
    }

    fn set_owner(&self, path: &Path, uid: u32, gid: u32) -> io::Result<()> {
        self.look("chown", path, |platter| {
            let account = platter.account;
            if let Some(dir) = platter.dirs.get_mut(path) {
                (dir.1, dir.2) = (uid, gid);
                return Ok(());
            }
            let file = platter.file(path)?;
            if account.0 != 0 && (uid != file.uid || (gid != file.gid && gid != account.1)) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            (file.uid, file.gid) = (uid, gid);
            Ok(())
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.look("chmod", path, |platter| {
            if let Some(dir) = platter.dirs.get_mut(path) {
                dir.0 = mode;
                return Ok(());
            }
            platter.file(path)?.mode = mode;
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look("link", to, |platter| {
            platter.need_dir(to)?;
            let id = platter.id(from)?;
            if platter.names.contains(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            platter.name(to, id);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.look("rename", to, |platter| {
            platter.need_dir(to)?;
            let id = platter.unname(from).ok_or_else(missing)?;
            platter.name(to, id);
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.look("sync-dir", dir, |platter| {
            platter.sync(dir);
            platter.sweep();
            Ok(())
        })
    }

    fn append(&self, path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()> {
        self.look("open", path, |platter| {
            platter.need_dir(path)?;
            if !platter.names.contains(path) {
                platter.new_file(path, mode);
            }
            Ok(())
        })?;
        self.put_bytes("append", path, bytes)?;
        if !durable {
            return Ok(());
        }
        self.look("sync", path, |platter| {
            platter.file(path)?.sync();
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.look("remove", path, |platter| platter.unname(path).map(drop).ok_or_else(missing))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.look("list", dir, |platter| {
            platter.dirs.get(dir).ok_or_else(missing)?;
            let inside = platter.names.0.get(dir).into_iter().flat_map(BTreeMap::keys);
            let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
            Ok(inside.filter_map(name).collect())
        })
    }

    fn make_dir(&self, dir: &Path, mode: u32) -> io::Result<bool> {
        self.look("mkdir", dir, |platter| {
            if platter.dirs.contains_key(dir) {
                return Ok(false);
            }
            platter.need_dir(dir)?;
            let (uid, gid) = platter.account;
            let above = dir.parent().and_then(|above| platter.dirs.get(above));
            // What the directory above hands down.
            let shared = above.filter(|above| above.0 & 0o2000 != 0);
            let (setgid, gid) = shared.map_or((0, gid), |above| (0o2000, above.2));
            platter.dirs.insert(dir.to_owned(), (mode | setgid, uid, gid));
            Ok(true)
        })
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        self.look("remove-tree", dir, |platter| {
            platter.names.remove_below(dir);
            platter.durable.remove_below(dir);
            for below in below(&platter.dirs, dir) {
                platter.dirs.remove(&below);
                platter.unsynced.remove(&below);
            }
            Ok(())
        })
    }

    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        self.look("symlink", link, |platter| {
            platter.need_dir(link)?;
            if platter.names.contains(link) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // Nothing here follows a link: it is a file that says where it leads.
            let id = platter.new_file(link, 0o777);
            if let Some(file) = platter.files.get_mut(&id) {
                file.bytes = target.as_os_str().as_encoded_bytes().to_vec();
                file.is_replaced = true;
            }
            Ok(())
        })
    }

    fn with_lock(&self, lock: Lock<'_>, note: &[u8], work: &mut dyn FnMut()) -> io::Result<Locked> {
        let Lock { path, mode, .. } = lock;
        let taken = self.look("lock", path, |platter| {
            if !platter.names.contains(path) {
                platter.need_dir(path)?;
                platter.new_file(path, mode);
            }
            Ok(())
        });
        taken?;
        {
            let mut state = self.state();
            if !state.locked.insert(path.to_owned()) {
                return Ok(Locked::Busy);
            }
            if let Ok(file) = state.platter.file(path) {
                file.bytes = note.to_vec();
                file.is_replaced = true;
            }
        }
        work();
        let _: bool = self.state().locked.remove(path);
        Ok(Locked::Done { awaited: false })
    }
}
