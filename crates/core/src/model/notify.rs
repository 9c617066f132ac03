//! Who is told of what: what the setting `notify`, `notify:` of a job file and `--notify` say. All three are read here.
//!
//! A receiver is a map, or in short `[EVENT,…=]WHERE`, where WHERE is a URL, an address, `tmux`, `desktop`, or a
//! command. A value that nobody should read stands in none of them: a receiver names it, and `tpu secrets` keeps it.

mod smtp;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::read::{DataError, Json, Path};
use super::variables;
use super::words::words;
use crate::text;

pub(super) use smtp::read_smtp;
pub use smtp::{Smtp, SmtpTls};

/// What people can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// Its target was taken away.
    Preempted,
    /// It goes on again.
    Resumed,
    /// It has failed otherwise.
    Error,
    /// It has ended well.
    Finished,
    /// It has said nothing for too long.
    Stalled,
    /// Its loss is no number any more.
    Diverged,
    /// It was to go on from a checkpoint, and begins far below it.
    StartedOver,
    /// A target that is waited for was not to be had for an hour.
    NoCapacity,
    /// Nothing of a user waits any more.
    QueueEmpty,
    /// Nothing brings it back any more: what it may cost in tries is spent.
    BudgetSpent,
    /// Somebody tries out whether this arrives.
    Test,
}

words! {
    /// The spelling in settings, files and what is sent.
    Occasion {
        Preempted: "preempted",
        Resumed: "resumed",
        Error: "error",
        Finished: "finished",
        Stalled: "stalled",
        Diverged: "diverged",
        StartedOver: "started-over",
        NoCapacity: "no-capacity",
        QueueEmpty: "queue-empty",
        BudgetSpent: "budget-spent",
        Test: "test",
    }
}

impl Occasion {
    /// Those that a receiver may name: nobody has to ask for a test.
    pub fn named() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|occasion| *occasion != Self::Test)
    }

    /// Reads the spelling.
    pub fn parse(word: &str) -> Option<Self> {
        Self::named().find(|occasion| occasion.as_str() == word)
    }
}

/// In which form a webhook is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookShape {
    /// As events, one by one.
    #[default]
    Json,
    /// As a message of Slack.
    Slack,
    /// As a mail that Brevo sends.
    Brevo,
}

words! {
    /// The spelling in settings and files.
    WebhookShape {
        Json: "json",
        Slack: "slack",
        Brevo: "brevo",
    }
}

/// The screen on which a message appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageScreen {
    /// The terminals that look at the user's tmux session.
    Tmux,
    /// The desktop of whoever runs the daemon, by `notify-send`.
    Desktop,
}

words! {
    /// The spelling in settings and files.
    MessageScreen {
        Tmux: "tmux",
        Desktop: "desktop",
    }
}

/// The way to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayTo {
    /// A request to this URL; `${NAME}` in it is a secret.
    Webhook(String),
    /// A mail to this address.
    Mail(String),
    /// A command, word by word, which reads the events as JSON.
    Command(Vec<String>),
    /// A message on a screen.
    Message(MessageScreen),
}

/// Somebody who is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Receiver {
    /// Of what.
    pub on: Vec<Occasion>,
    /// How.
    pub way: WayTo,
    /// Of a webhook.
    pub shape: WebhookShape,
    /// The name of the secret by which a webhook lets us in, or that a command gets as a variable.
    pub secret: Option<String>,
    /// Of a mail by Brevo: from whom, and to whom.
    pub mail: Option<(String, String)>,
    /// Whether a webhook is told at a public address only: whoever named it may not send to this machine and its networks.
    pub public_only: bool,
}

/// A receiver that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadReceiver {
    /// What is wrong.
    pub what: String,
    /// What is wanted.
    pub hint: String,
}

/// How one may look.
const EXAMPLE: &str =
    "{\"on\": [\"error\"], \"webhook\": \"https://HOST/PATH\"}, or in short error=me@example.org";

/// The members of a receiver.
pub const KEYS: [&str; 10] =
    ["on", "webhook", "mail", "command", "message", "shape", "secret", "from", "to", "public_only"];

/// Refuses a line break, behind which something else could begin.
fn one_line(text: &str) -> Result<(), BadReceiver> {
    if text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return bad("there is a line break in it", "a receiver is one line");
    }
    Ok(())
}

fn bad<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T, BadReceiver> {
    Err(BadReceiver { what: what.into(), hint: hint.into() })
}

/// What a value says: `none` or an empty list is nobody, which is more than no word.
pub fn receivers(value: &Value) -> Result<Vec<Receiver>, BadReceiver> {
    match value {
        Value::String(word) if word.trim() == "none" => Ok(Vec::new()),
        Value::Array(all) => {
            let words: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            match words {
                // A command word by word, as this setting was first.
                Some(words) if !words.is_empty() && !words.iter().any(|word| is_short(word)) => {
                    let words = words.into_iter().map(str::to_owned).collect();
                    Ok(vec![Receiver::of(WayTo::Command(checked_command(words)?))])
                }
                _ => all.iter().map(Receiver::read).collect(),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Ok(vec![Receiver::read(value)?])
        }
    }
}

/// Whether a text names an address of some sort, and is no word of a command.
fn is_short(text: &str) -> bool {
    let place = parted(text).1;
    place.contains("://")
        || place.starts_with("${")
        || place.contains('@')
        || MessageScreen::ALL.iter().any(|screen| screen.as_str() == place)
}

/// What stands before the `=`, if those are events, and the rest.
fn parted(text: &str) -> (Option<&str>, &str) {
    let is_list =
        |events: &str| events.split(',').all(|word| Occasion::parse(word.trim()).is_some());
    match text.split_once('=') {
        Some((events, rest)) if is_list(events) => (Some(events), rest.trim()),
        _ => (None, text.trim()),
    }
}

impl Receiver {
    /// One that is told of everything.
    pub fn of(way: WayTo) -> Self {
        let on = Occasion::named().collect();
        let (shape, secret, mail) = (WebhookShape::Json, None, None);
        Self { on, way, shape, secret, mail, public_only: false }
    }

    /// Whether it is told of this.
    pub fn wants(&self, occasion: Occasion) -> bool {
        occasion == Occasion::Test || self.on.contains(&occasion)
    }

    /// Whether both are the same place, whatever it is told of.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |of: &Self| (of.way.clone(), of.shape, of.secret.clone(), of.mail.clone());
        place(self) == place(other)
    }

    /// Reads one: a map, or in short.
    pub fn read(value: &Value) -> Result<Self, BadReceiver> {
        match value {
            Value::String(text) => Self::short(text),
            Value::Object(members) => Self::whole(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                bad("it is no receiver", format!("as in {EXAMPLE}"))
            }
        }
    }

    /// Reads `[EVENT,…=]WHERE`.
    fn short(text: &str) -> Result<Self, BadReceiver> {
        one_line(text)?;
        let (events, place) = parted(text);
        if place.starts_with(['{', '[']) || place == "null" {
            return bad("it is JSON as a text", "leave the quotes around it away");
        }
        if place.is_empty() {
            return bad("nothing says where to", format!("as in {EXAMPLE}"));
        }
        let screen = MessageScreen::ALL.into_iter().find(|screen| screen.as_str() == place);
        let way = if let Some(screen) = screen {
            WayTo::Message(screen)
        } else if place.contains("://") || place.starts_with("${") {
            WayTo::Webhook(url(place)?)
        } else if place.contains('@') && !place.contains(char::is_whitespace) {
            WayTo::Mail(address(place)?)
        } else {
            let Some(words) = shlex::split(place) else {
                return bad("a quote is not closed", "a command as a shell takes it");
            };
            WayTo::Command(checked_command(words)?)
        };
        let mut read = Self::of(way);
        if let Some(events) = events {
            let events = events.split(',');
            read.on = events.filter_map(|word| Occasion::parse(word.trim())).collect();
        }
        Ok(read)
    }

    fn whole(members: &Map<String, Value>) -> Result<Self, BadReceiver> {
        if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = text::did_you_mean(key, KEYS)
                .unwrap_or_else(|| format!("one of {}", KEYS.join(", ")));
            return bad(format!("'{key}' is no member of a receiver"), hint);
        }
        let said = |key: &str| match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => {
                one_line(text)?;
                Ok(Some(text.trim()))
            }
            Some(_) => bad(format!("{key}: a text is wanted"), format!("as in {EXAMPLE}")),
        };
        let mut ways = Vec::new();
        ways.extend(said("webhook")?.map(|place| Ok(WayTo::Webhook(url(place)?))));
        ways.extend(said("mail")?.map(|place| Ok(WayTo::Mail(address(place)?))));
        ways.extend(members.get("command").filter(|of| !of.is_null()).map(command));
        ways.extend(said("message")?.map(|place| {
            let screen = MessageScreen::ALL.into_iter().find(|screen| screen.as_str() == place);
            screen.map(WayTo::Message).map_or_else(
                || bad(format!("message: '{place}' is no screen"), "tmux or desktop"),
                Ok,
            )
        }));
        let way = match (ways.pop(), ways.is_empty()) {
            (Some(way), true) => way?,
            (None, _) => return bad("nothing says where to", "webhook, mail, command or message"),
            (Some(_), false) => return bad("it has two ways", "a receiver for each"),
        };
        let mut read = Self::of(way);
        if let Some(on) = members.get("on").filter(|on| !on.is_null()) {
            read.on = occasions(on)?;
        }
        let is_webhook = matches!(read.way, WayTo::Webhook(_));
        if let Some(shape) = said("shape")? {
            let known = WebhookShape::ALL.into_iter().find(|known| known.as_str() == shape);
            read.shape = match known.filter(|_| is_webhook) {
                Some(shape) => shape,
                None if is_webhook => {
                    return bad(format!("shape: there is no '{shape}'"), "json, slack or brevo");
                }
                None => return bad("shape: is a webhook's", "leave it away"),
            };
        }
        if let Some(name) = said("secret")? {
            if let Err((what, hint)) = variables::as_secret(name) {
                return bad(format!("secret: {what}"), hint);
            }
            if !is_webhook && !matches!(read.way, WayTo::Command(_)) {
                return bad("secret: is a webhook's or a command's", "leave it away");
            }
            read.secret = Some(name.to_owned());
        }
        let mail = (said("from")?, said("to")?);
        read.public_only = match members.get("public_only") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is)) if is_webhook => *is,
            // Scalars of a file are text.
            Some(Value::String(word))
                if is_webhook && matches!(word.as_str(), "true" | "false") =>
            {
                word == "true"
            }
            Some(_) => return bad("public_only: is true or false, of a webhook", "leave it away"),
        };
        read.mail = match (read.shape, mail) {
            (WebhookShape::Brevo, (Some(from), Some(to))) => Some((address(from)?, address(to)?)),
            (WebhookShape::Brevo, _) => {
                return bad("from: or to: is missing", "a mail by Brevo has both");
            }
            (_, (None, None)) => None,
            _ => return bad("from: and to: are those of a mail by Brevo", "leave them away"),
        };
        if let WayTo::Webhook(place) = &read.way
            && read.secret.is_some()
            && is_open(place)
        {
            return bad("the secret would go unprotected over http://", "write https://");
        }
        Ok(read)
    }

    /// As a map, all of it said.
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("on".to_owned(), json!(self.on));
        let (key, place) = match &self.way {
            WayTo::Webhook(url) => ("webhook", json!(url)),
            WayTo::Mail(address) => ("mail", json!(address)),
            WayTo::Command(words) => ("command", json!(words)),
            WayTo::Message(screen) => ("message", json!(screen.as_str())),
        };
        members.insert(key.to_owned(), place);
        if self.shape != WebhookShape::Json {
            members.insert("shape".to_owned(), json!(self.shape.as_str()));
        }
        if let Some(secret) = &self.secret {
            members.insert("secret".to_owned(), json!(secret));
        }
        if let Some((from, to)) = &self.mail {
            members.insert("from".to_owned(), json!(from));
            members.insert("to".to_owned(), json!(to));
        }
        if self.public_only {
            members.insert("public_only".to_owned(), json!(true));
        }
        Value::Object(members)
    }

    /// Where it is, for people. Of a URL no more than its host: who knows the rest may be who may write there.
    pub fn place(&self) -> String {
        match &self.way {
            WayTo::Webhook(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
                let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
                let by = match (self.shape, &self.mail) {
                    (WebhookShape::Json, _) => String::new(),
                    (shape, Some((_, to))) => format!(" ({}, to {to})", shape.as_str()),
                    (shape, None) => format!(" ({})", shape.as_str()),
                };
                if scheme.is_empty() {
                    return format!("{url}{by}");
                }
                let more = if host == rest { "" } else { "/…" };
                format!("{scheme}://{host}{more}{by}")
            }
            WayTo::Mail(address) => address.clone(),
            WayTo::Command(words) => {
                let joined = shlex::try_join(words.iter().map(String::as_str));
                joined.unwrap_or_else(|_| words.join(" "))
            }
            WayTo::Message(screen) => screen.as_str().to_owned(),
        }
    }

    /// The word for its way.
    pub fn way_word(&self) -> &'static str {
        match &self.way {
            WayTo::Webhook(_) => "webhook",
            WayTo::Mail(_) => "mail",
            WayTo::Command(_) => "command",
            WayTo::Message(_) => "message",
        }
    }

    /// The names of the secrets that it needs.
    pub fn secrets(&self) -> Vec<String> {
        let mut names: Vec<String> = self.secret.iter().cloned().collect();
        if let WayTo::Webhook(url) = &self.way {
            names.extend(fields(url).into_iter().filter_map(|(_, name)| name.map(str::to_owned)));
        }
        names
    }
}

impl TryFrom<Value> for Receiver {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Self::read(&value).map_err(|bad| bad.what)
    }
}

impl From<Receiver> for Value {
    fn from(receiver: Receiver) -> Self {
        receiver.to_value()
    }
}

/// The parts of a text in which `${NAME}` is a secret: what stands there, and a name behind it.
pub fn fields(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        parts.push((before, Some(name)));
        rest = behind;
    }
    parts.push((rest, None));
    parts
}

fn occasions(value: &Value) -> Result<Vec<Occasion>, BadReceiver> {
    let words: Vec<&Value> = match value {
        Value::Array(all) => all.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![value]
        }
    };
    let mut on = Vec::new();
    for word in words {
        let said = word.as_str().unwrap_or_default().trim();
        let known = Occasion::named().map(Occasion::as_str);
        let Some(occasion) = Occasion::parse(said) else {
            let hint = text::did_you_mean(said, known.clone())
                .unwrap_or_else(|| format!("one of {}", known.collect::<Vec<_>>().join(", ")));
            return bad(format!("on: {word} is no event"), hint);
        };
        if !on.contains(&occasion) {
            on.push(occasion);
        }
    }
    if on.is_empty() {
        return bad("on: names no event", "leave it away to be told of all");
    }
    Ok(on)
}

fn command(value: &Value) -> Result<WayTo, BadReceiver> {
    let words = match value {
        Value::String(text) => shlex::split(text),
        Value::Array(all) => all.iter().map(|word| Some(word.as_str()?.to_owned())).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    match words {
        Some(words) => checked_command(words).map(WayTo::Command),
        None => bad("command: is a list of words", "as in \"command\": [\"./tell.sh\", \"x\"]"),
    }
}

fn checked_command(words: Vec<String>) -> Result<Vec<String>, BadReceiver> {
    match words.first() {
        Some(program) if program.contains('=') => bad(
            format!("'{program}' is neither a program nor EVENT=WHERE"),
            format!("as in {EXAMPLE}"),
        ),
        Some(program) if program.starts_with('-') => bad(
            format!("'{program}' begins with a dash, as an option does"),
            "a program and its words",
        ),
        Some(program) if !program.is_empty() && !words.iter().any(|word| word.contains('\0')) => {
            Ok(words)
        }
        _ => bad("there is no command", "a program and its words"),
    }
}

/// A URL that can be asked, once its secrets are filled in.
fn url(place: &str) -> Result<String, BadReceiver> {
    let hint = "as in https://HOST/PATH; ${NAME} in it is a secret of `tpu secrets`";
    if place.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return bad("a URL has no blanks", hint);
    }
    for (_, name) in fields(place) {
        if let Some(Err((what, hint))) = name.map(variables::as_secret) {
            return bad(what, hint);
        }
    }
    let rest = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://"));
    let Some(rest) = rest else {
        // All of it is a secret.
        return if place.starts_with("${") {
            Ok(place.to_owned())
        } else {
            bad("it is no URL", hint)
        };
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return bad("a name or password stands in the URL", "name it: \"secret\": NAME");
    }
    if authority.is_empty() {
        return bad("the URL has no host", hint);
    }
    Ok(place.to_owned())
}

/// Whether everybody on the way could read what is sent to a URL.
pub fn is_open(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    !is_this_machine(host)
}

/// Whether a host is this machine by its name.
pub fn is_this_machine(host: &str) -> bool {
    let is_number = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    host == "localhost" || host == "::1" || host.strip_prefix("127.").is_some_and(is_number)
}

/// An address of mail. Whatever could end a line or begin another address is in none.
fn address(place: &str) -> Result<String, BadReceiver> {
    let plain = |c: char| c.is_ascii_graphic() && !"<>()[],;:=\\\"".contains(c);
    let parts: Vec<&str> = place.split('@').collect();
    match parts.as_slice() {
        [name, host]
            if !name.is_empty()
                && !host.is_empty()
                && place.chars().all(plain)
                && !name.starts_with(['.', '-'])
                && !host.starts_with(['.', '-'])
                && !host.ends_with('.') =>
        {
            Ok(place.to_owned())
        }
        _ => bad(format!("'{}' is no address", place.escape_debug()), "as in me@example.org"),
    }
}

/// Reads the setting `notify`, and what a record keeps of it.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Option<Vec<Receiver>>, DataError> {
    if value.is_null() {
        return Ok(None);
    }
    let all = value.to_value();
    receivers(&all)
        .map(Some)
        .map_err(|bad| path.error(&format!("receivers ({}: {})", bad.what, bad.hint), Some(value)))
}

#[cfg(test)]
mod tests;
