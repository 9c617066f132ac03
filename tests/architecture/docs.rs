//! README.md, CONTRIBUTING.md and the pages of docs/: their links lead somewhere, README leads to each page, and a test types
//! each page that has examples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;

use crate::common::readme::TYPED;

/// The pages by their paths from the root, without their blocks of code.
struct Pages(BTreeMap<String, String>);

impl Pages {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
        for entry in root.join("docs").read_dir().unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            if Path::new(&name).extension().is_some_and(|end| end == "md") {
                paths.push(format!("docs/{name}"));
            }
        }
        let prose = |path: String| {
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            (path, without_blocks(&text))
        };
        Self(paths.into_iter().map(prose).collect())
    }

    /// Paths of the root that a page links to or shows, each with the anchor behind it; addresses elsewhere are left out.
    fn links(&self, page: &str) -> Vec<(String, Option<String>)> {
        let link = Regex::new(r#"\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)""#).unwrap();
        let found = link.captures_iter(&self.0[page]);
        let targets = found.map(|link| link.get(1).or(link.get(2)).unwrap().as_str());
        let ours = targets.filter(|target| !target.contains("://"));
        ours.map(|target| {
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor.to_owned())),
                None => (target, None),
            };
            let path = if path.is_empty() { page.to_owned() } else { from_root(page, path) };
            (path, anchor)
        })
        .collect()
    }

    /// Whether a page has a heading with this anchor.
    fn has_anchor(&self, page: &str, anchor: &str) -> bool {
        let headings = self.0.get(page).into_iter().flat_map(|text| text.lines());
        let titles = headings.filter(|line| line.starts_with('#'));
        titles.map(|line| slug(line.trim_start_matches('#'))).any(|slug| slug == anchor)
    }
}

/// A text without what is between its fences.
fn without_blocks(text: &str) -> String {
    let mut is_inside = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_inside ^= is_fence;
        !is_inside && !is_fence
    });
    prose.collect::<Vec<_>>().join("\n")
}

/// A path relative to a page, as one from the root.
fn from_root(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The anchor of a heading, as GitHub makes it.
fn slug(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_anchors_and_pictures_lead_to_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = Pages::read();
    let named = Regex::new(r"`((?:docs|assets|tests|crates)/[\w./-]+)`").unwrap();
    let mut dead = Vec::new();
    for (page, text) in &pages.0 {
        for (path, anchor) in pages.links(page) {
            let leads = anchor.as_ref().is_none_or(|anchor| pages.has_anchor(&path, anchor));
            if !leads || !root.join(&path).exists() {
                dead.push(format!("{page}: {path}#{}", anchor.unwrap_or_default()));
            }
        }
        let places = named.captures_iter(text).map(|found| found[1].to_owned());
        let missing = places.filter(|path| !root.join(path).exists());
        dead.extend(missing.map(|path| format!("{page}: `{path}`")));
    }
    assert!(dead.is_empty(), "these lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn the_readme_leads_to_every_page() {
    let pages = Pages::read();
    let mut seen = BTreeSet::from(["README.md".to_owned()]);
    let mut next = vec!["README.md".to_owned()];
    while let Some(page) = next.pop() {
        for (path, _) in pages.links(&page) {
            if pages.0.contains_key(&path) && seen.insert(path.clone()) {
                next.push(path);
            }
        }
    }
    let lost: Vec<&String> = pages.0.keys().filter(|page| !seen.contains(*page)).collect();
    assert!(lost.is_empty(), "no link leads to {lost:?}");
}

#[test]
fn every_page_with_examples_is_typed_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in Pages::read().0.keys() {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let has_examples = text.lines().any(|line| line == "```console");
        assert_eq!(has_examples, TYPED.contains(&path.as_str()), "{path}");
    }
}
