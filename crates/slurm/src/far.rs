//! The disk of a cluster, through its login node.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::{Content, Entry, Files, Listing};
use tpu_engine::runner::tree::{self, COPIED, FIND, InTree};
use tpu_system::sys::proc::{self, Feed, Spawn};

use super::ask::{LOOK, PATIENCE};
use super::client::{ClusterDisk, FileEnd, FileMark};
use super::way::{LoginWay, ThereSaid};

/// A copy of code may take so long.
const COPYING: Duration = Duration::from_secs(600);

/// By this code a script says that nothing has the name.
const NOT_THERE: i32 = 44;

/// By this one, that what has it is no directory.
const NO_DIRECTORY: i32 = 45;

/// Begins every script: it ends with that code if nothing has the name that it is given first. That a disk cannot be
/// asked does not say that something is missing.
const THERE: &str = "LC_ALL=C; export LC_ALL; \
    e=$(stat -- \"$1\" 2>&1 >/dev/null) || case $e in *'No such file'*|*'Not a directory'*) exit 44;; \
    *) echo \"$e\" >&2; exit 1;; esac; ";

/// What begins with it ends if the name that it is given first is a link.
const NO_LINK: &str = "[ ! -L \"$1\" ] || { echo \"$1 is a symbolic link\" >&2; exit 1; }; ";

/// What lies in a directory: a letter for what it holds, and the name, each ending in NUL.
const LIST: &str = "[ -d \"$1\" ] || exit 45; cd -- \"$1\" || exit 1; \
    for f in * .[!.]* ..?*; do [ -e \"$f\" ] || [ -L \"$f\" ] || continue; \
    if [ -d \"$f\" ]; then if [ -n \"$(ls -A -- \"$f\" | head -n 1)\" ]; then k=D; else k=N; fi; \
    elif [ -s \"$f\" ]; then k=F; else k=N; fi; printf '%s\\0%s\\0' $k \"$f\"; done";

/// The disk.
pub(super) struct FarDisk<'a> {
    pub(super) way: &'a LoginWay<'a>,
}

impl FarDisk<'_> {
    fn ask(
        &self,
        script: &str,
        words: &[&str],
        (stdin, limit): (Option<Feed>, Duration),
    ) -> io::Result<ThereSaid> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let said = self.way.there(script, &words, (stdin, limit));
        said.map_err(|silence| io::Error::new(io::ErrorKind::TimedOut, silence.to_string()))
    }

    /// A part of a file, if what the script begins with lets it come so far.
    fn part(
        &self,
        begin: &str,
        path: &Path,
        (from, most): (u64, u64),
    ) -> io::Result<Option<Vec<u8>>> {
        let first = from.saturating_add(1);
        let cut = if most == u64::MAX { String::new() } else { format!(" | head -c {most}") };
        let script = format!("{begin} tail -c +{first} -- \"$1\"{cut}");
        let said = self.ask(&script, &[text(path)?], (None, PATIENCE))?;
        match said.code {
            0 => Ok(Some(said.stdout)),
            NOT_THERE => Ok(None),
            _ => Err(failed(&said)),
        }
    }
}

/// A path that can be asked for: another shell reads it as text.
fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| {
        let what = format!("{} is no UTF-8: a login node is not asked for it", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

fn failed(said: &ThereSaid) -> io::Error {
    let why = said.stderr.lines().last().unwrap_or_default();
    io::Error::other(match why {
        "" => format!("code {} of the login node", said.code),
        why => why.to_owned(),
    })
}

impl Files for FarDisk<'_> {
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        let script = format!("{THERE} [ -d \"$1\" ] || exit {NO_DIRECTORY}");
        let said = self.ask(&script, &[text(path)?], (None, PATIENCE))?;
        match said.code {
            0 => Ok(true),
            NOT_THERE | NO_DIRECTORY => Ok(false),
            _ => Err(failed(&said)),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        let said = self.ask(&format!("{THERE} {LIST}"), &[text(dir)?], (None, PATIENCE))?;
        match said.code {
            0 => {}
            NOT_THERE => return Ok(Listing::NotThere),
            NO_DIRECTORY => return Ok(Listing::NoDirectory),
            _ => return Err(failed(&said)),
        }
        let words: Vec<&[u8]> = said.stdout.split(|byte| *byte == 0).collect();
        let entry = |pair: &[&[u8]]| {
            let [kind, name] = pair else { return None };
            let content = match *kind {
                b"D" => Content::Directory,
                b"F" => Content::File,
                _ => Content::Nothing,
            };
            Some(Entry { name: OsString::from_vec(name.to_vec()), content: Ok(Some(content)) })
        };
        let entries = words.chunks(2).filter_map(entry).collect();
        Ok(Listing::Entries { entries, unread: None })
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.part(THERE, path, (from, most))
    }

    fn read_own(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.part(&format!("{THERE} {NO_LINK}"), path, (from, most))
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let said = self.ask("mkdir -p -- \"$1\"", &[text(dir)?], (None, PATIENCE))?;
        if said.code == 0 { Ok(()) } else { Err(failed(&said)) }
    }

    fn make_dirs(&self, dirs: &[PathBuf]) -> io::Result<()> {
        let [_, _, ..] = dirs else { return dirs.iter().try_for_each(|dir| self.make_dir(dir)) };
        let names: Vec<&str> = dirs.iter().map(|dir| text(dir)).collect::<io::Result<_>>()?;
        let asked: String = names.iter().flat_map(|name| [*name, "\0"]).collect();
        let said = self.ask(
            "xargs -0 mkdir -p --",
            &[],
            (Some(Feed::from(asked.into_bytes())), PATIENCE),
        )?;
        if said.code == 0 { Ok(()) } else { Err(failed(&said)) }
    }

    fn tree(&self, dir: &Path) -> io::Result<Option<Vec<InTree>>> {
        let script = format!("{THERE} cd -- \"$1\" && {FIND}");
        let said = self.ask(&script, &[text(dir)?], (None, COPYING))?;
        match said.code {
            0 => tree::read(&said.stdout).map(Some),
            NOT_THERE => Ok(None),
            _ => Err(failed(&said)),
        }
    }

    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        _: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let packed = packed(from, what)?;
        let length = packed.metadata()?.len();
        // A parcel of which a part is lost on the way is none.
        let script = format!(
            "set -e; mkdir -p -- \"$1.partial\"; cat >\"$1.partial.tar\"; \
             if [ \"$(wc -c <\"$1.partial.tar\")\" -ne {length} ]; then rm -f -- \"$1.partial.tar\"; \
             echo 'the connection broke on the way' >&2; exit 1; fi; \
             tar -x --no-same-owner -C \"$1.partial\" -f \"$1.partial.tar\"; rm -f -- \"$1.partial.tar\"; \
             cd -- \"$1.partial\"; rm -f -- {COPIED}; {FIND} >{COPIED} || rm -f -- {COPIED}; cd /; \
             mv -T -- \"$1.partial\" \"$1\""
        );
        let feed = Feed::File(Arc::new(packed));
        let said = self.ask(&script, &[text(to)?], (Some(feed), COPYING))?;
        if said.code == 0 { Ok(()) } else { Err(failed(&said)) }
    }
}

/// What is to be put, as one file without a name.
fn packed(from: &Path, what: &[PathBuf]) -> io::Result<fs::File> {
    let mut list = tempfile::tempfile()?;
    for path in what {
        let kind = match fs::symlink_metadata(from.join(path)) {
            Ok(meta) => meta.file_type(),
            // Removed meanwhile: whoever writes there is at work.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        // Anything else is no code.
        if kind.is_dir() || kind.is_file() || kind.is_symlink() {
            let path = Path::new(".").join(path);
            list.write_all(path.as_os_str().as_bytes())?;
            list.write_all(b"\0")?;
        }
    }
    let parcel = tempfile::NamedTempFile::new()?;
    let mut tar = Spawn::new("tar")
        .arg("-C")
        .arg(from)
        .args(["--null", "--no-recursion", "--ignore-failed-read", "-T", "-", "-cf"])
        .arg(parcel.path())
        .timeout(COPYING);
    tar.stdin = Some(Feed::File(Arc::new(list)));
    let output = proc::run(&tar).map_err(|e| io::Error::other(e.to_string()))?;
    // Code 1: a file has changed while it was read, which code does while somebody writes it.
    if !matches!(output.status.shell_code(), 0 | 1) {
        return Err(io::Error::other(output.complaint()));
    }
    Ok(parcel.into_file())
}

impl ClusterDisk for FarDisk<'_> {
    fn marks(&self, paths: &[PathBuf]) -> io::Result<Vec<Option<FileMark>>> {
        // A name of two lines is one that nobody has asked for.
        let names: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
        let asked: Vec<u8> =
            names.iter().flat_map(|name| [name.as_bytes(), b"\n"].concat()).collect();
        let script =
            "while IFS= read -r f; do stat -L -c '%s %Y' -- \"$f\" 2>/dev/null || echo -; done";
        let said = self.ask(script, &[], (Some(Feed::from(asked)), LOOK))?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let marks: Vec<Option<FileMark>> = text.lines().map(mark).collect();
        if said.code != 0 || marks.len() != paths.len() {
            return Err(failed(&said));
        }
        Ok(marks)
    }

    fn ends(&self, wanted: &[(PathBuf, u64)]) -> io::Result<Vec<Option<FileEnd>>> {
        let asked: Vec<u8> = wanted
            .iter()
            // A shell counts no further.
            .map(|(path, most)| (path.as_os_str().as_bytes(), (*most).min(i64::MAX.unsigned_abs())))
            .flat_map(|(path, most)| [format!("{most} ").as_bytes(), path, b"\n"].concat())
            .collect();
        let said = self.ask(ENDS, &[], (Some(Feed::from(asked)), PATIENCE))?;
        match ends(&said.stdout, wanted.len()) {
            Some(ends) if said.code == 0 => Ok(ends),
            Some(_) | None => Err(failed(&said)),
        }
    }
}

/// Writes of each file `FROM LENGTH` and so many bytes of its end. Its names come one a line, each with how many bytes
/// are wanted in front.
const ENDS: &str = "LC_ALL=C; export LC_ALL; while IFS=' ' read -r m f; do \
    [ ! -L \"$f\" ] && s=$(stat -c %s -- \"$f\" 2>/dev/null) || { echo -; continue; }; \
    b=0; [ \"$s\" -le \"$m\" ] || b=$((s-m)); echo \"$b $((s-b))\"; \
    tail -c +$((b+1)) -- \"$f\" | head -c $((s-b)); done";

/// Reads what that has written. `None` where a file has become shorter meanwhile.
fn ends(mut said: &[u8], count: usize) -> Option<Vec<Option<FileEnd>>> {
    let mut ends = Vec::with_capacity(count);
    for _ in 0..count {
        let (line, rest) = said.split_at_checked(memchr::memchr(b'\n', said)?)?;
        said = rest.get(1..)?;
        if line == b"-" {
            ends.push(None);
            continue;
        }
        let (from, length) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let (bytes, rest) = said.split_at_checked(length.parse().ok()?)?;
        said = rest;
        ends.push(Some(FileEnd { bytes: bytes.to_vec(), from: from.parse().ok()? }));
    }
    said.is_empty().then_some(ends)
}

/// Reads `SIZE SECONDS`; `-` is a file that is not there.
fn mark(line: &str) -> Option<FileMark> {
    let (length, written) = line.split_once(' ')?;
    Some(FileMark {
        length: length.parse().ok()?,
        written: Timestamp::from_second(written.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a script says here, where `sh` is the login node.
    fn here(script: &str, words: &[&str], stdin: &[u8]) -> proc::Output {
        let sh = Spawn::new("sh").args(["-c", script, "sh"]).args(words.iter().copied());
        proc::run(&sh.stdin(stdin)).unwrap()
    }

    #[test]
    fn what_is_missing_is_told_from_what_cannot_be_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it's here");
        let code = || here(THERE, &[path.to_str().unwrap()], b"").status.shell_code();
        assert_eq!(code(), NOT_THERE);
        fs::create_dir(&path).unwrap();
        assert_eq!(code(), 0);
    }

    #[test]
    fn a_directory_is_listed_with_what_each_name_holds() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("full/x")).unwrap();
        fs::create_dir(dir.path().join(".empty")).unwrap();
        drop(fs::File::create(dir.path().join("two\nlines")).unwrap());
        let listed = here(&format!("{THERE} {LIST}"), &[dir.path().to_str().unwrap()], b"");
        let mut words: Vec<&[u8]> = listed.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(words.pop(), Some(&b""[..]));
        let mut pairs: Vec<_> = words.chunks(2).map(|pair| (pair[1], pair[0])).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(&b".empty"[..], &b"N"[..]), (b"full", b"D"), (b"two\nlines", b"N")]);
    }

    #[test]
    fn a_parcel_holds_what_is_code() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("sub")).unwrap();
        drop(fs::File::create(from.join("sub/-x")).unwrap());
        std::os::unix::fs::symlink("nowhere", from.join("link")).unwrap();
        let what = ["sub", "sub/-x", "link", "gone"].map(PathBuf::from);
        let parcel = packed(&from, &what).unwrap();
        let mut list = Spawn::new("tar").args(["-t"]);
        list.stdin = Some(Feed::File(Arc::new(parcel)));
        assert_eq!(proc::run(&list).unwrap().text(), "./sub/\n./sub/-x\n./link\n");
    }

    #[test]
    fn the_ends_of_files_are_told_from_one_another() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("one", "hello\n"), ("it's two", "a b\n-\n"), ("empty", "")] {
            io::Write::write_all(
                &mut fs::File::create(dir.path().join(name)).unwrap(),
                text.as_bytes(),
            )
            .unwrap();
        }
        let asked = ["one", "gone", "it's two", "empty"]
            .map(|name| format!("4 {}/{name}\n", dir.path().display()));
        let said = here(ENDS, &[], asked.concat().as_bytes()).stdout;
        let end = |from, text: &str| Some(FileEnd { bytes: text.as_bytes().to_vec(), from });
        let all = vec![end(2, "llo\n"), None, end(2, "b\n-\n"), end(0, "")];
        assert_eq!(ends(&said, 4), Some(all));
        assert_eq!(ends(&said[..said.len() - 3], 4), None, "a part of it");
        assert_eq!(ends(&said, 3), None);
    }

    #[test]
    fn marks_are_read() {
        let found = mark("120 99").unwrap();
        assert_eq!((found.length, found.written.as_second()), (120, 99));
        assert_eq!(mark("-"), None);
    }
}
