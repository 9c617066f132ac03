//! What people are told: what a webhook and a command are sent, and how it stands (`notify`).

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::notice::Notice;
use tpu_core::model::notify::{Occasion, Receiver, WebhookShape};
use tpu_core::plan::notices;
use tpu_ops::act::notices::{NotifyLook, ReceiverLook, Tried};

use super::words::{TimePart, Word};

/// What has happened: the body of a webhook, and what a command reads.
#[derive(Serialize, JsonSchema)]
pub struct NoticesDocument<'a> {
    /// The oldest first.
    pub events: Vec<NoticePart<'a>>,
}

/// One thing that has happened.
#[derive(Serialize, JsonSchema)]
pub struct NoticePart<'a> {
    /// By which it is known: what comes a second time, since nobody could say that it had come, has the same.
    pub id: &'a str,
    /// When it happened.
    pub time: TimePart,
    /// What.
    pub event: Word<Occasion>,
    /// Whose affair it is.
    pub user: &'a UserName,
    /// Which of that user's jobs, if it is about one.
    pub job: Option<JobNumber>,
    /// The name of the job.
    pub name: Option<&'a str>,
    /// The target.
    pub target: Option<&'a str>,
    /// The status of the job when it was taken note of.
    pub status: Option<&'a str>,
    /// The kind of failure.
    pub error: Option<&'a str>,
    /// The line that shows it.
    pub evidence: Option<&'a str>,
    /// All of it for people, on one line.
    pub text: &'a str,
}

impl<'a> From<&'a Notice> for NoticePart<'a> {
    fn from(of: &'a Notice) -> Self {
        Self {
            id: &of.id,
            time: TimePart(of.time),
            event: Word(of.event),
            user: &of.user,
            job: of.job,
            name: of.name.as_deref(),
            target: of.target.as_deref(),
            status: of.status.as_deref(),
            error: of.error.as_deref(),
            evidence: of.evidence.as_deref(),
            text: &of.text,
        }
    }
}

/// A message of Slack.
#[derive(Serialize)]
struct SlackMessage {
    text: String,
}

/// A mail of Brevo (`POST /v3/smtp/email`).
#[derive(Serialize)]
struct BrevoMail<'a> {
    sender: BrevoPerson<'a>,
    to: [BrevoPerson<'a>; 1],
    subject: String,
    #[serde(rename = "textContent")]
    text: String,
}

#[derive(Serialize)]
struct BrevoPerson<'a> {
    email: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// Lines of a message that people read in a chat.
const LINES: usize = 20;

/// What is sent for programs.
pub fn body(to: &Receiver, of: &[Notice]) -> Vec<u8> {
    let bytes = match (to.shape, &to.mail) {
        (WebhookShape::Brevo, Some((from, to))) => {
            let (subject, text) = notices::in_words(of);
            serde_json::to_vec(&BrevoMail {
                sender: BrevoPerson { email: from, name: Some("tpu") },
                to: [BrevoPerson { email: to, name: None }],
                subject: format!("[tpu] {subject}"),
                text,
            })
        }
        (WebhookShape::Slack, _) => {
            // By these Slack knows links and whom to call.
            let plain =
                |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let mut lines: Vec<String> =
                of.iter().take(LINES).map(|notice| plain(&notice.text)).collect();
            if of.len() > LINES {
                lines.push(format!("and {} more: tpu history", of.len() - LINES));
            }
            serde_json::to_vec(&SlackMessage { text: lines.join("\n") })
        }
        (WebhookShape::Json | WebhookShape::Brevo, _) => {
            let events = of.iter().map(NoticePart::from).collect();
            serde_json::to_vec(&NoticesDocument { events })
        }
    };
    bytes.unwrap_or_default()
}

/// Who is told of a user's affairs.
#[derive(Serialize, JsonSchema)]
pub struct NotifyDocument<'a> {
    /// The user.
    pub user: &'a UserName,
    /// Where the setting stands.
    pub origin: String,
    /// Whether a daemon runs here: it delivers.
    pub monitor: bool,
    /// Those whom the setting names, in its order; then others for whom something waits.
    pub receivers: Vec<ReceiverPart>,
}

/// A receiver, and what waits for it.
#[derive(Serialize, JsonSchema)]
pub struct ReceiverPart {
    /// Its number in the setting; null if a job has named it, or the setting does no more.
    pub number: Option<usize>,
    /// The way: webhook, mail, command or message.
    pub way: String,
    /// Where it is. Of a URL no more than the host: the rest may let others in.
    pub place: String,
    /// Of what it is told.
    pub on: Vec<Word<Occasion>>,
    /// How many notices wait.
    pub waiting: usize,
    /// When the oldest of them happened.
    pub oldest: Option<TimePart>,
    /// How often that was tried in vain.
    pub attempts: u32,
    /// When it is tried again.
    pub again: Option<TimePart>,
    /// When something last arrived.
    pub sent: Option<TimePart>,
    /// What is wrong.
    pub problem: Option<String>,
    /// So many were given up.
    pub lost: u64,
}

impl From<&ReceiverLook> for ReceiverPart {
    fn from(of: &ReceiverLook) -> Self {
        Self {
            number: of.number,
            way: of.to.way_word().to_owned(),
            place: of.to.place(),
            on: of.to.on.iter().copied().map(Word).collect(),
            waiting: of.waiting,
            oldest: of.oldest.map(TimePart),
            attempts: of.attempts,
            again: of.again.map(TimePart),
            sent: of.sent.map(TimePart),
            problem: of.problem.clone(),
            lost: of.lost,
        }
    }
}

impl<'a> NotifyDocument<'a> {
    /// How it stands for a user.
    pub fn new(user: &'a UserName, of: &NotifyLook) -> Self {
        Self {
            user,
            origin: of.origin.to_string(),
            monitor: of.is_monitored,
            receivers: of.receivers.iter().map(ReceiverPart::from).collect(),
        }
    }
}

/// What became of a test.
#[derive(Serialize, JsonSchema)]
pub struct NotifyTestDocument<'a> {
    /// The user.
    pub user: &'a UserName,
    /// Each receiver that was tried.
    pub tests: Vec<NotifyTestPart>,
    /// What was sent, or would be.
    pub body: NoticesDocument<'a>,
}

/// How one receiver took it.
#[derive(Serialize, JsonSchema)]
pub struct NotifyTestPart {
    /// The way.
    pub way: String,
    /// Where it is.
    pub place: String,
    /// Whether it took it; null after a dry run.
    pub arrived: Option<bool>,
    /// What went wrong.
    pub problem: Option<String>,
}

impl NotifyTestPart {
    /// One that would be tried.
    pub fn would(to: &Receiver) -> Self {
        let (way, place) = (to.way_word().to_owned(), to.place());
        Self { way, place, arrived: None, problem: None }
    }
}

impl From<&Tried> for NotifyTestPart {
    fn from(of: &Tried) -> Self {
        let arrived = Some(of.problem.is_none());
        Self { arrived, problem: of.problem.clone(), ..Self::would(&of.to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tpu_core::model::notice::NoticeFacts;
    use tpu_core::model::notify::receivers;
    use tpu_core::model::time::Timestamp;

    fn body_for(to: &Value, evidence: &str, count: i64) -> Value {
        let to = receivers(to).unwrap().remove(0);
        let notice = |at: i64| {
            let of = NoticeFacts {
                job: Some(JobNumber(3)),
                error: Some("oom"),
                evidence: Some(evidence),
                ..NoticeFacts::default()
            };
            let when = (Occasion::Error, Timestamp::from_second(at));
            Notice::new(when, &UserName::from("alice"), &of, "")
        };
        let all: Vec<Notice> = (0..count).map(notice).collect();
        serde_json::from_slice(&body(&to, &all)).unwrap()
    }

    #[test]
    fn each_shape_is_what_its_receiver_reads() {
        let said = body_for(&json!("https://h"), "out of memory", 2);
        let keys = [
            "id", "time", "event", "user", "job", "name", "target", "status", "error", "evidence",
            "text",
        ];
        let first = said["events"][0].as_object().unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), keys);
        assert_eq!(said["events"].as_array().unwrap().len(), 2);
        assert_eq!((&first["event"], &first["job"]), (&json!("error"), &json!(3)));

        let slack = json!({ "webhook": "https://h", "shape": "slack" });
        let said = body_for(&slack, "<!channel> & <http://x|y>", 1);
        assert_eq!(
            said,
            json!({ "text": "alice/3: error: oom: &lt;!channel&gt; &amp; &lt;http://x|y&gt;" })
        );
        let said = body_for(&slack, "x", 100);
        assert_eq!(said["text"].as_str().unwrap().lines().count(), 21);

        let brevo =
            json!({ "webhook": "https://h", "shape": "brevo", "from": "a@b.c", "to": "d@e.f" });
        let said = body_for(&brevo, "x", 1);
        assert_eq!(said["sender"]["email"], "a@b.c");
        assert_eq!(said["to"], json!([{ "email": "d@e.f" }]));
        assert_eq!(said["subject"], "[tpu] alice/3: error: oom: x");
        assert!(said["textContent"].as_str().unwrap().contains("oom: x"));
    }
}
