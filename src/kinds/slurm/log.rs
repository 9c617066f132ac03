//! What jobs print: `LOG_DIR/output.log`, on the disk that the nodes see.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::model::job::Job;
use crate::runner::{Chunk, Want};
use crate::text;

use super::client::{ClusterDisk, FileEnd, FileMark};

/// Lines that are shown where so many above them are asked for.
const SCREEN: u32 = 50;

/// A line has about so many bytes: what is read of a log for some of its lines.
const LINE: u64 = 200;

/// No fewer bytes are read at the end of a log.
const LEAST: u64 = 64 * 1024;

/// The log of a job.
pub(super) fn path(job: &Job) -> Option<PathBuf> {
    job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))
}

/// A number that changes when the log does, and about how many lines are above those that are shown.
pub(super) fn printed(mark: &FileMark) -> crate::runner::OutputMark {
    let written = mark.written.as_second().unsigned_abs();
    crate::runner::OutputMark {
        mark: mark.length.rotate_left(32) ^ written,
        above: (mark.length / LINE).saturating_sub(u64::from(SCREEN)),
    }
}

/// A part of a log; `None` where there is none.
pub(super) fn chunk(disk: &dyn ClusterDisk, path: &Path, want: Want) -> io::Result<Option<Chunk>> {
    let end = match end(want) {
        Some(most) => disk.ends(&[(path.to_owned(), most)])?.pop().flatten(),
        None => kept(disk, path, want)?,
    };
    Ok(end.map(|end| part(end, want)))
}

/// Parts of several logs, with as few questions as it takes. What cannot be read of one keeps nobody from the others.
pub(super) fn chunks(
    disk: &dyn ClusterDisk,
    wanted: &[(Option<PathBuf>, Want)],
) -> Vec<Option<Chunk>> {
    let (mut places, mut asked) = (Vec::new(), Vec::new());
    let mut chunks: Vec<Option<Chunk>> = Vec::with_capacity(wanted.len());
    for (place, (path, want)) in wanted.iter().enumerate() {
        chunks.push(match (path, end(*want)) {
            (None, _) => None,
            (Some(path), None) => chunk(disk, path, *want).unwrap_or_default(),
            (Some(path), Some(most)) => {
                places.push((place, *want));
                asked.push((path.clone(), most));
                None
            }
        });
    }
    let ends = if asked.is_empty() { Vec::new() } else { disk.ends(&asked).unwrap_or_default() };
    for ((place, want), end) in places.into_iter().zip(ends) {
        if let Some(chunk) = chunks.get_mut(place) {
            *chunk = end.map(|end| part(end, want));
        }
    }
    chunks
}

/// So many bytes at the end are wanted; `None` where it is not the end.
fn end(want: Want) -> Option<u64> {
    match want {
        Want::Kept { .. } => None,
        Want::KeptEnd { bytes } => Some(bytes),
        Want::Shown { above, .. } => {
            let lines = above.map(|above| u64::from(above) + u64::from(SCREEN));
            Some(lines.map_or(u64::MAX, |lines| (lines * LINE).max(LEAST)))
        }
    }
}

fn kept(disk: &dyn ClusterDisk, path: &Path, want: Want) -> io::Result<Option<FileEnd>> {
    let Want::Kept { from } = want else { return Ok(None) };
    Ok(disk.read(path, from, u64::MAX)?.map(|bytes| FileEnd { bytes, from }))
}

fn part(FileEnd { bytes, from }: FileEnd, want: Want) -> Chunk {
    let next = from + bytes.len() as u64;
    let bytes = match want {
        Want::Shown { above, colours } => shown(&bytes, above, colours),
        Want::Kept { .. } | Want::KeptEnd { .. } => bytes,
    };
    Chunk { bytes: Bytes::from(bytes), next }
}

/// The last lines, as a terminal would show them: of what was written over only the last.
fn shown(bytes: &[u8], above: Option<u32>, colours: bool) -> Vec<u8> {
    let lines = above.map_or(usize::MAX, |above| (above + SCREEN) as usize);
    let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let from =
        memchr::memrchr_iter(b'\n', ended).nth(lines.saturating_sub(1)).map_or(0, |at| at + 1);
    let mut shown = Vec::new();
    for line in ended.get(from..).unwrap_or_default().split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let last = memchr::memrchr(b'\r', line).and_then(|at| line.get(at + 1..)).unwrap_or(line);
        shown.extend_from_slice(last);
        shown.push(b'\n');
    }
    if colours { shown } else { text::strip(&shown).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::slurm::client::HereDisk;

    #[test]
    fn what_was_written_over_is_not_shown() {
        let text = b"one\n 1%\r 50%\r100%\r\n\x1b[31mred\x1b[0m\nlast";
        assert_eq!(shown(text, Some(0), false), b"one\n100%\nred\nlast\n");
        assert_eq!(shown(b"", None, true), b"\n");
        let many: Vec<String> = (0..200).map(|i| format!("{i}\n")).collect();
        let lines = shown(many.concat().as_bytes(), Some(10), true);
        assert_eq!(memchr::memchr_iter(b'\n', &lines).count(), 60);
        assert!(lines.starts_with(b"140\n") && lines.ends_with(b"199\n"));
    }

    #[test]
    fn a_log_is_read_on_from_where_it_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let read = |want| chunk(&HereDisk, &path, want).unwrap();
        assert_eq!(read(Want::Kept { from: 0 }), None);
        crate::store::atomic::write_file(
            &crate::store::disk::OsDisk,
            &path,
            b"hello\nworld\n",
            0o600,
        )
        .unwrap();
        let first = read(Want::Kept { from: 0 }).unwrap();
        assert_eq!((&first.bytes[..], first.next), (&b"hello\nworld\n"[..], 12));
        assert_eq!(read(Want::Kept { from: 12 }).unwrap(), Chunk { bytes: Bytes::new(), next: 12 });
        assert_eq!(&read(Want::KeptEnd { bytes: 6 }).unwrap().bytes[..], b"world\n");
    }
}
