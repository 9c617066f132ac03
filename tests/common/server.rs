//! A server that says what a test wants, to whoever asks on this machine: answers that no emulator gives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// One request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Method and target.
    pub(crate) line: String,
    /// All headers, as they came.
    pub(crate) headers: String,
    /// The body.
    pub(crate) body: String,
}

/// The server; gone with the value.
pub(crate) struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers every request with a status and a body, or by hanging up.
    pub(crate) fn new(
        answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        Self::with_header(move |asked| answer(asked).map(|(status, body)| (status, "", body)))
    }

    /// The same with a line of the header between them.
    pub(crate) fn with_header(
        answer: impl Fn(&Asked) -> Option<(u16, &'static str, String)> + Send + Sync + 'static,
    ) -> Self {
        Self::listening(move |stream, all| serve(stream, &answer, all))
    }

    /// Says this to everybody who comes, before they have said anything.
    pub(crate) fn greeting(text: &'static str) -> Self {
        Self::listening(move |mut stream, _| {
            stream.write_all(text.as_bytes())?;
            // It listens until the other side has had enough.
            std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
        })
    }

    fn listening(
        serve: impl Fn(TcpStream, &Mutex<Vec<Asked>>) -> std::io::Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (all, is_over) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Whoever breaks off is nobody's failure here.
                drop(serve(stream.unwrap(), &all));
            }
        });
        Self { address, asked, stop, thread: Some(thread) }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes it up to see that.
        drop(TcpStream::connect(&self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// One request for each connection.
fn serve(
    stream: TcpStream,
    answer: impl Fn(&Asked) -> Option<(u16, &'static str, String)>,
    all: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut asked = Asked::default();
    reader.read_line(&mut asked.line)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header == "\r\n" {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        asked.headers += &header;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    let line = asked.line.trim_end().trim_end_matches(" HTTP/1.1").len();
    asked.line.truncate(line);
    let answered = answer(&asked);
    all.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let Some((status, header, body)) = answered else { return Ok(()) };
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\n{header}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
