//! A YAML file as a tree, each value with the line on which it stands.
//!
//! Scalars are text as it was written: whether `'2'`, `2` or `010` is a number, and which, the reader of a field
//! decides. A file can make little more of itself than it is long: depth, nodes, and what aliases repeat have limits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};
use serde_saphyr::options::{AliasLimits, NonFiniteFloatPolicy};
use serde_saphyr::{LitStr, Location, RenderOptions, SnippetMode, Spanned, UserMessageFormatter};

use super::BadFile;

/// No file of people or their tools is larger, in bytes.
pub const LARGEST: usize = 4 << 20;

/// So deep may maps and lists stand in one another.
const DEEPEST: usize = 32;

/// So many values may stand in a file.
const MOST_VALUES: usize = 200_000;

/// So many values may its aliases repeat: a block of settings for each of many jobs.
const MOST_REPEATED: usize = 20_000;

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Yaml {
    /// The line, counted from 1.
    pub line: u64,
    /// The column, in characters, counted from 1.
    pub column: u64,
    /// Line and column of its key, if it is the value of one.
    pub key: Option<(u64, u64)>,
    /// What stands there.
    pub value: YamlValue,
}

/// What stands in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlValue {
    /// Nothing, `null` or `~`.
    Blank,
    /// Text, without the quotes.
    Text(String),
    /// A list.
    List(Vec<Yaml>),
    /// Keys and their values, in the order of the file; no key comes twice.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    /// The text of a scalar, without blanks around it; `None` where nothing else is left, or where no scalar stands.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            YamlValue::Blank | YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            YamlValue::Map(members) => {
                members.iter().find(|(known, _)| known == key).map(|(_, value)| value)
            }
            YamlValue::Blank | YamlValue::Text(_) | YamlValue::List(_) => None,
        }
    }

    /// The same without places, as JSON: every scalar is text, as it is written.
    pub fn plain(&self) -> Value {
        match &self.value {
            YamlValue::Blank => Value::Null,
            YamlValue::Text(text) => Value::from(text.as_str()),
            YamlValue::List(all) => all.iter().map(Self::plain).collect(),
            YamlValue::Map(members) => {
                let members = members.iter().map(|(key, value)| (key.clone(), value.plain()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// The members of a map; none where nothing stands. `field` is what a person is told it is.
    pub fn members(&self, field: &str) -> Result<&[(String, Self)], BadFile> {
        match &self.value {
            YamlValue::Map(members) => Ok(members),
            YamlValue::Blank => Ok(&[]),
            YamlValue::Text(_) | YamlValue::List(_) => Err(BadFile::new(
                self.line,
                field,
                "names with values below them are wanted here",
                "as in `name:`, and below it, indented, `ip: localhost`",
            )),
        }
    }
}

/// So many documents may stand in a file.
const MOST_DOCUMENTS: usize = 1_000;

/// Reads the text of a file, which is one document.
pub fn read(text: &str) -> Result<Yaml, BadFile> {
    fits(text)?;
    let options = options(2);
    let read: Result<Option<Node>, _> = serde_saphyr::from_str_with_options(text, options);
    match read {
        Ok(Some(Node(node))) => Ok(as_written(node, text)),
        Ok(None) => Ok(Yaml { line: 1, column: 1, key: None, value: YamlValue::Blank }),
        Err(error) => Err(unread(&error)),
    }
}

/// Reads the text of a file whose documents are parted by `---`; those in which nothing stands are left out.
pub fn read_all(text: &str) -> Result<Vec<Yaml>, BadFile> {
    fits(text)?;
    let read: Result<Vec<Node>, _> =
        serde_saphyr::from_multiple_with_options(text, options(MOST_DOCUMENTS));
    let all = read.map_err(|error| unread(&error))?;
    let all = all.into_iter().map(|Node(node)| as_written(node, text));
    Ok(all.filter(|document| document.value != YamlValue::Blank).collect())
}

fn fits(text: &str) -> Result<(), BadFile> {
    if text.len() > LARGEST {
        let what = format!("it has {} bytes; at most {LARGEST} are read", text.len());
        return Err(whole(what, "split it into several files"));
    }
    Ok(())
}

fn options(documents: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_nodes: MOST_VALUES,
            max_documents: documents,
            // With what aliases repeat, each time that they do.
            max_total_scalar_bytes: LARGEST,
        },
        alias_limits: alias_limits(),
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

fn whole(what: String, hint: &str) -> BadFile {
    BadFile { line: None, column: None, field: String::new(), what, hint: hint.to_owned() }
}

fn alias_limits() -> AliasLimits {
    let mut limits = AliasLimits::default();
    limits.max_total_replayed_events = MOST_REPEATED;
    limits
}

fn unread(error: &serde_saphyr::Error) -> BadFile {
    let mut render = RenderOptions::new(&UserMessageFormatter);
    render.snippets = SnippetMode::Off;
    let said = error.render_with_options(render);
    // The line is told as that of every other problem is.
    let said = said.lines().next().unwrap_or_default();
    let said = said.split(" at line ").next().unwrap_or(said);
    let line = error.location().map(|place| place.line()).filter(|line| *line > 0);
    let column = line.and(error.location()).map(|place| place.column());
    BadFile {
        line,
        column,
        ..whole(said.to_owned(), "correct that place; a file is read whole or not at all")
    }
}

/// The text of a file with these documents, which reads back as them.
pub fn written(documents: &[Yaml]) -> String {
    let options = serde_saphyr::ser_options! {
        // Nothing is folded: what people look for stands on one line.
        folded_wrap_chars: usize::MAX,
    };
    let one = |document: &Yaml| {
        serde_saphyr::to_string_with_options(&Written(document), options.clone())
            .unwrap_or_default()
    };
    documents.iter().map(one).collect::<Vec<_>>().join("---\n")
}

/// A value as the library writes it.
struct Written<'a>(&'a Yaml);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.value {
            YamlValue::Blank => serializer.serialize_unit(),
            YamlValue::Text(text) if text.contains('\n') => LitStr(text).serialize(serializer),
            YamlValue::Text(text) => match text.parse::<i64>() {
                // Quoted it would be the same, and strange to read.
                Ok(number) if number.to_string() == *text => serializer.serialize_i64(number),
                _ if text == "true" || text == "false" => serializer.serialize_bool(text == "true"),
                _ => serializer.serialize_str(text),
            },
            YamlValue::List(all) => serializer.collect_seq(all.iter().map(Written)),
            YamlValue::Map(all) => {
                serializer.collect_map(all.iter().map(|(key, value)| (key, Written(value))))
            }
        }
    }
}

/// A value as the library reads it.
struct Node(Spanned<Tree>);

/// What it reads, before plain scalars are looked up in the text.
enum Tree {
    Blank,
    Text(String),
    /// A scalar that stands without quotes and looks like a number or a truth.
    Plain,
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Blank)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(node) = list.next_element()? {
            all.push(node);
        }
        Ok(Tree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = map.next_entry()? {
            all.push(member);
        }
        Ok(Tree::Map(all))
    }
}

/// What the library makes of numbers that are too large for it, as `1e999`.
const NOT_FINITE: [&str; 3] = [".inf", "-.inf", ".nan"];

/// The text in a place.
fn slice(place: Location, text: &str) -> String {
    let span = place.span();
    let from = span.byte_offset().and_then(|at| usize::try_from(at).ok());
    let len = span.byte_len().and_then(|len| usize::try_from(len).ok());
    let slice = from.zip(len).and_then(|(at, len)| text.get(at..at.checked_add(len)?));
    slice.unwrap_or_default().trim().to_owned()
}

/// The same with the text of plain scalars, which stands where they were defined.
fn as_written(node: Spanned<Tree>, text: &str) -> Yaml {
    let value = match node.value {
        Tree::Blank => YamlValue::Blank,
        Tree::Text(said) if NOT_FINITE.contains(&said.as_str()) => {
            let written = slice(node.defined, text);
            YamlValue::Text(if written.starts_with(['\'', '"']) { said } else { written })
        }
        Tree::Text(said) => YamlValue::Text(said),
        Tree::Plain => YamlValue::Text(slice(node.defined, text)),
        Tree::List(all) => {
            YamlValue::List(all.into_iter().map(|Node(node)| as_written(node, text)).collect())
        }
        Tree::Map(all) => {
            let member = |(key, Node(node)): (Spanned<String>, Node)| {
                let place = Some((key.referenced.line(), key.referenced.column()));
                (key.value, Yaml { key: place, ..as_written(node, text) })
            };
            YamlValue::Map(all.into_iter().map(member).collect())
        }
    };
    let (line, column) = (node.referenced.line(), node.referenced.column());
    Yaml { line, column, key: None, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(yaml: &'a Yaml, path: &str) -> &'a Yaml {
        path.split('.').fold(yaml, |yaml, key| yaml.get(key).unwrap())
    }

    #[test]
    fn scalars_are_what_was_written_and_know_their_line() {
        let text = "a:\n  q: '2'\n  n: 010 # eight or ten\n  h: 0x1F\n  e: 1e999\n  t: yes\n  b:\n  s: ' '\n  \
                    m: plain words\nx: &x 1_000\ny: *x\n";
        let yaml = read(text).unwrap();
        let said = |path: &str| at(&yaml, path).text().unwrap_or("-").to_owned();
        for (path, expected) in [
            ("a.q", "2"),
            ("a.n", "010"),
            ("a.h", "0x1F"),
            ("a.e", "1e999"),
            ("a.t", "yes"),
            ("a.b", "-"),
            ("a.s", "-"),
            ("a.m", "plain words"),
            ("x", "1_000"),
            ("y", "1_000"),
        ] {
            assert_eq!(said(path), expected, "{path}");
        }
        assert_eq!((at(&yaml, "a.n").line, at(&yaml, "y").line), (3, 11));
        assert_eq!(at(&yaml, "a.b").value, YamlValue::Blank);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "# nothing\n", "---\n", "~"] {
            assert_eq!(read(text).unwrap().value, YamlValue::Blank, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        for (text, line) in [
            ("a: 1\na: 2\n", 2),
            ("a:\n\tb: 1\n", 2),
            ("a: [1, 2\nb: 3\n", 2),
            ("a: *nowhere\n", 1),
            ("a: 1\n---\nb: 2\n", 2),
            ("a: 'open\n", 2),
        ] {
            let bad = read(text).unwrap_err();
            assert!(bad.line.is_some_and(|said| said.abs_diff(line) <= 1), "{text:?}: {bad:?}");
            assert!(!bad.what.contains(" at line ") && !bad.what.is_empty(), "{text:?}: {bad:?}");
        }
    }

    // slow: files of the largest size are read.
    #[test]
    fn a_file_grows_no_larger_than_its_limits() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let below = format!("*a{}", level - 1);
            let ten = vec![below; 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{ten}]\n");
        }
        assert!(read(&bomb).is_err());
        // Few aliases of a long text, and many of a short one.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(LARGEST / 8), ["*a"; 8].join(", "));
        assert!(read(&long).is_err());
        let often = |times: usize| format!("a: &a [x, y]\nb: [{}]\n", vec!["*a"; times].join(", "));
        assert!(read(&often(MOST_REPEATED)).is_err());
        assert!(read(&often(50)).is_ok());
        assert!(read(&"[".repeat(5000)).is_err());
        let deep: Vec<String> = (0..100).map(|depth| " ".repeat(depth) + "k:\n").collect();
        let deep = deep.concat();
        assert!(read(&deep).is_err());
        assert!(read(&"a".repeat(LARGEST + 1)).is_err());
        let many: Vec<String> = (0..MOST_VALUES).map(|n| format!("k{n}: 1\n")).collect();
        let many = many.concat();
        assert!(read(&many).is_err());
    }
}
