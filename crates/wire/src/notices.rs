//! What people are told: what a webhook and a command are sent, and how it stands (`notify`).

use serde::Serialize;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::notice::Notice;
use tpu_core::model::notify::{Occasion, Receiver, WebhookShape};
use tpu_core::plan::notices;
use tpu_ops::act::notices::{NotifyLook, ReceiverLook, Tried};

use super::document::{documents, part};
use super::words::{TimePart, Word};

documents! {
    /// What has happened: the body of a webhook, and what a command reads.
    pub struct NoticesDocument<'a> {
        /// The oldest first.
        events: Vec<NoticePart<'a>>,
    }

    /// One thing that has happened.
    pub struct NoticePart<'a> from notice: &'a Notice {
        /// By which it is known: what comes a second time, since nobody could say that it had come, has the same.
        id: &'a str,
        /// When it happened.
        time: TimePart,
        /// What.
        event: Word<Occasion>,
        /// Whose affair it is.
        user: &'a UserName,
        /// Which of that user's jobs, if it is about one.
        job: Option<JobNumber>,
        /// The name of the job.
        name: Option<&'a str>,
        /// The target.
        target: Option<&'a str>,
        /// The status of the job when it was taken note of.
        status: Option<&'a str>,
        /// The kind of failure.
        error: Option<&'a str>,
        /// The line that shows it.
        evidence: Option<&'a str>,
        /// All of it for people, on one line.
        text: &'a str,
    }

    /// Who is told of a user's affairs.
    pub struct NotifyDocument<'a> from (user, look): (&'a UserName, &'a NotifyLook) {
        /// The user.
        user: &'a UserName = user,
        /// Where the setting stands.
        origin: String = look.origin.to_string(),
        /// Whether a daemon runs here: it delivers.
        monitor: bool = look.is_monitored,
        /// Those whom the setting names, in its order; then others for whom something waits.
        receivers: Vec<ReceiverPart<'a>> = part(&look.receivers),
    }

    /// A receiver, and what waits for it.
    pub struct ReceiverPart<'a> from look: &'a ReceiverLook {
        /// Its number in the setting; null if a job has named it, or the setting does no more.
        number: Option<usize>,
        /// The way: webhook, mail, command or message.
        way: &'a str = look.to.way_word(),
        /// Where it is. Of a URL no more than the host: the rest may let others in.
        place: String = look.to.place(),
        /// Of what it is told.
        on: Vec<Word<Occasion>> = look.to.on.iter().copied().map(Word).collect(),
        /// How many notices wait.
        waiting: usize,
        /// When the oldest of them happened.
        oldest: Option<TimePart>,
        /// How often that was tried in vain.
        attempts: u32,
        /// When it is tried again.
        again: Option<TimePart>,
        /// When something last arrived.
        sent: Option<TimePart>,
        /// What is wrong.
        problem: Option<&'a str>,
        /// So many were given up.
        lost: u64,
    }

    /// What became of a test.
    pub struct NotifyTestDocument<'a> {
        /// The user.
        user: &'a UserName,
        /// Each receiver that was tried.
        tests: Vec<NotifyTestPart<'a>>,
        /// What was sent, or would be.
        body: NoticesDocument<'a>,
    }

    /// How one receiver took it.
    pub struct NotifyTestPart<'a> from tried: &'a Tried {
        /// The way.
        way: &'a str = tried.to.way_word(),
        /// Where it is.
        place: String = tried.to.place(),
        /// Whether it took it; null after a dry run.
        arrived: Option<bool> = Some(tried.problem.is_none()),
        /// What went wrong.
        problem: Option<&'a str>,
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

impl<'a> NotifyTestPart<'a> {
    /// One that would be tried.
    pub fn would(to: &'a Receiver) -> Self {
        Self { way: to.way_word(), place: to.place(), arrived: None, problem: None }
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
