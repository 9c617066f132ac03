//! A server of mails on this machine (RFC 5321, with AUTH PLAIN and STARTTLS) that a test has fail as it likes. Those of the
//! registry are made for servers of their own and know no failure between the last line of a mail and the answer to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::hook::Fate;
use crate::common::tmux::write_file;

/// A mail as it came.
#[derive(Clone, Debug)]
pub(super) struct Mail {
    /// Who said so, if that was proven: name and password.
    pub(super) login: Option<(String, String)>,
    /// Whether nobody between could read it.
    pub(super) is_protected: bool,
    /// To whom.
    pub(super) to: Vec<String>,
    /// Headers and text.
    pub(super) text: String,
    /// What became of it.
    pub(super) fate: Fate,
}

impl Mail {
    /// The value of a header that is on one line.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (headers, _) = self.text.split_once("\r\n\r\n")?;
        headers.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// How it is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    Starttls,
    Tls,
}

struct Shared {
    got: Mutex<Vec<Mail>>,
    fate: Box<dyn Fn(usize) -> Fate + Send + Sync>,
    tls: Option<Arc<ServerConfig>>,
    protection: Protection,
}

/// The server; gone with the value.
pub(super) struct Mails {
    port: u16,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

trait Both: Read + Write + Send {}

impl<T: Read + Write + Send> Both for T {}

impl Mails {
    /// A server without protection that does with each mail what its number says.
    pub(super) fn new(fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        Self::with(Protection::None, None, Box::new(fate))
    }

    /// One that takes every mail, protected; its certificate is written to `pem`.
    pub(super) fn protected(protection: Protection, pem: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        write_file(pem, &made.cert.pem());
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self::with(protection, Some(Arc::new(config)), Box::new(|_| Fate::Taken))
    }

    fn with(
        protection: Protection,
        tls: Option<Arc<ServerConfig>>,
        fate: Box<dyn Fn(usize) -> Fate + Send + Sync>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { got: Mutex::default(), fate, tls, protection });
        let stop = Arc::new(AtomicBool::new(false));
        let (all, is_over) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let all = Arc::clone(&all);
                // Whoever breaks off is nobody's failure here.
                std::thread::spawn(move || drop(serve(stream.unwrap(), &all)));
            }
        });
        Self { port, shared, stop, thread: Some(thread) }
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What came so far.
    pub(super) fn got(&self) -> Vec<Mail> {
        self.shared.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Mails {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn protected(stream: Box<dyn Both>, shared: &Shared) -> std::io::Result<Box<dyn Both>> {
    let config = shared.tls.clone().unwrap();
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    Ok(Box::new(StreamOwned::new(connection, stream)))
}

/// One line, without its end.
fn line(stream: &mut dyn Both) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n") {
        if stream.read(&mut one)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.push(one[0]);
    }
    bytes.truncate(bytes.len() - 2);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream: Box<dyn Both> = Box::new(stream);
    let mut is_protected = shared.protection == Protection::Tls;
    if is_protected {
        stream = protected(stream, shared)?;
    }
    let mut login = None;
    let mut to = Vec::new();
    write!(stream, "220 lab ESMTP\r\n")?;
    stream.flush()?;
    loop {
        let said = line(&mut *stream)?;
        let word = said.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match word.as_str() {
            "EHLO" | "HELO" => {
                write!(stream, "250-lab\r\n")?;
                if shared.protection == Protection::Starttls && !is_protected {
                    write!(stream, "250-STARTTLS\r\n")?;
                }
                write!(stream, "250-AUTH PLAIN\r\n250 8BITMIME\r\n")?;
            }
            "STARTTLS" => {
                write!(stream, "220 go on\r\n")?;
                stream.flush()?;
                stream = protected(stream, shared)?;
                is_protected = true;
            }
            "AUTH" => {
                let proof = STANDARD.decode(said.rsplit(' ').next().unwrap_or_default());
                let proof = String::from_utf8(proof.unwrap_or_default()).unwrap_or_default();
                let mut parts = proof.split('\0').skip(1).map(str::to_owned);
                login = parts.next().zip(parts.next());
                let is_right = login.as_ref().is_some_and(|(_, password)| password != "wrong");
                let answer = if is_right { "235 so it is" } else { "535 no: " };
                // A server that repeats what it was told.
                let more = if is_right { "" } else { said.rsplit(' ').next().unwrap_or_default() };
                write!(stream, "{answer}{more}\r\n")?;
            }
            "RCPT" => {
                to.push(said.trim_start_matches("RCPT TO:").trim_matches(['<', '>']).to_owned());
                write!(stream, "250 yes\r\n")?;
            }
            "DATA" => {
                write!(stream, "354 go on\r\n")?;
                stream.flush()?;
                let mut text = String::new();
                loop {
                    let next = line(&mut *stream)?;
                    if next == "." {
                        break;
                    }
                    text += next.strip_prefix('.').unwrap_or(&next);
                    text += "\r\n";
                }
                let fate = {
                    let mut got = shared.got.lock().unwrap_or_else(PoisonError::into_inner);
                    let fate = (shared.fate)(got.len());
                    let (login, to) = (login.clone(), std::mem::take(&mut to));
                    got.push(Mail { login, is_protected, to, text, fate });
                    fate
                };
                match fate {
                    Fate::Taken => write!(stream, "250 taken\r\n")?,
                    Fate::Refused(_) => write!(stream, "451 not now\r\n")?,
                    Fate::Cut => {
                        write!(stream, "25")?;
                        stream.flush()?;
                        return Ok(());
                    }
                    // Until the other side has had enough.
                    Fate::Hangs => {
                        return std::io::copy(&mut stream, &mut std::io::sink()).map(drop);
                    }
                }
            }
            "QUIT" => {
                write!(stream, "221 bye\r\n")?;
                stream.flush()?;
                return Ok(());
            }
            _ => write!(stream, "250 yes\r\n")?,
        }
        stream.flush()?;
    }
}
