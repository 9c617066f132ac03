//! The JSON Schema of each value.
//!
//! A scalar is text to the reader, whatever a YAML library makes of it: each is said here as text and as the number or
//! truth that it may become. A `{{field}}` may stand wherever one value does.

use serde_json::{Map, Value, json};

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::notify::{MessageScreen, Occasion, WebhookShape};
use tpu_core::model::order::Preferred;
use tpu_core::model::repeat::RepeatWhen;
use tpu_core::model::rules::{Action, NAMED};

use super::KindWords;
use super::order::{TARGET, TPU};
use super::repeat::NEVER;
use super::setup::{CACHE, MODULES};
use super::target::{PRICING, TYPE};

/// A whole number of 32 bits without a sign.
const U32: &str = "[0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}\
    |42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]";

/// The largest of them.
pub(super) const MOST: u64 = u32::MAX as u64;

/// A slot, or a directory of a machine.
pub(super) fn dir() -> Value {
    json!({ "anyOf": [whole(0, MOST), directory()] })
}

/// The members of a repository.
pub(super) const REPOSITORY: [&str; 2] = ["repo", "branch"];

pub(super) fn code() -> Value {
    let said = json!({ "allOf": [text(), { "not": { "pattern": "^\\s*-" } }] });
    let members = REPOSITORY.map(|key| (key, said.clone()));
    let ignored = object(&[("ignored", choice(&["link", "leave"]))], &["ignored"]);
    json!({ "anyOf": [choice(&[".", "in-place", "none"]), object(&members, &["repo"]), ignored] })
}

/// A path below a directory.
pub(super) fn below() -> Value {
    let elsewhere = r"^/|^\.(/|$)|(^|/)\.\.(/|$)";
    json!({ "allOf": [text(), { "not": { "type": "string", "pattern": elsewhere } }] })
}

/// A file for what a command prints.
pub(super) fn output() -> Value {
    json!({ "allOf": [text(), { "not": { "type": "string", "pattern": "\\S\\s*\\n\\s*\\S|/\\s*$" } }] })
}

/// Shell text, or words.
pub(super) fn command() -> Value {
    json!({ "anyOf": [text(), { "type": "array", "minItems": 1, "items": word() }] })
}

pub(super) fn array() -> Value {
    json!({ "anyOf": [
        matching("[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*(%[0-9]*[1-9][0-9]*)?"),
        { "type": "integer", "minimum": 0 },
        names(&json!({}), &json!({ "anyOf": [{ "type": "array", "minItems": 1, "items": text() }, text()] })),
    ]})
}

/// A number of CPUs.
pub(super) fn cpus() -> Value {
    one(&whole(1, MOST))
}

/// A number of GPUs.
pub(super) fn gpus() -> Value {
    one(&whole(0, MOST))
}

/// Numbers of GPUs.
pub(super) fn gpu() -> Value {
    texts(&json!({ "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": MOST },
        matching(&format!("\\+?0*(?:{U32})(?:\\s*,\\s*\\+?0*(?:{U32}))*")),
    ]}))
}

pub(super) fn memory() -> Value {
    one(&json!({ "anyOf": [
        { "type": "number", "exclusiveMinimum": 0 },
        matching("(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)[MmGgTt]?i?[Bb]?"),
    ]}))
}

/// All workers, or some of them by their numbers.
pub(super) fn workers() -> Value {
    json!({ "anyOf": [choice(&["all"]), texts(&whole(0, MOST))] })
}

/// One value that is not blank.
pub(super) fn text() -> Value {
    json!({ "anyOf": [
        { "type": "string", "pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$" },
        { "type": ["number", "boolean"] },
    ]})
}

/// One value, which may be empty.
pub(super) fn word() -> Value {
    json!({ "anyOf": [
        { "type": "string", "pattern": "^[^\\u0000]*$" },
        { "type": ["number", "boolean"] },
    ]})
}

/// Text of this form, with blanks around it.
pub(super) fn matching(form: &str) -> Value {
    filled(&json!({ "type": "string", "pattern": format!("^\\s*(?:{form})\\s*$") }))
}

/// The same, or text in which something is to be filled in.
fn filled(of: &Value) -> Value {
    json!({ "anyOf": [of, { "type": "string", "pattern": "\\{\\{" }] })
}

pub(super) fn choice(words: &[&str]) -> Value {
    matching(&words.iter().map(|word| word.replace('.', "\\.")).collect::<Vec<_>>().join("|"))
}

/// A whole number between two others.
pub(super) fn whole(least: u64, most: u64) -> Value {
    let text = match most {
        100 => "100|[0-9]{1,2}",
        10_000 => "10000|[0-9]{1,4}",
        _ => U32,
    };
    let number = json!({ "type": "integer", "minimum": least, "maximum": most });
    let text = matching(&format!("\\+?0*(?:{text})"));
    if least == 0 {
        return json!({ "anyOf": [number, text] });
    }
    let zero = json!({ "type": "string", "pattern": "^\\s*\\+?0*\\s*$" });
    json!({ "anyOf": [number, { "allOf": [text, { "not": zero }] }] })
}

pub(super) fn truth() -> Value {
    json!({ "anyOf": [{ "type": "boolean" }, choice(&["true", "false"])] })
}

pub(super) fn seconds() -> Value {
    json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, matching("\\+?0*[1-9][0-9]{0,12}[smhd]?")] })
}

/// One value, or a list of them.
pub(super) fn texts(of: &Value) -> Value {
    json!({ "anyOf": [{ "type": "array", "minItems": 1, "items": of }, of] })
}

/// One value, which may stand in a list.
fn one(of: &Value) -> Value {
    json!({ "anyOf": [of, { "type": "array", "minItems": 1, "maxItems": 1, "items": of }] })
}

/// Several, where a list may be empty and nothing may stand at all.
fn some(of: &Value) -> Value {
    json!({ "anyOf": [{ "type": "array", "items": of }, of, { "type": "null" }] })
}

/// Names of this form with such values.
pub(super) fn names(name: &Value, of: &Value) -> Value {
    json!({ "type": "object", "minProperties": 1, "propertyNames": name, "additionalProperties": of })
}

/// An object of these members, some of which have to be there. Where nothing stands it is as if the key were not there.
pub(super) fn object(members: &[(&str, Value)], required: &[&str]) -> Value {
    let one = |(key, of): &(&str, Value)| {
        let is_needed = required.contains(key);
        let of = if is_needed { of.clone() } else { or_blank(of) };
        ((*key).to_owned(), of)
    };
    json!({
        "type": "object",
        "minProperties": 1,
        "properties": members.iter().map(one).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

fn or_blank(of: &Value) -> Value {
    json!({ "anyOf": [of, { "type": "null" }] })
}

/// Words that name a target.
fn target_words() -> Value {
    texts(&json!({ "anyOf": [
        matching("[^\\s=\\u0000-][^= \\n\\u0000]*"),
        { "type": "number", "minimum": 0 },
        { "type": "boolean" },
    ]}))
}

pub(super) fn target(kinds: &[KindWords]) -> Value {
    let mut forms = vec![target_words()];
    let asks = || -> Map<String, Value> {
        let all = [("gpus", gpus()), ("gpu", gpu()), ("cpus", cpus()), ("mem", memory())];
        all.into_iter().map(|(key, of)| (key.to_owned(), of)).collect()
    };
    let form = |word: &str, mut properties: Map<String, Value>, patterns: Value| {
        properties.insert(word.to_owned(), target_words());
        json!({
            "type": "object",
            "properties": properties,
            "patternProperties": patterns,
            "required": [word],
            "additionalProperties": false,
        })
    };
    forms.push(form("hosts", asks(), json!({})));
    for kind in kinds {
        let mut patterns = Map::new();
        for option in &kind.options {
            let map = json!({ "type": "object", "minProperties": 1 });
            let of = if option.takes_map { json!({ "anyOf": [text(), map] }) } else { text() };
            let of = if option.is_many { texts(&of) } else { one(&of) };
            let names = std::iter::once(option.option).chain(option.also);
            let names: Vec<String> = names.map(|name| name.replace('-', "[-_]")).collect();
            patterns.insert(format!("^(?:{})$", names.join("|")), of);
        }
        let mut own = asks();
        own.retain(|key, _| !kind.options.iter().any(|option| option.is_called(key)));
        forms.push(form(&kind.word, own, Value::Object(patterns)));
    }
    let of_type = |key: &str| match key {
        "pricing" => choice(&PRICING),
        _ => target_words(),
    };
    forms.push(object(&TYPE.map(|key| (key, of_type(key))), &["type"]));
    let of_order = |key: &str| match key {
        "accelerator" | "zone" => texts(&text()),
        "pricing" => choice(&PRICING),
        "mode" => choice(&["tpu-vm", "queued-resources"]),
        "prefer" => choice(&Preferred::ALL.map(Preferred::as_str)),
        _ => text(),
    };
    let members: Vec<(&str, Value)> = TARGET.iter().map(|key| (*key, of_order(key))).collect();
    forms.push(object(&members, &["accelerator", "zone"]));
    json!({ "anyOf": forms })
}

pub(super) fn tpu() -> Value {
    let of = |key: &str| match key {
        "number" => json!({ "anyOf": [whole(0, MOST), choice(&["auto"])] }),
        "tags" | "network" | "startup_script" => some(&text()),
        "delete_after" => choice(&["done"]),
        "flags" => some(&matching(
            "--(?:network|subnetwork|service-account|tags)(?:=[^\\u0000]*)?|--internal-ips(?:=(?:true|false))?",
        )),
        "metadata" => names(&json!({}), &text()),
        _ => text(),
    };
    let members: Vec<(&str, Value)> = TPU.iter().map(|key| (*key, of(key))).collect();
    object(&members, &[])
}

/// A name that is a file's or a directory's as well.
fn plain() -> Value {
    json!({ "anyOf": [matching("[A-Za-z0-9][A-Za-z0-9._-]*"), { "type": ["number", "boolean"] }] })
}

/// A directory of a worker.
pub(super) fn directory() -> Value {
    matching("(?:/|~/)[^\\n]*[^/\\n\\s]/*")
}

pub(super) fn module() -> Value {
    let of = |name: &str| match name {
        "ssh_keys" => {
            let identity = object(
                &[("private_key", text()), ("public_key", text()), ("config_entry", text())],
                &[],
            );
            let all = json!({ "type": "array", "minItems": 1, "items": identity });
            object(&[("identities", all)], &["identities"])
        }
        "gcsfuse" => {
            let caches: Vec<(&str, Value)> = CACHE.iter().map(|(key, _)| (*key, text())).collect();
            let cache = names(
                &json!({ "enum": caches.iter().map(|(key, _)| *key).collect::<Vec<_>>() }),
                &text(),
            );
            let bucket = matching("(?:gs://)?[a-z0-9_.-]+/*");
            let more = object(
                &[("bucket", bucket.clone()), ("mount", directory()), ("cache", cache.clone())],
                &["mount"],
            );
            let more = json!({ "type": "array", "items": more });
            let members = [
                ("bucket", bucket),
                ("mount", directory()),
                ("cache", cache),
                ("extra_mounts", more),
            ];
            object(&members, &["bucket", "mount"])
        }
        "nfs" => {
            let members = [
                ("export", matching("[\\s\\S]*:/[\\s\\S]*")),
                ("mount", directory()),
                ("options", text()),
            ];
            object(&members, &["export", "mount"])
        }
        "docker" => object(
            &[
                ("image", text()),
                ("mounts", some(&text())),
                ("workdir", text()),
                ("flags", some(&text())),
            ],
            &["image"],
        ),
        "conda" => object(&[("name", plain()), ("file", text())], &[]),
        "venv" => object(&[("name", plain()), ("python", text()), ("requirements", text())], &[]),
        "wandb" => {
            let key = matching("[A-Z_][A-Z0-9_]*");
            let host =
                json!({ "anyOf": [matching("[A-Za-z0-9.-]+"), { "type": ["number", "boolean"] }] });
            object(&[("key", key), ("host", host)], &["key"])
        }
        _ => plain(),
    };
    let mut forms: Vec<Value> =
        MODULES.iter().map(|name| object(&[(name, of(name))], &[name])).collect();
    let file = object(&[("from", text()), ("to", directory()), ("mode", mode())], &["from", "to"]);
    let files = json!({ "type": "array", "items": file });
    let step = object(
        &[
            ("name", plain()),
            ("check", text()),
            ("run", text()),
            ("files", files),
            ("workers", workers()),
            ("timeout", seconds()),
            ("once_per", choice(&["machine", "job"])),
        ],
        &["name"],
    );
    let does = json!({ "anyOf": [
        { "required": ["run"], "properties": { "run": text() } },
        { "required": ["files"], "properties": { "files": { "type": "array", "minItems": 1 } } },
    ]});
    forms.push(json!({ "allOf": [step, does] }));
    json!({ "anyOf": forms })
}

/// The rights of a file, in octal digits, whatever a library makes of them.
fn mode() -> Value {
    let text = matching("\\+?0*[0-7]{1,3}");
    json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 777 }, text] })
}

/// Kinds of failure, in any case and with `-`, `_` or a blank.
fn kinds_of_failure(but: Option<ErrorKind>) -> String {
    let loose = |c: char| match c {
        '-' => "[-_ ]".to_owned(),
        c => format!("[{c}{}]", c.to_ascii_uppercase()),
    };
    let known = ErrorKind::ALL.into_iter().filter(|kind| Some(*kind) != but);
    let words = known.map(ErrorKind::as_str).chain(ErrorKind::OF_THE_ORIGINAL);
    words.map(|word| word.chars().map(loose).collect()).collect::<Vec<String>>().join("|")
}

pub(super) fn rules() -> Value {
    let actions = Action::ALL.map(Action::as_str).join("|");
    let kinds = kinds_of_failure(None);
    let rule = format!("\\s*(?:{kinds})\\s*:(?:{actions})");
    json!({ "anyOf": [
        matching(&format!("{}|{rule}(?:,{rule})*", NAMED.join("|"))),
        names(&matching(&kinds), &matching(&actions)),
    ]})
}

pub(super) fn repeat() -> Value {
    let [always, on_failure] = RepeatWhen::ALL.map(RepeatWhen::as_str);
    let when = choice(&[NEVER, always, on_failure]);
    json!({ "anyOf": [when, object(&[("when", when.clone()), ("pause", seconds())], &["when"])] })
}

/// Receivers. What a text names is looked at by the reader alone.
pub(super) fn notify() -> Value {
    let on: Vec<&str> = Occasion::named().map(Occasion::as_str).collect();
    let on = texts(&choice(&on));
    let url = matching("(?:https?://|\\$\\{)[^\\s\\x00-\\x1f\\x7f]+");
    let command = json!({ "anyOf": [text(), { "type": "array", "minItems": 1, "items": word() }] });
    let shapes = WebhookShape::ALL.map(WebhookShape::as_str);
    let screens = MessageScreen::ALL.map(MessageScreen::as_str);
    let secret = matching("[A-Z_][A-Z0-9_]*");
    let webhook = [
        ("webhook", url),
        ("on", on.clone()),
        ("shape", choice(&shapes)),
        ("secret", secret.clone()),
        ("from", text()),
        ("to", text()),
        ("public_only", truth()),
    ];
    // In one line, and no option.
    let short = json!({ "anyOf": [
        matching("[^-\\s\\x00-\\x1f\\x7f][^\\x00-\\x1f\\x7f]*"),
        { "type": "number", "minimum": 0 },
        { "type": "boolean" },
    ]});
    let receiver = |of_text: Value| {
        json!({ "anyOf": [
            of_text,
            object(&webhook, &["webhook"]),
            object(&[("mail", text()), ("on", on.clone())], &["mail"]),
            object(
                &[("command", command.clone()), ("on", on.clone()), ("secret", secret.clone())],
                &["command"],
            ),
            object(&[("message", choice(&screens)), ("on", on.clone())], &["message"]),
        ]})
    };
    let all = json!({ "type": "array", "prefixItems": [receiver(short.clone())], "items": receiver(text()) });
    json!({ "anyOf": [receiver(short), all] })
}

pub(super) fn retry() -> Value {
    let max = whole(0, 10_000);
    let members = [
        ("max", max.clone()),
        ("on", texts(&matching(&kinds_of_failure(Some(ErrorKind::Dependency))))),
        ("backoff", seconds()),
    ];
    json!({ "anyOf": [max, object(&members, &["max"])] })
}
