//! Sources, scripts and documents name no other environment variable of ours than those of the one table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use tpu_core::model::variables::{VARIABLES, of_ours};

/// Not ours: libraries for TPUs read such variables, one test names one, and programs of docs/api.md read two.
const OF_OTHERS: [&str; 5] = ["TPU_NAME", "TPU_API_KEY", "TPU_", "TPU_API", "TPU_TOKEN"];

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

#[test]
fn every_variable_that_is_named_is_in_the_table_and_the_other_way_round() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for place in
        ["src", "crates", "assets", "docs", "README.md", "CHANGELOG.md", "data.example.json"]
    {
        files(&root.join(place), &mut all);
    }
    let table = root.join("crates/core/src/model/variables.rs");
    let name = Regex::new(r"\bTPU_[A-Z_]*").unwrap();
    let mut named = BTreeSet::new();
    let mut unknown = Vec::new();
    for path in all.iter().filter(|path| **path != table) {
        // Pictures have no words.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        for found in name.find_iter(&text) {
            let found = found.as_str();
            match of_ours(found) {
                Some(variable) => drop(named.insert(variable.name)),
                None if OF_OTHERS.contains(&found) => {}
                None => unknown.push(format!("{}: {found}", path.display())),
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "not in crates/core/src/model/variables.rs:\n{}",
        unknown.join("\n")
    );
    let unused: Vec<&str> =
        VARIABLES.iter().map(|known| known.name).filter(|known| !named.contains(known)).collect();
    assert!(unused.is_empty(), "nobody names {unused:?}");
}
