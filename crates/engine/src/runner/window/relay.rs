//! The window of a job that runs here, and its log: what the job writes to its terminal is shown in the
//! window and kept in `<log_dir>/output.log`, as a [`Transcript`].
//!
//! The job has a terminal of its own, and not the window's with a pipe beside it (`tmux pipe-pane`), because
//! such a pipe loses lines. Measured with tmux 3.3a and 500,000 lines of 100 bytes, written as fast as the
//! window takes them: when the pipe's reader was killed and started again at once, 488 to 958 lines were
//! missing, unsaid, and 338,984 with a reader that took 5 ms for each 64 kB; when somebody piped the pane
//! elsewhere, all lines from then on; and tmux kept in its own memory (58 MB) what the reader had not taken.
//! Here, in the same trial, nothing is missing at any speed, for window and log hold the job back. With the
//! relay killed three times, twice, 42 lines were missing, the log saying where: what was taken lies in
//! `spool` before anything is done with it, and so only what was read in that very moment can be lost, at most
//! 4096 bytes.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::unwritten::{LASTS, OVER, UNWRITTEN};
use crate::runner::RunError;
use tpu_core::classify::own_line;
use tpu_core::model::ids::LaunchToken;
use tpu_core::text::transcript::Transcript;
use tpu_core::text::{self, counted};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::pty::{Moment, Relay};
use tpu_system::sys::shared;

/// What is read at once (bytes); a terminal hands out no more.
const PIECE: usize = 4096;

/// What a relay relays.
#[derive(Debug)]
pub struct Relayed {
    /// Where the output is kept.
    pub log: PathBuf,
    /// Where what was taken lies until it is in the log.
    pub spool: PathBuf,
    /// Which job.
    pub job: String,
    /// The process whose end is the end of the job; `None` for what a job left behind.
    pub pid: Option<u32>,
}

impl Relayed {
    /// The token of the launch, as the launcher was given it.
    pub fn token(&self) -> Option<LaunchToken> {
        let spec = std::fs::read(self.spool.with_file_name("spec")).ok()?;
        let token = spec.split(|byte| *byte == 0).next()?;
        Some(LaunchToken::from(std::str::from_utf8(token).ok()?))
    }
}

/// Relays until the job has ended, and counts the bytes that are heard. Says when the log takes nothing more (`true`), and
/// when it does again. Whether somebody still sits at its terminal at the end.
pub fn run(
    clock: &dyn Clock,
    relayed: &Relayed,
    heard: &AtomicU64,
    is_losing: &mut dyn FnMut(bool),
) -> Result<bool, RunError> {
    let failed = |e: io::Error| {
        RunError::failed(
            format!("the window cannot be shown what the job says: {e}"),
            "the window may be closed; `tpu check` shows how the job is",
        )
    };
    let mut window = Relay::open(relayed.pid).map_err(failed)?;
    let mut log = Log::open(relayed);
    let mut piece = [0; PIECE];
    let is_held = loop {
        match window.hear(&mut piece).map_err(failed)? {
            Moment::Output(count) => {
                let said = piece.get(..count).unwrap_or_default();
                heard.fetch_add(said.len() as u64, Ordering::Relaxed);
                let complaint = log.keep(said, clock.monotonic());
                log.tell_of_loss(is_losing);
                window.show(said).map_err(failed)?;
                if let Some(complaint) = complaint {
                    window.show(complaint.as_bytes()).map_err(failed)?;
                }
            }
            Moment::Ended => break true,
            Moment::Closed => break false,
        }
    };
    let was_losing = log.is_losing;
    log.close();
    if was_losing {
        is_losing(false);
    }
    Ok(is_held)
}

/// The line that a job has begun and not ended, as its terminal shows it; the log has it only once it is whole. `None` where
/// there is none, or it cannot be read.
pub fn open_line(spool: &Path) -> Option<Vec<u8>> {
    let piece = Piece::parse(&std::fs::read(spool).ok()?)?;
    let mut transcript = Transcript::default();
    for bytes in [&piece.open, &piece.said] {
        transcript.take(bytes, Duration::ZERO, &mut Vec::new());
    }
    let open = transcript.open();
    let row = open.rsplit(|byte| *byte == b'\n').next()?;
    let row = text::strip(row.strip_suffix(b"\r").unwrap_or(row)).into_owned();
    (!row.is_empty()).then_some(row)
}

/// The log of a job, and what is still to be written there.
struct Log {
    /// The file that was at `path` when it was opened, and which one that was.
    file: Option<(File, FileId)>,
    path: PathBuf,
    job: String,
    spool: Spool,
    transcript: Transcript,
    /// Bytes that could not be written, and of which nobody who reads the log knows yet.
    lost: u64,
    /// All that could not be written, whether the log says so or not.
    missing: u64,
    /// Why, as it was met last.
    why: String,
    /// Whether it was written down that nothing can be written.
    is_losing: bool,
    /// The file beside the launcher that says it, and the token of the launch.
    mark: (PathBuf, String),
    /// What else is to be said there before the next words of the job.
    due: Vec<&'static str>,
    /// What the window is to say of it, once.
    complaint: Complaint,
}

/// Device and inode.
type FileId = (u64, u64);

/// Whether it was said that the log cannot be written.
enum Complaint {
    None,
    Due(String),
    Said,
}

/// What is said where one relay was killed and the next one goes on.
const GAP: &str = "the log was interrupted here; at most 4096 bytes are missing";

/// What is said at the beginning of a log whose predecessor somebody has taken away.
const ANEW: &str = "the log was moved or deleted; it continues here";

impl Log {
    /// Goes on where an earlier relay was killed, if one was.
    fn open(relayed: &Relayed) -> Self {
        let spool = Spool::open(&relayed.spool);
        let left = spool.read();
        let mut log = Self {
            file: None,
            path: relayed.log.clone(),
            job: relayed.job.clone(),
            spool,
            transcript: Transcript::default(),
            lost: 0,
            missing: 0,
            why: String::new(),
            is_losing: false,
            mark: (
                relayed.spool.with_file_name(UNWRITTEN),
                relayed.token().map(|token| token.to_string()).unwrap_or_default(),
            ),
            due: Vec::new(),
            complaint: Complaint::None,
        };
        log.find();
        match left {
            // That of an earlier launch says nothing of this one.
            Left::Nothing => drop(std::fs::remove_file(&log.mark.0)),
            Left::Torn => log.say(GAP),
            Left::Piece(left) => log.recover(&left),
        }
        log
    }

    /// Opens the file that is at the path now, unless it is open: a log may be moved away, deleted, or come
    /// to be writable.
    fn find(&mut self) {
        let there = std::fs::metadata(&self.path).ok().map(|about| id(&about));
        if there.is_some() && self.file.as_ref().map(|(_, id)| *id) == there {
            return;
        }
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(&self.path);
        if there.is_none() && opened.is_ok() {
            shared::hand_down(&self.path);
        }
        let opened = opened.and_then(|file| Ok((id(&file.metadata()?), file)));
        match opened {
            Ok((id, file)) => {
                if self.file.replace((file, id)).is_some() {
                    self.due.push(ANEW);
                }
            }
            // What was opened once is written to, wherever it is now.
            Err(error) => self.complain(&error),
        }
    }

    /// Writes what is missing of a piece. The whole of it may be there already.
    fn recover(&mut self, left: &Piece) {
        let mut lines = Vec::new();
        for bytes in [&left.open, &left.said] {
            self.transcript.take(bytes, Duration::ZERO, &mut lines);
        }
        (self.lost, self.missing) = (left.lost, left.lost);
        let there = self.since(left.length);
        // One that remembers less of the bars may begin with a frame more.
        let starts = memchr::memchr_iter(b'\n', &lines).map(|end| end + 1);
        let mut ways = std::iter::once(0).chain(starts).filter_map(|start| lines.get(start..));
        let rest = ways.find_map(|lines| lines.strip_prefix(&*there));
        let missing = rest.unwrap_or_default().to_vec();
        self.write(&missing);
        self.say(GAP);
    }

    /// Keeps what the job has said. Returns what the window is to say of it, once.
    fn keep(&mut self, said: &[u8], now: Duration) -> Option<String> {
        self.find();
        self.spool.write((self.length(), self.lost), &self.transcript.open(), said);
        let mut lines = Vec::new();
        self.transcript.take(said, now, &mut lines);
        self.write(&lines);
        match std::mem::replace(&mut self.complaint, Complaint::Said) {
            Complaint::Due(complaint) => Some(complaint),
            said => {
                self.complaint = said;
                None
            }
        }
    }

    /// Writes down that nothing can be written, or that it can again, as soon as that is so.
    fn tell_of_loss(&mut self, is_losing: &mut dyn FnMut(bool)) {
        let is_now = self.lost > 0;
        if is_now != self.is_losing {
            self.is_losing = is_now;
            self.write_mark();
            is_losing(is_now);
        }
    }

    /// Says beside the launcher what is not in the log. A disk that is full may take the name alone.
    fn write_mark(&self) {
        let (path, token) = &self.mark;
        let Self { missing, why, .. } = self;
        let word = if self.lost > 0 { LASTS } else { OVER };
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o664).open(path);
        if let Ok(mut file) = opened {
            drop(write!(file, "{token}\n{word}\n{missing}\n{why}\n"));
        }
    }

    fn complain(&mut self, error: &io::Error) {
        self.why = error.to_string();
        if matches!(self.complaint, Complaint::None) {
            let said = format!("cannot write {}: {error}", self.path.display());
            self.complaint = Complaint::Due(format!("\r\n{}\r\n", own_line(&self.job, &said)));
        }
    }

    /// Writes what can be written; what cannot is said there, once something can be written again.
    fn write(&mut self, bytes: &[u8]) {
        let left = if self.tell() { self.put(bytes) } else { bytes.len() };
        self.lost += left as u64;
        self.missing += left as u64;
    }

    /// Says something of ours in the log, now or as soon as it can be written.
    fn say(&mut self, what: &'static str) {
        self.due.push(what);
        self.tell();
    }

    /// Says what is to be said before the next words of the job; `false` if that cannot be written.
    fn tell(&mut self) -> bool {
        let lost = usize::try_from(self.lost).unwrap_or(usize::MAX);
        let lost =
            (lost > 0).then(|| format!("{} could not be written here", counted(lost, "byte")));
        let said = lost.into_iter().chain(self.due.iter().map(|due| (*due).to_owned()));
        let lines: String = said.map(|said| own_line(&self.job, &said) + "\n").collect();
        if lines.is_empty() {
            return true;
        }
        let torn = if self.is_at_a_beginning() { "" } else { "\n" };
        if self.put(format!("{torn}{lines}").as_bytes()) > 0 {
            return false;
        }
        self.lost = 0;
        self.due.clear();
        true
    }

    /// Whether what is written next begins a line.
    fn is_at_a_beginning(&self) -> bool {
        let Some(last) = self.length().checked_sub(1) else { return true };
        self.since(last) == b"\n"
    }

    /// How many bytes are left when nothing more can be written.
    fn put(&mut self, mut bytes: &[u8]) -> usize {
        while let (Some((file, _)), false) = (&mut self.file, bytes.is_empty()) {
            match file.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.complain(&error);
                    break;
                }
            }
        }
        bytes.len()
    }

    /// Writes the rest; nothing is left to recover.
    fn close(mut self) {
        let mut lines = Vec::new();
        self.transcript.end(&mut lines);
        self.find();
        self.write(&lines);
        if self.missing > 0 {
            self.write_mark();
        }
        self.spool.remove();
    }

    /// What came into the log when it was of that length.
    fn since(&self, length: u64) -> Vec<u8> {
        let added = self.length().saturating_sub(length);
        let mut bytes = vec![0; usize::try_from(added).unwrap_or(0)];
        let read = self.file.as_ref().map(|(file, _)| file.read_exact_at(&mut bytes, length));
        if matches!(read, Some(Ok(()))) { bytes } else { Vec::new() }
    }

    fn length(&self) -> u64 {
        let length = |(file, _): &(File, FileId)| file.metadata().ok().map(|about| about.len());
        self.file.as_ref().and_then(length).unwrap_or(0)
    }
}

fn id(about: &Metadata) -> FileId {
    (about.dev(), about.ino())
}

/// The file with what was taken and may not be in the log yet, which is replaced with each piece. Without it
/// (no space) nothing is recovered.
struct Spool {
    file: Option<File>,
    path: PathBuf,
    record: Vec<u8>,
    count: u64,
}

/// What an earlier relay had in its hands.
enum Left {
    Nothing,
    /// It was killed while it wrote that down.
    Torn,
    Piece(Piece),
}

struct Piece {
    /// Length of the log before it.
    length: u64,
    /// Bytes before it that could not be written.
    lost: u64,
    /// What had not come out of the transcript before it.
    open: Vec<u8>,
    /// The piece itself.
    said: Vec<u8>,
}

impl Spool {
    fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Self { file: file.open(path).ok(), path: path.to_owned(), record: Vec::new(), count: 0 }
    }

    /// Between two copies of one number, so that half a record is known as one.
    fn write(&mut self, (length, lost): (u64, u64), open: &[u8], said: &[u8]) {
        let Some(file) = &self.file else { return };
        self.count += 1;
        let count = self.count.to_le_bytes();
        self.record.clear();
        let mut numbers = Vec::new();
        for number in [length, lost, open.len() as u64, said.len() as u64] {
            numbers.extend_from_slice(&number.to_le_bytes());
        }
        for part in [&count, &*numbers, open, said, &count] {
            self.record.extend_from_slice(part);
        }
        if file.write_all_at(&self.record, 0).is_err() {
            self.file = None;
            self.remove();
        }
    }

    fn read(&self) -> Left {
        let Ok(bytes) = std::fs::read(&self.path) else { return Left::Nothing };
        if bytes.is_empty() {
            return Left::Nothing;
        }
        Piece::parse(&bytes).map_or(Left::Torn, Left::Piece)
    }

    fn remove(&self) {
        drop(std::fs::remove_file(&self.path));
    }
}

impl Piece {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = number(bytes)?;
        let (length, rest) = number(rest)?;
        let (lost, rest) = number(rest)?;
        let (open, rest) = number(rest)?;
        let (said, rest) = number(rest)?;
        let (open, rest) = rest.split_at_checked(usize::try_from(open).ok()?)?;
        let (said, rest) = rest.split_at_checked(usize::try_from(said).ok()?)?;
        let is_whole = number(rest)?.0 == count;
        is_whole.then(|| Self { length, lost, open: open.to_vec(), said: said.to_vec() })
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::classify::{Classifier, Input};

    const ZERO: Duration = Duration::ZERO;

    fn relayed(dir: &Path) -> Relayed {
        Relayed {
            log: dir.join("output.log"),
            spool: dir.join("spool"),
            job: "alice/7".to_owned(),
            pid: None,
        }
    }

    /// The record of a piece is there; how much of its lines is in the log differs.
    #[test]
    fn whenever_a_relay_is_killed_the_next_writes_what_is_missing() {
        let pieces: [&[u8]; 5] = [b"one\ntw", b"o\nthree\n", b"\r1/9\r2/9", b"\r9/9\nfo", b"ur\n"];
        let mut whole = Vec::new();
        let mut transcript = Transcript::default();
        for piece in pieces {
            transcript.take(piece, ZERO, &mut whole);
        }
        for killed in 0..pieces.len() {
            for missing in 0..12 {
                let dir = tempfile::tempdir().unwrap();
                let relayed = relayed(dir.path());
                let mut log = Log::open(&relayed);
                for piece in pieces.iter().take(killed) {
                    assert_eq!(log.keep(piece, ZERO), None);
                }
                let before = log.length();
                assert_eq!(log.keep(pieces[killed], ZERO), None);
                let cut = log.length().saturating_sub(missing).max(before);
                log.file.as_ref().unwrap().0.set_len(cut).unwrap();
                drop(log);

                let mut log = Log::open(&relayed);
                for piece in pieces.iter().skip(killed + 1) {
                    log.keep(piece, ZERO);
                }
                log.close();
                let text = std::fs::read_to_string(&relayed.log).unwrap();
                let gap = own_line("alice/7", GAP) + "\n";
                assert!(text.contains(&gap));
                let text = text.replace(&gap, "");
                // A frame more, that the first would have left out.
                let text = text.replace("2/9\n", "");
                assert_eq!(text, String::from_utf8_lossy(&whole), "{killed}, {missing} missing");
                assert!(!relayed.spool.exists());
            }
        }
    }

    #[test]
    fn a_line_that_is_not_ended_yet_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let relayed = relayed(dir.path());
        let mut log = Log::open(&relayed);
        assert_eq!(open_line(&relayed.spool), None);
        for (said, open) in [
            ("one\nGo on", Some("Go on")),
            ("? [y/N] ", Some("Go on? [y/N] ")),
            ("y\n", None),
            ("1/9\r2/9", Some("2/9")),
        ] {
            assert_eq!(log.keep(said.as_bytes(), ZERO), None);
            let line = open_line(&relayed.spool);
            assert_eq!(line.as_deref(), open.map(str::as_bytes));
        }
        log.close();
        assert_eq!(open_line(&relayed.spool), None);
    }

    #[test]
    fn what_the_relay_says_is_no_evidence_about_the_job() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(&Relayed { log: "/dev/full".into(), ..relayed(dir.path()) });
        let complaint = log.keep(b"step 7\n", ZERO).unwrap();
        let window = format!("step 7{complaint}");
        let input = Input { text: window.as_bytes(), ..Input::default() };
        let verdict = Classifier::builtin().classify(&input);
        assert_eq!(verdict.class.failure(), None, "{verdict:?}");
    }

    #[test]
    fn half_a_record_is_known_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let relayed = relayed(dir.path());
        let mut spool = Spool::open(&relayed.spool);
        spool.write((7, 0), b"open", b"first");
        let first = std::fs::read(&relayed.spool).unwrap();
        spool.write((7, 0), b"open", b"other");
        let whole = std::fs::read(&relayed.spool).unwrap();
        assert!(matches!(spool.read(), Left::Piece(piece) if piece.said == b"other"));
        for cut in 1..whole.len() - 1 {
            let torn = [&whole[..cut], &first[cut..]].concat();
            let is_torn = Piece::parse(&torn).is_none_or(|piece| piece.said != b"first"[..]);
            assert!(is_torn, "cut at {cut}");
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_said_once_and_the_gap_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut relayed = relayed(dir.path());
        relayed.log = dir.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &relayed.log).unwrap();
        let mut spec = File::create(dir.path().join("spec")).unwrap();
        spec.write_all(b"token-7\0alice/7\0native\0").unwrap();
        let mark = || std::fs::read_to_string(dir.path().join(UNWRITTEN)).unwrap_or_default();
        let mut log = Log::open(&relayed);
        let complaint = log.keep(b"lost words\n", ZERO).unwrap();
        let mut told = Vec::new();
        log.tell_of_loss(&mut |is_losing| told.push(is_losing));
        assert!(mark().starts_with("token-7\nlasts\n11\nNo space left"), "{}", mark());
        assert!(complaint.contains("tpu: alice/7 · cannot write"), "{complaint}");
        assert!(complaint.contains("No space left"), "{complaint}");
        assert_eq!(log.keep(b"more\n", ZERO), None);
        log.tell_of_loss(&mut |is_losing| told.push(is_losing));
        assert_eq!(told, [true], "once");
        // Killed, while nothing can be written: the next one knows what is missing.
        drop(log);
        let mut log = Log::open(&relayed);
        log.keep(b"nor this\n", ZERO);
        std::fs::remove_file(&relayed.log).unwrap();
        File::create(&relayed.log).unwrap().write_all(b"half a lin").unwrap();
        log.keep(b"kept\n", ZERO);
        let text = std::fs::read_to_string(&relayed.log).unwrap();
        let said = [
            "half a lin",
            "tpu: alice/7 · 25 bytes could not be written here",
            "tpu: alice/7 · the log was interrupted here; at most 4096 bytes are missing",
            "tpu: alice/7 · the log was moved or deleted; it continues here",
            "kept",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), said);
        log.close();
        assert!(mark().starts_with("token-7\nover\n25\n"), "{}", mark());
        drop(Log::open(&relayed));
        assert_eq!(mark(), "", "the next one begins anew");
    }

    #[test]
    fn a_log_that_is_taken_away_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let relayed = relayed(dir.path());
        let old = dir.path().join("output.log.1");
        let mut log = Log::open(&relayed);
        log.keep(b"one\n", ZERO);
        std::fs::rename(&relayed.log, &old).unwrap();
        log.keep(b"two\n", ZERO);
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "one\n");
        let text = || std::fs::read_to_string(&relayed.log).unwrap();
        assert_eq!(text(), own_line("alice/7", ANEW) + "\ntwo\n");
        std::fs::remove_file(&relayed.log).unwrap();
        log.close();
        assert_eq!(text(), own_line("alice/7", ANEW) + "\n");
    }
}
