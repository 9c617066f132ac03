//! Jobs over HTTP: what is answered, to whom, and what never happens.
//!
//! slow: real servers, tmux and clients; events and logs are waited for by the clock of the server.

mod access;
mod acts;
mod attacks;
mod beside;
mod cloudmesh;
mod described;
mod events;
mod examples;
mod fuzz;
mod jobs;
mod limited;
mod logs;
mod makes;
mod monitor;
mod sessions;
mod submit;
mod together;

use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use tpu::cli::legacy::command_words;
use tpu_api::{ServeOptions, Server};
use tpu_core::model::ids::UserName;
use tpu_core::model::token::{Rights, TokenRole};
use tpu_ops::Ctx;
use tpu_ops::base::setting_layers::Layers;
use tpu_ops::front::tokens::{self, TokenRequest};
use tpu_ops::waiting::settings_files::SettingsPlaces;
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;

/// A server over a place of its own; gone with the value.
pub(super) struct Api {
    /// The place.
    pub(super) env: TestEnv,
    /// The doors of the server.
    pub(super) ctx: Arc<Ctx>,
    /// Where it listens, as `127.0.0.1:PORT`.
    pub(super) address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.end();
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Said {
    /// The status.
    pub(super) status: u16,
    /// Its headers, in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The body.
    pub(super) body: String,
}

impl Said {
    /// The body as JSON.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// A header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Fails unless the status is this one.
    #[track_caller]
    pub(super) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Api {
    /// A place with alice and bob, and these records of theirs.
    pub(super) fn new(records: impl Fn(&TestEnv) -> Vec<Value>) -> Self {
        let env = TestEnv::new();
        let mut data = env.two_users();
        for record in records(&env) {
            let user = record["user"].as_str().unwrap().to_owned();
            data["users"][user]["job_data"].as_array_mut().unwrap().push(record);
        }
        env.write_data(&data);
        Self::over(env, |_| {})
    }

    /// A server over a place that is there.
    pub(super) fn over(env: TestEnv, change: impl Fn(&mut ServeOptions)) -> Self {
        let ctx = doors(&env);
        let mut api = Self { env, ctx, address: String::new(), stop: Arc::default(), thread: None };
        api.begin(change);
        api
    }

    /// Begins to serve.
    pub(super) fn begin(&mut self, change: impl Fn(&mut ServeOptions)) {
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut serving = ServeOptions { listen, ..ServeOptions::default() };
        change(&mut serving);
        let server = Server::bind(Arc::clone(&self.ctx), &serving, command_words()).unwrap();
        server.address().trim_start_matches("http://").clone_into(&mut self.address);
        self.stop = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&self.stop);
        self.thread = Some(std::thread::spawn(move || server.serve(&stop).unwrap()));
    }

    /// Ends the server.
    pub(super) fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// A token of these users.
    pub(super) fn token(&self, name: &str, role: TokenRole, users: &[&str]) -> String {
        token(&self.ctx, name, role, users)
    }

    /// A token of an operator of alice's who may use targets.
    pub(super) fn with_targets(&self, name: &str) -> String {
        let users = vec![UserName::from("alice")];
        let rights = Rights { targets: true, ..Rights::of(TokenRole::Operator, users) };
        token_with(&self.ctx, name, rights)
    }

    /// An admin's token.
    pub(super) fn admin(&self) -> String {
        self.token("admin", TokenRole::Admin, &[])
    }

    /// A connection; what says nothing for a minute says nothing.
    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Asks with a token and further headers; `line` is method and path.
    pub(super) fn ask(&self, token: &str, line: &str, headers: &[&str], body: &str) -> Said {
        let bearer = format!("Authorization: Bearer {token}");
        let mut all = vec![bearer.as_str()];
        all.extend(headers);
        self.raw(line, &all, body)
    }

    /// Gets a path.
    pub(super) fn get(&self, token: &str, path: &str) -> Said {
        self.ask(token, &format!("GET {path}"), &[], "")
    }

    /// Asks with these headers and no others but those without which nothing is understood.
    pub(super) fn raw(&self, line: &str, headers: &[&str], body: &str) -> Said {
        let mut stream = self.connect();
        let is_named = headers.iter().any(|header| header.to_lowercase().starts_with("host:"));
        let host = if is_named { String::new() } else { format!("Host: {}\r\n", self.address) };
        let length = body.len();
        let mut request =
            format!("{line} HTTP/1.1\r\n{host}Content-Length: {length}\r\nConnection: close\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        request += "\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        // Whoever is refused by the head is not listened to.
        drop(stream.write_all(body.as_bytes()));
        heard(stream)
    }

    /// Opens a stream of events; its lines come one by one.
    pub(super) fn follow(&self, token: &str, headers: &[&str]) -> BufReader<TcpStream> {
        self.flow(token, "/api/v1/events", headers)
    }

    /// Opens a path whose answer flows, and reads its head.
    pub(super) fn flow(&self, token: &str, path: &str, headers: &[&str]) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let mut request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n",
            self.address
        );
        for header in headers {
            request += &format!("{header}\r\n");
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        reader
    }
}

/// What is left of a stream.
pub(super) fn heard_on(mut reader: BufReader<TcpStream>) -> String {
    let mut text = String::new();
    // One that ends without its last piece was cut off.
    drop(reader.read_to_string(&mut text));
    text
}

/// The doors of a place, as a process that is started there would have them.
pub(super) fn doors(env: &TestEnv) -> Arc<Ctx> {
    let (vars, home) = (env.variables().clone(), env.path("."));
    let here = Env { vars, cwd: home.clone(), home, ..Env::read() };
    let places = SettingsPlaces { machine: None, named: None, env: here.clone(), cloud: None };
    let layers = Arc::new(Layers::fixed(places.read().unwrap()));
    let secrets = Some(env.path("config/tpu/secrets"));
    Arc::new(Ctx { secrets, layers, ..env.ctx(here) })
}

/// A token of these users.
pub(super) fn token(ctx: &Ctx, name: &str, role: TokenRole, users: &[&str]) -> String {
    let users = users.iter().map(|name| UserName::from(*name)).collect();
    token_with(ctx, name, Rights::of(role, users))
}

pub(super) fn token_with(ctx: &Ctx, name: &str, rights: Rights) -> String {
    let request = TokenRequest { name: name.to_owned(), rights, expires: None };
    tokens::create(ctx, &request).unwrap().1
}

/// Reads an answer to its end.
pub(super) fn heard(stream: impl Read) -> Said {
    let mut text = String::new();
    // A server that has said why it hangs up has said enough; one that says nothing and stays has not.
    if let Err(e) = BufReader::new(stream).read_to_string(&mut text) {
        assert!(e.kind() != ErrorKind::WouldBlock, "it neither answers nor hangs up: {text}");
    }
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Said { status: status.unwrap_or(0), headers, body: body.to_owned() }
}
