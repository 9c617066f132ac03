//! Opening files where somebody else may have put something that is none: a named pipe, which would make us
//! wait for ever, a device, or, where we would write, a link to a file of another. What is no plain file is
//! refused, and says what it is.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// What stands where a file should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {0}, where a plain file should be")]
pub struct NoFile(&'static str);

impl NoFile {
    /// Whether an error says so.
    pub fn is_behind(error: &io::Error) -> bool {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).is_some()
    }
}

/// Opens a file for reading, also through a link.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file as `options` say, also through a link.
pub(crate) fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    checked(path, options, OFlags::empty())
}

/// Opens a file of ours for writing, as `options` say. What is behind a link is not ours.
pub fn open_own(path: &Path, options: &OpenOptions) -> io::Result<File> {
    checked(path, options, OFlags::NOFOLLOW).map_err(|error| {
        let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        if is_link { refused("a symbolic link") } else { error }
    })
}

/// Reads a whole file, also through a link.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file of text, also through a link.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// The CRC32C of a file, also through a link.
pub fn crc32c(path: &Path) -> io::Result<u32> {
    const PIECE: usize = 1 << 20;
    let mut file = open(path)?;
    let mut piece = vec![0; PIECE];
    let mut sum = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(sum);
        }
        sum = crc32c::crc32c_append(sum, piece.get(..read).unwrap_or_default());
    }
}

fn checked(path: &Path, options: &OpenOptions, more: OFlags) -> io::Result<File> {
    // Of plain files this says nothing; a named pipe is opened at once, whoever is at its other end.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let opened = options.clone().custom_flags(flags).open(path);
    let file = opened.map_err(|error| {
        // A socket, and a pipe that nobody reads, cannot even be opened.
        let no_door = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if no_door { refused("a named pipe or a socket") } else { error }
    })?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    Err(refused(word(kind)))
}

fn word(kind: FileType) -> &'static str {
    if kind.is_fifo() { "a named pipe" } else { "a device" }
}

fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, NoFile(what))
}
