//! `${tpu.accelerator}`: values of a file that stand in others, as OmegaConf fills them in.
//!
//! Source of the grammar: the manual of OmegaConf 2.3, "Variable interpolation" — `${a.b}` from the top of the file,
//! `${.b}` beside the value and `${..b}` one map above it, `${a[0]}` and `${a.0}` into lists, `\${` for the text itself.
//! Its resolvers (`${oc.env:HOME}`) reach beyond the file and are refused.

use std::cell::Cell;

use crate::BadFile;
use crate::yaml::{LARGEST, Yaml, YamlValue};
use tpu_core::text::did_you_mean;

/// A file may grow to so many bytes when it is filled in.
const MOST: usize = LARGEST;

/// A value may be filled in through so many others.
const DEEPEST: usize = 32;

/// The document with all values filled in.
pub(super) fn filled(document: &Yaml) -> Result<Yaml, BadFile> {
    let fill = Fill { document, left: Cell::new(MOST) };
    fill.value(document, &mut Vec::new(), &mut Vec::new())
}

/// The way from the top of the file to a value.
type Way = Vec<String>;

struct Fill<'a> {
    document: &'a Yaml,
    left: Cell<usize>,
}

impl Fill<'_> {
    /// A value that stands at a place, with `open` the values that are being filled in.
    fn value(&self, value: &Yaml, way: &mut Way, open: &mut Vec<Way>) -> Result<Yaml, BadFile> {
        self.spend(1, value, way)?;
        let filled = match &value.value {
            YamlValue::Blank => YamlValue::Blank,
            YamlValue::Text(text) => return self.text(text, value, way, open),
            YamlValue::List(all) => {
                let each = all.iter().enumerate();
                let each = each.map(|(n, one)| self.below(one, n.to_string(), way, open));
                YamlValue::List(each.collect::<Result<_, _>>()?)
            }
            YamlValue::Map(all) => {
                let each = all
                    .iter()
                    .map(|(key, one)| Ok((key.clone(), self.below(one, key.clone(), way, open)?)));
                YamlValue::Map(each.collect::<Result<_, BadFile>>()?)
            }
        };
        Ok(Yaml { value: filled, ..value.clone() })
    }

    fn below(
        &self,
        value: &Yaml,
        key: String,
        way: &mut Way,
        open: &mut Vec<Way>,
    ) -> Result<Yaml, BadFile> {
        way.push(key);
        let filled = self.value(value, way, open);
        way.pop();
        filled
    }

    fn spend(&self, bytes: usize, at: &Yaml, way: &Way) -> Result<(), BadFile> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(bad(at, way, format!("filled in, the file has more than {MOST} bytes"))),
        }
    }

    /// A scalar: the value for which it stands if it is nothing but one, else text with texts in it.
    fn text(&self, text: &str, at: &Yaml, way: &Way, open: &mut Vec<Way>) -> Result<Yaml, BadFile> {
        let pieces = pieces(text).map_err(|what| bad(at, way, what))?;
        if let [Piece::Asked(name)] = pieces.as_slice() {
            let stands = self.asked(name, at, way, open)?;
            return Ok(Yaml { value: stands.value, ..at.clone() });
        }
        let mut filled = String::new();
        for piece in pieces {
            match piece {
                Piece::Plain(plain) => filled.push_str(&plain),
                Piece::Asked(name) => match self.asked(&name, at, way, open)?.value {
                    YamlValue::Text(text) => {
                        self.spend(text.len(), at, way)?;
                        filled.push_str(&text);
                    }
                    YamlValue::Blank | YamlValue::List(_) | YamlValue::Map(_) => {
                        let what = format!("${{{name}}} is no text that could stand in another");
                        return Err(bad(at, way, what));
                    }
                },
            }
        }
        Ok(Yaml { value: YamlValue::Text(filled), ..at.clone() })
    }

    /// What `${name}` stands for at a place.
    fn asked(
        &self,
        name: &str,
        at: &Yaml,
        way: &Way,
        open: &mut Vec<Way>,
    ) -> Result<Yaml, BadFile> {
        // The name may itself hold others: `${tpu.${which}}`.
        let name = match self.text(name, at, way, open)?.value {
            YamlValue::Text(name) => name,
            YamlValue::Blank | YamlValue::List(_) | YamlValue::Map(_) => String::new(),
        };
        if let Some((resolver, _)) = name.split_once(':') {
            let what = format!("${{{resolver}:…}} reaches beyond the file");
            return Err(bad(at, way, what).with_hint("write out what stands there"));
        }
        let mut to = place(&name, way);
        if open.len() >= DEEPEST {
            return Err(bad(at, way, format!("${{{name}}} is filled in through {DEEPEST} others")));
        }
        if open.contains(&to) {
            return Err(bad(at, way, format!("${{{name}}} stands for itself")));
        }
        let Some(found) = walk(self.document, &to) else {
            return Err(self.unknown(&name, at, way));
        };
        open.push(to.clone());
        let filled = self.value(found, &mut to, open);
        open.pop();
        filled
    }

    fn unknown(&self, name: &str, at: &Yaml, way: &Way) -> BadFile {
        let mut known = Vec::new();
        names(self.document, "", &mut known);
        let near = did_you_mean(name, known.iter().map(String::as_str));
        let hint = near.unwrap_or_else(|| {
            format!("text that is to stay as it is begins with a backslash: \\${{{name}}}")
        });
        bad(at, way, format!("nothing is called {name}, as ${{{name}}} asks for")).with_hint(hint)
    }
}

/// Where a name leads from a place: dots before it lead up.
fn place(name: &str, way: &Way) -> Way {
    let dots = name.chars().take_while(|c| *c == '.').count();
    let keep = if dots == 0 { 0 } else { way.len().saturating_sub(dots) };
    let below = name.trim_start_matches('.').replace('[', ".").replace(']', "");
    let start = way.iter().take(keep).cloned();
    start.chain(below.split('.').filter(|part| !part.is_empty()).map(str::to_owned)).collect()
}

fn walk<'a>(document: &'a Yaml, way: &Way) -> Option<&'a Yaml> {
    way.iter().try_fold(document, |at, key| match &at.value {
        YamlValue::Map(_) => at.get(key),
        YamlValue::List(all) => all.get(key.parse::<usize>().ok()?),
        YamlValue::Blank | YamlValue::Text(_) => None,
    })
}

/// The names of all scalars below a value.
fn names(at: &Yaml, before: &str, into: &mut Vec<String>) {
    if let YamlValue::Map(all) = &at.value {
        for (key, below) in all {
            names(below, &format!("{before}{key}."), into);
        }
    } else {
        into.push(before.trim_end_matches('.').to_owned());
    }
}

fn bad(at: &Yaml, way: &Way, what: impl Into<String>) -> BadFile {
    let hint = "as in name: train-${tpu.accelerator}";
    BadFile::new(at.line, way.join("."), what, hint).at_column(at.column)
}

/// A part of a scalar.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// What stands there as it is.
    Plain(String),
    /// `${…}`, by what stands between the braces.
    Asked(String),
}

/// The parts of a scalar. Backslashes mean something before `${` alone: each two of them are one, and one that is left
/// makes it text.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut all = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let kept = before.trim_end_matches('\\');
        let slashes = before.len() - kept.len();
        plain.push_str(kept);
        plain.extend(std::iter::repeat_n('\\', slashes / 2));
        if slashes % 2 == 1 {
            plain.push_str("${");
            rest = behind;
            continue;
        }
        let Some((name, after)) = braced(behind) else {
            return Err("a ${ without } behind it".to_owned());
        };
        if !plain.is_empty() {
            all.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        all.push(Piece::Asked(name.trim().to_owned()));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() || all.is_empty() {
        all.push(Piece::Plain(plain));
    }
    Ok(all)
}

/// What stands before the brace that closes this one, and what stands behind it.
fn braced(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1_u32;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn at(text: &str, path: &str) -> String {
        let document = filled(&yaml::read(text).unwrap()).unwrap();
        let found = path.split('.').fold(&document, |yaml, key| yaml.get(key).unwrap());
        match &found.value {
            YamlValue::Text(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn names_lead_from_the_top_or_from_where_they_stand() {
        let tpu =
            "tpu:\n  accelerator: v6e-1\n  deep: {x: '${..accelerator}', y: '${.x}'}\n  name: ";
        for (name, is) in [
            ("yufeng-${tpu.accelerator}", "yufeng-v6e-1"),
            ("${.accelerator}-a", "v6e-1-a"),
            ("${tpu.deep.y}", "v6e-1"),
            ("${tpu.${which}}", "v6e-1"),
            ("${list[1]}${list.0}", "ba"),
            ("$HOME $(x) a\\b", "$HOME $(x) a\\b"),
            ("\\${HOME}/x", "${HOME}/x"),
            ("'\\\\${which}'", "\\accelerator"),
            ("plain", "plain"),
        ] {
            let text = format!("{tpu}{name}\nwhich: accelerator\nlist: [a, b]\n");
            assert_eq!(at(&text, "tpu.name"), is, "{name}");
        }
        // A value that is nothing but another one is that one, whatever it is.
        let document =
            filled(&yaml::read("a: {b: [x, '${c}']}\nc: y\nd: ${a}\n").unwrap()).unwrap();
        let list = document.get("d").and_then(|d| d.get("b")).unwrap();
        assert!(matches!(&list.value, YamlValue::List(all) if all.len() == 2));
    }

    #[test]
    fn what_cannot_be_filled_in_is_said_with_its_place() {
        for (text, place, says) in [
            ("a: 1\nb: x${aa}\n", (2, 4), "nothing is called aa"),
            ("a: ${b}\nb: x${a}\n", (1, 4), "stands for itself"),
            ("a: ${a}\n", (1, 4), "stands for itself"),
            ("a: ${oc.env:HOME}\n", (1, 4), "beyond the file"),
            ("a: x${b}\nb: [1]\n", (1, 4), "no text"),
            ("a: 'x${b'\n", (1, 4), "without }"),
        ] {
            let bad = filled(&yaml::read(text).unwrap()).unwrap_err();
            assert_eq!((bad.line, bad.column), (Some(place.0), Some(place.1)), "{text}: {bad:?}");
            assert!(bad.what.contains(says) && !bad.hint.is_empty(), "{text}: {bad:?}");
        }
        let mut bomb = "a0: xxxxxxxxxx\n".to_owned();
        for level in 1..30 {
            let below = format!("${{a{}}}", level - 1);
            bomb += &format!("a{level}: \"{below}{below}\"\n");
        }
        let bad = filled(&yaml::read(&bomb).unwrap()).unwrap_err();
        assert!(bad.what.contains("bytes"), "{bad:?}");
    }
}
