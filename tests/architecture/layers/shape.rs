//! What no single file shows: circles between the files of one folder, the storeys of `ops`, and one name
//! for two public types.

use std::collections::{BTreeMap, BTreeSet};

use super::mentions::{self, Mentions};
use super::rules::{Finding, module_of};
use super::table::{CIRCLES, HOMONYMS, STOREYS};

/// What a folder's file or folder is called in a finding, and the others that it uses, each with a place.
type Arrows = BTreeMap<String, BTreeMap<String, Use>>;

/// Where one file uses another.
#[derive(Clone, Debug)]
struct Use {
    file: String,
    line: usize,
}

/// Checks the sources below `src` as a whole: path from the repository's root -> text. `read` is what those mention that
/// were read already.
pub(super) fn check(
    files: &BTreeMap<String, String>,
    mut read: BTreeMap<String, Mentions>,
) -> Vec<Finding> {
    let sources: Vec<(&String, Vec<String>, Mentions)> = files
        .iter()
        .filter(|(path, _)| path.starts_with("src/") && path.as_str() != "src/lib.rs")
        .filter_map(|(path, text)| {
            let module = module_of(path);
            let known = read.remove(path);
            let mentions = known.or_else(|| mentions::read(text, &module, false).ok())?;
            Some((path, module, mentions))
        })
        .collect();
    let mut folders: BTreeMap<Vec<String>, Arrows> = BTreeMap::new();
    for (path, module, mentions) in &sources {
        for mention in mentions.paths.iter().filter(|mention| !mention.in_test) {
            let Some((first, used)) = mention.path.split_first() else { continue };
            if first == "crate" {
                note(&mut folders, (path, mention.line), module, used);
            }
        }
    }
    // A path leads to an item of a file as well as to a file: only what is a file or a folder counts.
    let modules: BTreeSet<Vec<String>> =
        sources.iter().map(|(_, module, _)| module.clone()).collect();
    let mut findings = Vec::new();
    let mut excused: BTreeMap<String, bool> = BTreeMap::new();
    for (folder, arrows) in &folders {
        let is_module = |name: &String| {
            let mut path = folder.clone();
            path.push(name.clone());
            modules.contains(&path)
        };
        let arrows: Arrows = arrows
            .iter()
            .filter(|(from, _)| is_module(from))
            .map(|(from, to)| {
                let to = to.iter().filter(|(name, _)| is_module(name));
                (from.clone(), to.map(|(name, at)| (name.clone(), at.clone())).collect())
            })
            .collect();
        let before = findings.len();
        circles(&folder.join("/"), &arrows, &mut findings);
        if CIRCLES.contains(&folder.join("/").as_str()) {
            excused.insert(folder.join("/"), findings.len() > before);
            findings.truncate(before);
        }
        storeys(&folder.join("/"), &arrows, &mut findings);
    }
    for (folder, _) in excused.iter().filter(|(_, is_needed)| !**is_needed) {
        findings.push(needless("CIRCLES", folder));
    }
    homonyms(&sources, &mut findings);
    findings
}

/// Notes that a file of `module` uses `used`: an arrow between the two parts of the folder in which their
/// ways part.
fn note(
    folders: &mut BTreeMap<Vec<String>, Arrows>,
    (file, line): (&str, usize),
    module: &[String],
    used: &[String],
) {
    let shared = module.iter().zip(used).take_while(|(a, b)| a == b).count();
    let (Some(from), Some(to)) = (module.get(shared), used.get(shared)) else { return };
    let folder = module.iter().take(shared).cloned().collect();
    let arrows: &mut Arrows = folders.entry(folder).or_default();
    let uses = arrows.entry(from.clone()).or_default();
    uses.entry(to.clone()).or_insert_with(|| Use { file: file.to_owned(), line });
}

/// Parts of a folder that use one another in a circle: each circle is told once, at its first arrow.
fn circles(folder: &str, arrows: &Arrows, findings: &mut Vec<Finding>) {
    let mut told: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for start in arrows.keys() {
        let Some(circle) = way(arrows, start) else { continue };
        if !told.insert(circle.iter().cloned().collect()) {
            continue;
        }
        let next = circle.get(1).unwrap_or(start);
        if let Some(at) = arrows.get(start).and_then(|uses| uses.get(next)) {
            findings.push(Finding {
                file: at.file.clone(),
                line: at.line,
                what: format!("closes a circle in `{folder}`: {} -> {start}", circle.join(" -> ")),
                rule: "the files of a folder use one another in one direction".to_owned(),
            });
        }
    }
}

/// The shortest way from a part back to itself.
fn way(arrows: &Arrows, start: &String) -> Option<Vec<String>> {
    let mut ways = vec![vec![start.clone()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in arrows.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way.iter().chain([next]).cloned().collect());
                }
            }
        }
        ways = longer;
    }
    None
}

/// A storey uses those below it. What is in no list stands above them all.
fn storeys(folder: &str, arrows: &Arrows, findings: &mut Vec<Finding>) {
    let Some((_, storeys)) = STOREYS.iter().find(|(name, _)| *name == folder) else { return };
    let height =
        |part: &str| storeys.iter().position(|name| *name == part).unwrap_or(storeys.len());
    for (from, uses) in arrows {
        for (to, at) in uses.iter().filter(|(to, _)| height(to) > height(from)) {
            findings.push(Finding {
                file: at.file.clone(),
                line: at.line,
                what: format!("`{folder}::{from}` uses `{folder}::{to}`, which is above it"),
                rule: "STOREYS in tests/architecture/layers/table.rs: a storey uses those below it"
                    .to_owned(),
            });
        }
    }
}

/// Two public types of one name make every reader look up which is meant.
fn homonyms(sources: &[(&String, Vec<String>, Mentions)], findings: &mut Vec<Finding>) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut needed: BTreeMap<&str, bool> = BTreeMap::new();
    for (path, _, mentions) in sources {
        for (name, line) in &mentions.public_types {
            let other = first.insert(name, path.as_str());
            if HOMONYMS.contains(&name.as_str()) {
                *needed.entry(name).or_default() |= other.is_some();
                continue;
            }
            let Some(other) = other else { continue };
            findings.push(Finding {
                file: (*path).clone(),
                line: *line,
                what: format!("`{name}` is also a type of {other}"),
                rule: "one concept, one name: no two public types are called the same".to_owned(),
            });
        }
    }
    for (name, _) in needed.iter().filter(|(_, is_needed)| !**is_needed) {
        findings.push(needless("HOMONYMS", name));
    }
}

/// An excuse that nothing needs any more.
fn needless(list: &str, what: &str) -> Finding {
    Finding {
        file: "tests/architecture/layers/table.rs".to_owned(),
        line: 1,
        what: format!("`{what}` is excused and needs no excuse"),
        rule: format!("{list} names only what is there"),
    }
}
