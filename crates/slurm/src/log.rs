//! What jobs print: `LOG_DIR/output.log`, on the disk that the nodes see.

use std::io;
use std::path::{Path, PathBuf};

use tpu_core::model::job::Job;
use tpu_engine::runner::{Chunk, Want, printed};

use super::client::{ClusterDisk, FileEnd};

/// The log of a job.
pub(super) fn path(job: &Job) -> Option<PathBuf> {
    job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))
}

/// A part of a log; `None` where there is none.
pub(super) fn chunk(disk: &dyn ClusterDisk, path: &Path, want: Want) -> io::Result<Option<Chunk>> {
    let end = match printed::end(want) {
        Some(most) => disk.ends(&[(path.to_owned(), most)])?.pop().flatten(),
        None => kept(disk, path, want)?,
    };
    Ok(end.map(|end| printed::piece(end.bytes, end.from, want)))
}

/// Parts of several logs, with as few questions as it takes. What cannot be read of one keeps nobody from the others.
pub(super) fn chunks(
    disk: &dyn ClusterDisk,
    wanted: &[(Option<PathBuf>, Want)],
) -> Vec<Option<Chunk>> {
    let (mut places, mut asked) = (Vec::new(), Vec::new());
    let mut chunks: Vec<Option<Chunk>> = Vec::with_capacity(wanted.len());
    for (place, (path, want)) in wanted.iter().enumerate() {
        chunks.push(match (path, printed::end(*want)) {
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
            *chunk = end.map(|end| printed::piece(end.bytes, end.from, want));
        }
    }
    chunks
}

fn kept(disk: &dyn ClusterDisk, path: &Path, want: Want) -> io::Result<Option<FileEnd>> {
    let Want::Kept { from, most } = want else { return Ok(None) };
    Ok(disk.read_own(path, from, most)?.map(|bytes| FileEnd { bytes, from }))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::client::HereDisk;

    #[test]
    fn a_log_is_read_on_from_where_it_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let read = |want| chunk(&HereDisk, &path, want).unwrap();
        assert_eq!(read(Want::Kept { from: 0, most: u64::MAX }), None);
        tpu_system::store::atomic::write_file(
            &tpu_system::store::disk::OsDisk,
            &path,
            b"hello\nworld\n",
            0o600,
        )
        .unwrap();
        let first = read(Want::Kept { from: 0, most: u64::MAX }).unwrap();
        assert_eq!((&first.bytes[..], first.next), (&b"hello\nworld\n"[..], 12));
        assert_eq!(
            read(Want::Kept { from: 12, most: u64::MAX }).unwrap(),
            Chunk { bytes: Bytes::new(), next: 12 }
        );
        assert_eq!(&read(Want::KeptEnd { bytes: 6 }).unwrap().bytes[..], b"world\n");
        // A job that puts a link there shows nobody what it leads to, and keeps nobody from other logs.
        let leading_out = dir.path().join("leading out.log");
        std::os::unix::fs::symlink(&path, &leading_out).unwrap();
        chunk(&HereDisk, &leading_out, Want::Kept { from: 0, most: u64::MAX }).unwrap_err();
        let wanted =
            [&leading_out, &path].map(|path| (Some(path.clone()), Want::KeptEnd { bytes: 6 }));
        let [linked, plain] = &chunks(&HereDisk, &wanted)[..] else { panic!() };
        assert!(linked.is_none() && plain.as_ref().is_some_and(|end| end.bytes == "world\n"));
    }
}
