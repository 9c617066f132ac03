//! The code of a job on its way into the cluster: an archive in a config map, which the server takes up to a size.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest;
use serde_json::{Value, json};

use tpu_engine::runner::RunError;
use tpu_engine::runner::tree::COPIED;

use super::manifest::ARCHIVE_FILE;

/// So many bytes an archive has at most. The server refuses config maps of more than 1 MiB; base64 makes four bytes of
/// three only on the way, but etcd's limit of 1.5 MiB is on that.
const MOST: usize = 900_000;

/// The archive of a directory, as it is to be kept. `None` for one that is not there or has nothing in it.
pub(super) fn packed(dir: &Path) -> Result<Option<Vec<u8>>, RunError> {
    let unpacked = |e: std::io::Error| {
        RunError::state(
            format!("the code in {} cannot be packed: {e}", dir.display()),
            "this account must be able to read it",
        )
    };
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(None) };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<Result<Vec<_>, _>>().map_err(unpacked)?;
    // It says when this copy was made, and the same code is to be the same archive.
    names.retain(|name| name != COPIED);
    names.sort_unstable();
    if names.is_empty() {
        return Ok(None);
    }
    let packed = archive(dir, &names).map_err(unpacked)?;
    if packed.len() > MOST {
        return Err(RunError::refused(
            format!(
                "the code is {} kB when it is packed, and a config map takes {} kB",
                packed.len() / 1000,
                MOST / 1000
            ),
            "name what is not code in .gitignore, put it into the image, or let the command fetch it",
        ));
    }
    Ok(Some(packed))
}

/// The archive that was packed last, with a hash of what it was packed of: the members of a group bring the same code, and
/// packing takes longer than all else that is done to submit one.
static LAST: Mutex<Option<(digest::Digest, Vec<u8>)>> = Mutex::new(None);

fn archive(dir: &Path, names: &[OsString]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(false);
    // The same code is the same archive, whoever packs it.
    archive.mode(tar::HeaderMode::Deterministic);
    for name in names {
        let path = dir.join(name);
        if std::fs::symlink_metadata(&path)?.is_dir() {
            archive.append_dir_all(name, path)?;
        } else {
            archive.append_path_with_name(path, name)?;
        }
    }
    let plain = archive.into_inner()?;
    let hash = digest::digest(&digest::SHA256, &plain);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, packed)) = last().as_ref().filter(|(of, _)| of.as_ref() == hash.as_ref()) {
        return Ok(packed.clone());
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&plain)?;
    let packed = packed.finish()?;
    // What is too large is refused, and not packed again.
    *last() = (packed.len() <= MOST).then(|| (hash, packed.clone()));
    Ok(packed)
}

/// The config map that holds an archive.
pub(super) fn config_map(name: &str, labels: &Value, archive: &[u8]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "binaryData": {ARCHIVE_FILE: STANDARD.encode(archive)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_packed_whole_and_always_the_same() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(packed(&dir.path().join("none")).unwrap(), None);
        assert_eq!(packed(dir.path()).unwrap(), None);
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::File::create(dir.path().join("below/a.py"))
            .unwrap()
            .write_all(b"x = 1\n")
            .unwrap();
        let archive = packed(dir.path()).unwrap().unwrap();
        assert_eq!(packed(dir.path()).unwrap().as_ref(), Some(&archive));
        let out = tempfile::tempdir().unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(&archive[..])).unpack(out.path()).unwrap();
        assert_eq!(std::fs::read(out.path().join("below/a.py")).unwrap(), b"x = 1\n");
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_size() {
        use tpu_system::sys::random::{OsRandom, Random as _};
        let dir = tempfile::tempdir().unwrap();
        let noise = OsRandom.hex(1_200_000);
        std::fs::File::create(dir.path().join("w")).unwrap().write_all(noise.as_bytes()).unwrap();
        let error = packed(dir.path()).unwrap_err();
        assert!(
            matches!(error, RunError::Refused(_)) && error.to_string().contains("kB"),
            "{error}"
        );
    }
}
