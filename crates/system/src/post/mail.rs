//! A mail, by SMTP.

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Address, SmtpTransport, Transport as _};

use super::{Letter, PATIENCE, PostError, webhook};
use crate::sys::env::Env;
use tpu_core::model::notify::{Smtp, SmtpTls};

/// Characters of a subject: longer ones are cut by those who show them.
const SUBJECT: usize = 150;

/// Sends it. The server that takes it has it.
pub(super) fn send(
    server: &Smtp,
    password: Option<&str>,
    to: &str,
    letter: &Letter,
    env: &Env,
) -> Result<(), PostError> {
    let message = message(&server.from, to, letter)?;
    let tls = |server: &Smtp| {
        let mut tls = TlsParameters::builder(server.host.clone());
        if let Some(pem) = webhook::own_roots(env)? {
            tls = tls
                .certificate_store(CertificateStore::None)
                .add_root_certificate(Certificate::from_pem(&pem).map_err(said)?);
        }
        tls.build().map_err(said)
    };
    let tls = match server.tls {
        SmtpTls::None => Tls::None,
        SmtpTls::Starttls => Tls::Required(tls(server)?),
        SmtpTls::Tls => Tls::Wrapper(tls(server)?),
    };
    let mut transport = SmtpTransport::builder_dangerous(&server.host)
        .port(server.port)
        .timeout(Some(PATIENCE))
        .tls(tls);
    if let (Some(user), Some(password)) = (&server.user, password) {
        transport = transport.credentials(Credentials::new(user.clone(), password.to_owned()));
    }
    transport.build().send(&message).map(drop).map_err(said)
}

/// An error with its causes: of mails the cause says more than the error.
fn said(error: impl std::error::Error) -> PostError {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(because) = cause {
        let because_words = because.to_string();
        if !words.contains(&because_words) {
            words += &format!(": {because_words}");
        }
        cause = because.source();
    }
    PostError(words)
}

/// The mail. Whatever stands in a letter, its lines are those of the subject and the text and of no other header.
fn message(from: &str, to: &str, letter: &Letter) -> Result<Message, PostError> {
    let mailbox = |name: Option<&str>, address: &str| {
        let address: Address = address.parse().map_err(said)?;
        Ok::<_, PostError>(Mailbox::new(name.map(str::to_owned), address))
    };
    let domain = from.rsplit('@').next().unwrap_or("localhost");
    let one_line: String =
        letter.subject.chars().filter(|c| !c.is_control()).take(SUBJECT).collect();
    Message::builder()
        .from(mailbox(Some("tpu"), from)?)
        .to(mailbox(None, to)?)
        .subject(format!("[tpu] {one_line}"))
        .message_id(Some(format!("<{}@{domain}>", letter.id)))
        .header(ContentType::TEXT_PLAIN)
        .body(letter.text.clone())
        .map_err(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_letter_says_becomes_a_header() {
        for hostile in
            ["x\r\nBcc: all@lab.org", "x\nBcc: all@lab.org\n\nbody", "ü\r\n\r\n.\r\nQUIT"]
        {
            let letter = Letter {
                id: "20261120_140211-00".to_owned(),
                subject: hostile.to_owned(),
                text: hostile.to_owned(),
                body: Vec::new(),
            };
            let mail = message("tpu@lab.org", "me@lab.org", &letter).unwrap();
            let text = String::from_utf8(mail.formatted()).unwrap();
            let (headers, _) = text.split_once("\r\n\r\n").unwrap();
            let names: Vec<&str> = headers
                .lines()
                .filter(|line| !line.starts_with([' ', '\t']))
                .map(|line| line.split(':').next().unwrap())
                .collect();
            assert!(!names.contains(&"Bcc"), "{headers}");
            assert!(headers.contains("Message-ID: <20261120_140211-00@lab.org>"), "{headers}");
            let known = ["From", "To", "Subject", "Message-ID", "Content-Type"];
            let more = ["Date", "MIME-Version", "Content-Transfer-Encoding"];
            assert!(
                names.iter().all(|name| known.contains(name) || more.contains(name)),
                "{names:?}"
            );
            assert_eq!(mail.envelope().to().len(), 1);
        }
    }
}
