//! The crates of the workspace as one tree: the picture that the rules are about.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::rules::Finding;

/// The libraries in `crates/`, and the module of the picture that each is; several layers for none.
const CRATES: &[(&str, &str)] = &[
    ("api", "api"),
    ("core", ""),
    ("engine", ""),
    ("gcp", "gcp"),
    ("jobfile", "jobfile"),
    ("kubernetes", "kubernetes"),
    ("lab", "lab"),
    ("ops", "ops"),
    ("screen", "screen"),
    ("slurm", "slurm"),
    ("system", ""),
    ("wire", "wire"),
];

/// The beginning of a path into one of them.
static OF_A_CRATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\btpu_([a-z]+)::").expect("it is an expression"));

/// The sources as if all were one crate.
pub(super) struct Picture {
    /// Path in the picture (`src/ops/kill.rs`) -> text.
    pub(super) files: BTreeMap<String, String>,
    /// Path in the picture -> path from the repository's root.
    real: BTreeMap<String, String>,
}

impl Picture {
    /// Puts the crates together: path from the repository's root -> text.
    pub(super) fn of(files: &BTreeMap<String, String>) -> Self {
        let mut picture = Self { files: BTreeMap::new(), real: BTreeMap::new() };
        let mut map = files.get("src/lib.rs").cloned().unwrap_or_default();
        for (path, text) in files {
            let Some((name, inside)) = inside_a_crate(path) else {
                picture.add(path, path, text, "");
                continue;
            };
            let module = CRATES.iter().find(|(known, _)| *known == name).map(|(_, module)| *module);
            let module = module.unwrap_or_else(|| panic!("crates/{name} is not in {}", file!()));
            match (module, inside) {
                ("", "lib.rs") => {
                    let modules = text.lines().filter(|line| line.starts_with("pub mod "));
                    map.extend(modules.flat_map(|line| [line, "\n"]));
                }
                ("", inside) => picture.add(&format!("src/{inside}"), path, text, module),
                (module, "lib.rs") => {
                    map += &format!("pub mod {module};\n");
                    picture.add(&format!("src/{module}/mod.rs"), path, text, module);
                }
                (module, inside) => {
                    picture.add(&format!("src/{module}/{inside}"), path, text, module);
                }
            }
        }
        picture.add("src/lib.rs", "src/lib.rs", &map, "");
        picture
    }

    fn add(&mut self, path: &str, real: &str, text: &str, module: &str) {
        self.real.insert(path.to_owned(), real.to_owned());
        self.files.insert(path.to_owned(), in_the_picture(text, module));
    }

    /// A finding, with the path that its file really has.
    pub(super) fn said(&self, finding: &Finding) -> String {
        let said = finding.to_string();
        match self.real.get(&finding.file) {
            Some(real) => said.replacen(&finding.file, real, 1),
            None => said,
        }
    }
}

/// `crates/ops/src/kill.rs` -> `ops`, `kill.rs`.
fn inside_a_crate(path: &str) -> Option<(&str, &str)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    Some((name, inside.strip_prefix("src/")?))
}

/// The text of a file with the paths that it would have in one crate: in `tpu_ops`, which is the module `ops` of the
/// picture, `crate::kill` is `crate::ops::kill`, and `tpu_core::model` is `crate::model`.
fn in_the_picture(text: &str, module: &str) -> String {
    let below = |module: &str| {
        if module.is_empty() { "crate::".to_owned() } else { format!("crate::{module}::") }
    };
    let text = text.replace("crate::", &below(module));
    let named = |found: &Captures<'_>| match CRATES.iter().find(|(name, _)| *name == &found[1]) {
        Some((_, module)) => below(module),
        None => found[0].to_owned(),
    };
    OF_A_CRATE.replace_all(&text, named).into_owned()
}
