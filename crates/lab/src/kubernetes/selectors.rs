//! Which objects are meant: selectors by label and by field.

use serde_json::Value;

use super::asked::Asked;
use super::refused::Refused;
use super::resources::{ApiResource, JOBS, PODS};

/// What an object has to fulfil.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    labels: Vec<LabelRule>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug)]
enum LabelRule {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Wanted {
    /// What the query of a request asks for.
    pub(super) fn of(asked: &Asked, resource: &ApiResource) -> Result<Self, Refused> {
        let (labels, fields) = (asked.parameter("labelSelector"), asked.parameter("fieldSelector"));
        Self::parse(resource, labels, fields)
    }

    /// Reads both selectors as they stand in a query.
    pub(super) fn parse(
        resource: &ApiResource,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Refused> {
        let labels = labels.map_or(Ok(Vec::new()), label_rules)?;
        let fields = fields.map_or(Ok(Vec::new()), |text| field_rules(resource, text))?;
        Ok(Self { labels, fields })
    }

    /// Whether it asks for nothing in particular.
    pub(super) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is meant.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let labels = self.labels.iter().all(|rule| match rule {
            LabelRule::In(key, values) => {
                label(key).is_some_and(|is| values.iter().any(|v| v == is))
            }
            LabelRule::NotIn(key, values) => {
                label(key).is_none_or(|is| values.iter().all(|v| v != is))
            }
            LabelRule::Exists(key) => label(key).is_some(),
            LabelRule::Missing(key) => label(key).is_none(),
        });
        labels
            && self.fields.iter().all(|(key, same, value)| (field(object, key) == *value) == *same)
    }
}

/// A field as selectors compare it: text, empty for what is not there.
fn field(object: &Value, path: &str) -> String {
    let path = if path == "status.successful" { "status.succeeded" } else { path };
    let found = path.split('.').fold(object, |at, part| &at[part]);
    match found {
        Value::String(text) => text.clone(),
        Value::Null if path == "status.succeeded" => "0".to_owned(),
        Value::Null if path == "spec.unschedulable" => "false".to_owned(),
        Value::Null => String::new(),
        Value::Object(of) if path == "source" => {
            of.get("component").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}

fn field_rules(resource: &ApiResource, text: &str) -> Result<Vec<(String, bool, String)>, Refused> {
    let mut rules = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, same, value) = if let Some((key, value)) = part.split_once("!=") {
            (key, false, value)
        } else if let Some((key, value)) = part.split_once("==") {
            (key, true, value)
        } else if let Some((key, value)) = part.split_once('=') {
            (key, true, value)
        } else {
            let what = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(Refused::bad(&what));
        };
        let known = ["metadata.name", "metadata.namespace"].contains(&key);
        if !known && !resource.fields.contains(&key) {
            return Err(Refused::bad(&unknown_field(resource, key)));
        }
        rules.push((key.to_owned(), same, value.to_owned()));
    }
    Ok(rules)
}

/// Each resource has its own words for it [list-field-bad, list-field-badpod].
fn unknown_field(resource: &ApiResource, key: &str) -> String {
    if resource.is(&JOBS) {
        format!("field label {key:?} not supported for batchv1.Job")
    } else if resource.is(&PODS) {
        format!("field label not supported: {key}")
    } else {
        format!(
            "{key:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    }
}

/// Words and signs of a label selector.
fn tokens(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        let is_sign = "=!(),<>".contains(c);
        if !word.is_empty() && (is_sign || c.is_whitespace()) {
            all.push(std::mem::take(&mut word));
        }
        if is_sign {
            let joins = matches!((all.last().map(String::as_str), c), (Some("=" | "!"), '='));
            match all.last_mut() {
                Some(last) if joins => last.push(c),
                _ => all.push(c.to_string()),
            }
        } else if !c.is_whitespace() {
            word.push(c);
        }
    }
    if !word.is_empty() {
        all.push(word);
    }
    all
}

fn label_rules(text: &str) -> Result<Vec<LabelRule>, Refused> {
    let found = |what: &str, expected: &str| {
        Refused::bad(&format!("unable to parse requirement: found '{what}', expected: {expected}"))
    };
    let all = tokens(text);
    let mut left = all.iter().map(String::as_str).peekable();
    let mut rules = Vec::new();
    let is_word = |token: &str| !token.starts_with(['=', '!', '(', ')', ',', '<', '>']);
    while let Some(token) = left.next() {
        if token == "," {
            continue;
        }
        if token == "!" {
            let key = left.next().filter(|t| is_word(t)).ok_or_else(|| found("", "identifier"))?;
            rules.push(LabelRule::Missing(key.to_owned()));
            continue;
        }
        if !is_word(token) {
            return Err(found(token, "!, identifier, or 'end of string'"));
        }
        let key = token.to_owned();
        match left.next() {
            None | Some(",") => rules.push(LabelRule::Exists(key)),
            Some(sign @ ("=" | "==" | "!=")) => {
                let value = match left.peek() {
                    None | Some(&",") => String::new(),
                    Some(value) if is_word(value) => (*value).to_owned(),
                    Some(other) => return Err(found(other, "identifier")),
                };
                if !value.is_empty() {
                    left.next();
                }
                let values = vec![value];
                rules.push(if sign == "!=" {
                    LabelRule::NotIn(key, values)
                } else {
                    LabelRule::In(key, values)
                });
            }
            Some(word @ ("in" | "notin")) => {
                if left.next() != Some("(") {
                    return Err(found(word, "("));
                }
                let mut values = Vec::new();
                loop {
                    match left.next() {
                        Some(")") => break,
                        Some(",") => {}
                        Some(value) if is_word(value) => values.push(value.to_owned()),
                        other => return Err(found(other.unwrap_or_default(), "',' or ')'")),
                    }
                }
                rules.push(if word == "in" {
                    LabelRule::In(key, values)
                } else {
                    LabelRule::NotIn(key, values)
                });
            }
            Some(other) => return Err(found(other, "in, notin, =, ==, !=")),
        }
    }
    Ok(rules)
}
