//! The rules, and what a breach of one looks like.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::mentions::{self, How, Mention, Mentions};
use super::shape;
use super::table::{
    EXCEPTIONS, FORBIDDEN_IN_PURE, IO_METHODS, KIND_LAYERS, KNOW_A_KIND, LAYERS, LONG_TABLES,
    Layer, MAKE_NO_JSON, MAX_LINES, PURE, ROOTS, WAIT_FOR_REAL_THREADS,
};

/// One breach of one rule.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) rule: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; rule: {}", self.file, self.line, self.what, self.rule)
    }
}

/// Checks a whole tree: path from the repository's root -> text.
pub(super) fn check_tree(files: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    let mut read = BTreeMap::new();
    let mut waiting: Vec<(String, bool)> =
        ROOTS.iter().map(|root| ((*root).to_owned(), false)).collect();
    while let Some((path, in_test)) = waiting.pop() {
        let Some(text) = files.get(&path) else { continue };
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(found) = check_file(&path, text, in_test, &mut findings) else { continue };
        for child in &found.children {
            let below = format!("{}/{}", directory_of(&path), child.path.join("/"));
            for file in [format!("{below}.rs"), format!("{below}/mod.rs")] {
                waiting.push((file, child.in_test));
            }
        }
        if !in_test {
            read.insert(path, found);
        }
    }
    for (path, text) in files {
        if path.starts_with("benches/") {
            drop(check_file(path, text, true, &mut findings));
        } else if !seen.contains(path) {
            findings.push(Finding {
                file: path.clone(),
                line: 1,
                what: "no `mod` declares this file, so it is never compiled".to_owned(),
                rule: format!("every file is reached by `mod` from {}", ROOTS.join(", ")),
            });
        }
    }
    for path in LONG_TABLES {
        if files.get(*path).is_none_or(|text| text.lines().count() <= MAX_LINES) {
            findings.push(Finding {
                file: (*path).to_owned(),
                line: 1,
                what: "is excused from the limit of lines and does not need it".to_owned(),
                rule: "LONG_TABLES in tests/architecture/layers/table.rs names only long tables"
                    .to_owned(),
            });
        }
    }
    findings.extend(shape::check(files, read));
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    findings
}

/// Checks one file and hands on what it mentions; `in_test` if its `mod` is under `#[cfg(test)]`.
pub(super) fn check_file(
    path: &str,
    text: &str,
    in_test: bool,
    findings: &mut Vec<Finding>,
) -> Option<Mentions> {
    let mut report = |line: usize, what: String, rule: String| {
        findings.push(Finding { file: path.to_owned(), line, what, rule });
    };
    if !text.starts_with("//!") {
        report(
            1,
            "does not open with `//!`".to_owned(),
            "the first line of a file says what it is for".to_owned(),
        );
    }
    let lines = text.lines().count();
    if lines > MAX_LINES && !LONG_TABLES.contains(&path) {
        report(
            lines,
            format!("has {lines} lines"),
            format!("at most {MAX_LINES}; a file with two subjects is two files"),
        );
    }
    let module = module_of(path);
    let found = match mentions::read(text, &module, in_test) {
        Ok(found) => found,
        Err(error) => {
            let line = error.span().start().line;
            report(line, format!("does not parse: {error}"), "the sources are Rust".to_owned());
            return None;
        }
    };
    for (name, line) in &found.attributes {
        let rule = match name.as_str() {
            "ignore" => "a test runs or is deleted",
            "allow" => "use #[expect(lint, reason = \"…\")], which complains when it is needless",
            "path" if path.starts_with("src/") => "a module's file has the module's name",
            _ => continue,
        };
        report(*line, format!("has `#[{name}]`"), rule.to_owned());
    }
    if path.starts_with("src/") {
        check_layer(path, &module, &found, &mut report);
    }
    Some(found)
}

fn check_layer(
    path: &str,
    module: &[String],
    found: &Mentions,
    report: &mut impl FnMut(usize, String, String),
) {
    for (name, line) in &found.macros {
        if name == "include" {
            report(
                *line,
                "calls `include!`".to_owned(),
                "code is where this check can read it".to_owned(),
            );
        }
    }
    let name = module.first().map_or("", String::as_str);
    for (called, line) in &found.macros {
        if called == "json" && MAKE_NO_JSON.contains(&name) {
            report(
                *line,
                "calls `json!`".to_owned(),
                "what leaves as JSON is a document of `wire`, which has a schema".to_owned(),
            );
        }
    }
    let waits = |(method, _): &&(String, usize)| method == "recv_timeout";
    if name == "ops" && !WAIT_FOR_REAL_THREADS.contains(&path) {
        for (method, line) in found.methods.iter().filter(waits) {
            report(
                *line,
                format!("calls `.{method}()`"),
                "waits for threads go by `sys::threads::next_of`, which a simulation plays"
                    .to_owned(),
            );
        }
    }
    match path {
        "src/lib.rs" => {
            for line in &found.other_items {
                report(
                    *line,
                    "is no `mod`".to_owned(),
                    "lib.rs is the map: a re-export there would hide the layer it comes from"
                        .to_owned(),
                );
            }
            return;
        }
        "src/main.rs" => {
            for mention in found.paths.iter().filter(|m| starts(&m.path, "tpu")) {
                if !starts(&mention.path, "tpu::cli") {
                    report(
                        mention.line,
                        format!("uses `{}`", mention.path.join("::")),
                        "main.rs knows only `tpu::cli`".to_owned(),
                    );
                }
            }
            return;
        }
        _ => {}
    }
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
        report(
            1,
            format!("`{name}` is no layer"),
            "a new top-level module gets a row in tests/architecture/layers/table.rs".to_owned(),
        );
        return;
    };
    let pure = PURE.iter().find(|pure| starts(module, pure));
    for mention in &found.paths {
        if let Some((what, rule)) =
            another_kind(module, mention).or_else(|| kind_by_name(path, mention))
        {
            report(mention.line, what, rule);
        } else if let Some((what, rule)) = wrong_layer(layer, path, mention) {
            report(mention.line, what, rule);
        } else if let Some(pure) = pure
            && let Some((what, rule)) = impure(pure, mention)
        {
            report(mention.line, what, rule);
        }
    }
    if let Some(pure) = pure {
        for (method, line) in &found.methods {
            if IO_METHODS.contains(&method.as_str()) {
                report(
                    *line,
                    format!("calls `.{method}()`, which asks the file system"),
                    format!("`{pure}` is pure"),
                );
            }
        }
    }
}

/// The direction of the arrows.
fn wrong_layer(layer: &Layer, path: &str, mention: &Mention) -> Option<(String, String)> {
    let segments = &mention.path;
    if segments.first().map(String::as_str) != Some("crate") {
        return None;
    }
    let text = written(mention);
    let Some(used) = segments.get(1) else {
        let hides = mention.how != How::Path;
        return hides.then(|| {
            let rule = "name the layer (`use crate::model::…`), so that it can be seen";
            (format!("imports the crate's root (`{text}`)"), rule.to_owned())
        });
    };
    // What an import leads to was judged at the import, unless it was that of the root.
    if mention.through.as_ref().is_some_and(|import| import.len() > 1) {
        return None;
    }
    if used == layer.name || layer.uses.contains(&used.as_str()) {
        return None;
    }
    if mention.in_test && layer.uses_in_tests.contains(&used.as_str()) {
        return None;
    }
    let excused = EXCEPTIONS.iter().any(|exception| {
        let by_name = mention.how != How::Glob && segments.len() > 2 || exception.whole;
        path.starts_with(exception.file) && exception.uses == used && by_name
    });
    if excused {
        return None;
    }
    if !LAYERS.iter().any(|layer| layer.name == used) {
        let rule = "every top-level module has a row in tests/architecture/layers/table.rs";
        return Some((format!("uses `{text}`, and `{used}` is no layer"), rule.to_owned()));
    }
    let may = if layer.uses.is_empty() { "nothing".to_owned() } else { layer.uses.join(", ") };
    Some((format!("uses `{text}`"), format!("`{}` may use of this crate: {may}", layer.name)))
}

/// A kind of target names nothing of another one. Only the registry, `kinds/mod.rs`, knows them all.
fn another_kind(module: &[String], mention: &Mention) -> Option<(String, String)> {
    let [layer, kind, ..] = module else { return None };
    let ["crate", "kinds", used @ ..] =
        &mention.path.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let is_another = match used {
        [] => mention.how == How::Glob,
        [used, ..] => used != kind && used.starts_with(|c: char| c.is_ascii_lowercase()),
    };
    (layer == "kinds" && is_another).then(|| {
        let rule = "kinds of target do not know each other: what they share is in kinds/mod.rs";
        (format!("uses `{}`", written(mention)), rule.to_owned())
    })
}

/// Nobody but the registry and the kinds themselves asks which kind a target is, or who its provider is: what
/// others must know are values that the kind has filled in.
fn kind_by_name(path: &str, mention: &Mention) -> Option<(String, String)> {
    let inside = KIND_LAYERS.iter().any(|layer| starts(&module_of(path), layer))
        || path == "src/model/target.rs";
    if inside || mention.in_test || KNOW_A_KIND.contains(&path) {
        return None;
    }
    let used = mention.path.iter().map(String::as_str).collect::<Vec<_>>();
    let is_lower = |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let is_constant = |word: &str| word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_by_name = match &used[..] {
        ["crate", "kinds", kind, ..] => is_lower(kind),
        [.., "TargetKind", word] => is_constant(word),
        [.., "ProviderName", word] => *word == "of",
        // The list of kinds is named where the program begins, and by nobody who asks about one.
        ["crate", "kinds" | "built_in", ..] => false,
        ["crate", layer, ..] => KIND_LAYERS.contains(layer),
        _ => false,
    };
    is_by_name.then(|| {
        let rule = "only `kinds` knows a kind or a provider by its name: ask `Kinds::of`, or let it fill in a \
                    value";
        (format!("uses `{}`", written(mention)), rule.to_owned())
    })
}

/// The world has no door into a pure module.
fn impure(pure: &str, mention: &Mention) -> Option<(String, String)> {
    if mention.in_test {
        return None;
    }
    let path = &canonical(&mention.path);
    let text = written(mention);
    for (forbidden, instead) in FORBIDDEN_IN_PURE {
        if starts(path, forbidden) {
            let import = mention.through.as_deref().map(canonical);
            let reported = import.is_some_and(|import| starts(&import, forbidden));
            return (!reported)
                .then(|| (format!("uses `{text}`"), format!("`{pure}` is pure: {instead}")));
        }
        // `use std as s`, `use std::time::*`: what is used of it would be out of sight.
        let above = starts_with(&forbidden.split("::").collect::<Vec<_>>(), path);
        let of_std = forbidden.starts_with("std::");
        if above && (mention.how == How::Glob || mention.how == How::Import && of_std) {
            let rule = format!("`{pure}` is pure, and `{forbidden}` is in it: import the one item");
            return Some((format!("imports all of `{text}`"), rule));
        }
    }
    None
}

/// The path as the message shows it.
fn written(mention: &Mention) -> String {
    let star = if mention.how == How::Glob { "::*" } else { "" };
    format!("{}{star}", mention.path.join("::"))
}

/// The path without detours: `core` is a part of `std`, and `ratatui` hands on `crossterm`.
fn canonical(path: &[String]) -> Vec<String> {
    let mut path = path.to_vec();
    if path.first().is_some_and(|root| root == "core" || root == "alloc") {
        path.splice(0..1, ["std".to_owned()]);
    } else if starts(&path, "ratatui::crossterm") {
        path.remove(0);
    }
    path
}

/// Whether `path` is `prefix` or below it.
fn starts(path: &[String], prefix: &str) -> bool {
    let prefix: Vec<&str> = prefix.split("::").collect();
    path.len() >= prefix.len() && path.iter().zip(prefix).all(|(a, b)| a == b)
}

fn starts_with(longer: &[&str], prefix: &[String]) -> bool {
    longer.len() > prefix.len() && longer.iter().zip(prefix).all(|(a, b)| a == b)
}

/// `src/plan/decide.rs` -> `["plan", "decide"]`.
pub(super) fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once('/').map_or(path, |(_, inside)| inside);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').map(ToOwned::to_owned).collect(),
    }
}

/// Where the modules that a file declares are: beside `mod.rs` and roots, else below its name.
fn directory_of(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((directory, "mod")) => directory.to_owned(),
        Some((directory, _)) if ROOTS.contains(&path) => directory.to_owned(),
        _ => stem.to_owned(),
    }
}
