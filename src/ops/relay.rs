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

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sys::clock::Clock;
use crate::sys::seat::{Moment, Relay};
use crate::text::transcript::Transcript;

use super::Error;

/// What is read at once (bytes); a terminal hands out no more.
const PIECE: usize = 4096;

/// What a relay relays.
#[derive(Debug)]
pub struct Relayed {
    /// Where the output is kept.
    pub log: PathBuf,
    /// Where what was taken lies until it is in the log.
    pub spool: PathBuf,
    /// The process whose end is the end of the job; `None` for what a job left behind.
    pub job: Option<u32>,
}

/// Relays until the job has ended. Whether somebody still sits at its terminal then.
pub fn run(clock: &dyn Clock, relayed: &Relayed) -> Result<bool, Error> {
    let failed = |e: io::Error| {
        Error::failed(format!("the window cannot be shown what the job says: {e}"))
            .hint("the window may be closed; `tpu check` shows how the job is")
    };
    let mut window = Relay::open(relayed.job).map_err(failed)?;
    let mut log = Log::open(relayed);
    let mut piece = [0; PIECE];
    let is_held = loop {
        match window.hear(&mut piece).map_err(failed)? {
            Moment::Said(count) => {
                let said = piece.get(..count).unwrap_or_default();
                let complaint = log.keep(said, clock.monotonic());
                window.show(said).map_err(failed)?;
                if let Some(complaint) = complaint {
                    window.show(complaint.as_bytes()).map_err(failed)?;
                }
            }
            Moment::Ended => break true,
            Moment::Closed => break false,
        }
    };
    log.close();
    Ok(is_held)
}

/// The log of a job, and what is still to be written there.
struct Log {
    file: Option<File>,
    path: PathBuf,
    spool: Spool,
    transcript: Transcript,
    /// Bytes that could not be written.
    lost: usize,
    /// What the window is to say of it, once.
    complaint: Complaint,
}

/// Whether it was said that the log cannot be written.
enum Complaint {
    None,
    Due(String),
    Said,
}

/// What stands where one relay was killed and the next one goes on.
const GAP: &[u8] = b"tpu: the log was interrupted here; at most 4096 bytes are missing\n";

impl Log {
    /// Goes on where an earlier relay was killed, if one was.
    fn open(relayed: &Relayed) -> Self {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&relayed.log);
        let spool = Spool::open(&relayed.spool);
        let left = spool.read();
        let mut log = Self {
            file: None,
            path: relayed.log.clone(),
            spool,
            transcript: Transcript::default(),
            lost: 0,
            complaint: Complaint::None,
        };
        match file {
            Ok(file) => log.file = Some(file),
            Err(error) => log.complain(&error),
        }
        match left {
            Left::Nothing => {}
            Left::Torn => log.write(GAP),
            Left::Piece(left) => log.recover(&left),
        }
        log
    }

    /// Writes what is missing of a piece. The whole of it may be there already.
    fn recover(&mut self, left: &Piece) {
        let mut lines = Vec::new();
        for bytes in [&left.open, &left.said] {
            self.transcript.take(bytes, Duration::ZERO, &mut lines);
        }
        let there = self.since(left.length);
        // One that remembers less of the bars may begin with a frame more.
        let starts = memchr::memchr_iter(b'\n', &lines).map(|end| end + 1);
        let mut ways = std::iter::once(0).chain(starts).filter_map(|start| lines.get(start..));
        let rest = ways.find_map(|lines| lines.strip_prefix(&*there));
        let missing = rest.unwrap_or_default().to_vec();
        self.write(&missing);
        self.write(GAP);
    }

    /// Keeps what the job has said. Returns what the window is to say of it, once.
    fn keep(&mut self, said: &[u8], now: Duration) -> Option<String> {
        self.spool.write(self.length(), &self.transcript.open(), said);
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

    fn complain(&mut self, error: &io::Error) {
        if matches!(self.complaint, Complaint::None) {
            let path = self.path.display();
            self.complaint = Complaint::Due(format!("\r\ntpu: cannot write {path}: {error}\r\n"));
        }
    }

    /// Writes what can be written; what cannot is said there, once something can be written again.
    fn write(&mut self, bytes: &[u8]) {
        if self.lost > 0 {
            let gap = format!(
                "tpu: {} could not be written here\n",
                crate::text::counted(self.lost, "byte")
            );
            if self.put(gap.as_bytes()) > 0 {
                self.lost += bytes.len();
                return;
            }
            self.lost = 0;
        }
        self.lost += self.put(bytes);
    }

    /// How many bytes are left when nothing more can be written.
    fn put(&mut self, mut bytes: &[u8]) -> usize {
        while let (Some(file), false) = (&mut self.file, bytes.is_empty()) {
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
        self.write(&lines);
        self.spool.remove();
    }

    /// What came into the log when it was of that length.
    fn since(&self, length: u64) -> Vec<u8> {
        let added = self.length().saturating_sub(length);
        let mut bytes = vec![0; usize::try_from(added).unwrap_or(0)];
        let read = self.file.as_ref().map(|file| file.read_exact_at(&mut bytes, length));
        if matches!(read, Some(Ok(()))) { bytes } else { Vec::new() }
    }

    fn length(&self) -> u64 {
        let length = |file: &File| file.metadata().ok().map(|about| about.len());
        self.file.as_ref().and_then(length).unwrap_or(0)
    }
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
    fn write(&mut self, length: u64, open: &[u8], said: &[u8]) {
        let Some(file) = &self.file else { return };
        self.count += 1;
        let count = self.count.to_le_bytes();
        self.record.clear();
        for part in [&count, &length.to_le_bytes(), &(open.len() as u64).to_le_bytes()] {
            self.record.extend_from_slice(part);
        }
        for part in [&(said.len() as u64).to_le_bytes(), open, said, &count] {
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
        let (open, rest) = number(rest)?;
        let (said, rest) = number(rest)?;
        let (open, rest) = rest.split_at_checked(usize::try_from(open).ok()?)?;
        let (said, rest) = rest.split_at_checked(usize::try_from(said).ok()?)?;
        let is_whole = number(rest)?.0 == count;
        is_whole.then(|| Self { length, open: open.to_vec(), said: said.to_vec() })
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Duration = Duration::ZERO;

    fn relayed(dir: &Path) -> Relayed {
        Relayed { log: dir.join("output.log"), spool: dir.join("spool"), job: None }
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
                log.file.as_ref().unwrap().set_len(cut).unwrap();
                drop(log);

                let mut log = Log::open(&relayed);
                for piece in pieces.iter().skip(killed + 1) {
                    log.keep(piece, ZERO);
                }
                log.close();
                let text = std::fs::read_to_string(&relayed.log).unwrap();
                let gap = String::from_utf8_lossy(GAP);
                assert!(text.contains(&*gap));
                let text = text.replace(&*gap, "");
                // A frame more, that the first would have left out.
                let text = text.replace("2/9\n", "");
                assert_eq!(text, String::from_utf8_lossy(&whole), "{killed}, {missing} missing");
                assert!(!relayed.spool.exists());
            }
        }
    }

    #[test]
    fn half_a_record_is_known_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let relayed = relayed(dir.path());
        let mut spool = Spool::open(&relayed.spool);
        spool.write(7, b"open", b"first");
        let first = std::fs::read(&relayed.spool).unwrap();
        spool.write(7, b"open", b"other");
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
        relayed.log = PathBuf::from("/dev/full");
        let mut log = Log::open(&relayed);
        let complaint = log.keep(b"lost words\n", ZERO).unwrap();
        assert!(complaint.contains("tpu: cannot write /dev/full: No space left"), "{complaint}");
        assert_eq!(log.keep(b"more\n", ZERO), None);
        log.file = Some(tempfile::tempfile().unwrap());
        log.keep(b"kept\n", ZERO);
        let mut text = String::new();
        let mut file = log.file.as_ref().unwrap();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "tpu: 16 bytes could not be written here\nkept\n");
    }
}
