//! Holds the picture in `src/lib.rs`: who may use whom, what is pure, and the shape of files.
//!
//! The picture is one, whatever crate holds a layer: [`crates`] says where each is.
//! Reads the sources with `syn`; [`table`] is the picture as data, [`mentions`] reads a file,
//! [`rules`] judges each file, [`shape`] the whole. `cases` breaks every rule once, so that this test is known to be able to fail.

mod cases;
mod crates;
mod mentions;
mod rules;
mod shape;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

/// The whole tree keeps the rules.
#[test]
fn sources_keep_the_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    for part in ["src", "crates", "tests", "benches"] {
        collect(root, part, &mut files);
    }
    let picture = crates::Picture::of(&files);
    assert!(picture.files.contains_key("src/lib.rs"), "no sources below {}", root.display());
    let findings = rules::check_tree(&picture.files);
    let report: Vec<String> = findings.iter().map(|finding| picture.said(finding)).collect();
    assert!(report.is_empty(), "{} finding(s):\n{}", report.len(), report.join("\n"));
}

/// Adds the `.rs` files below `directory` (from the root, with `/`); captured data is not looked at.
fn collect(root: &Path, directory: &str, files: &mut BTreeMap<String, String>) {
    if matches!(directory, "tests/data" | "tests/cases") || directory.ends_with("/target") {
        return;
    }
    let Ok(entries) = root.join(directory).read_dir() else { return };
    for entry in entries {
        let entry = entry.expect("the sources can be listed");
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(root, &path, files);
        } else if entry.path().extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(entry.path()).expect("a source is UTF-8 text");
            files.insert(path, text);
        }
    }
}
