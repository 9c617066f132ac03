//! A receiver of webhooks that a test has fail as it likes: it refuses, hangs, breaks off, or is not there.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use serde_json::Value;
use tokio::sync::oneshot;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is taken, and that is said.
    Taken,
    /// It is answered with this status.
    Refused(u16),
    /// It is read and never answered.
    Hangs,
    /// It is taken, and the answer breaks off.
    Cut,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Got {
    /// By which it is known.
    pub(super) key: String,
    /// All headers.
    pub(super) headers: String,
    /// The body.
    pub(super) body: Value,
    /// What became of it.
    pub(super) fate: Fate,
}

impl Got {
    /// The lines that jobs printed, of all of its events.
    pub(super) fn evidence(&self) -> Vec<String> {
        let events = self.body["events"].as_array().into_iter().flatten();
        events.map(|event| event["evidence"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

struct Shared {
    got: Mutex<Vec<Got>>,
    open: AtomicUsize,
    fate: Box<dyn Fn(usize) -> Fate + Send + Sync>,
}

/// The receiver; gone with the value.
pub(super) struct Hook {
    port: u16,
    shared: Arc<Shared>,
    served: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// Counts a request as open for as long as somebody waits for its answer.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An answer that promises more than it says.
struct Broken(bool);

impl HttpBody for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let first = !std::mem::replace(&mut self.0, true);
        Poll::Ready(Some(if first {
            Ok(Frame::data(Bytes::from_static(b"{\"ok\":")))
        } else {
            Err(std::io::Error::other("cut"))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(100)
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    shared.open.fetch_add(1, Ordering::SeqCst);
    let open = Open(Arc::clone(&shared));
    let fate = {
        let mut got = shared.got.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = (shared.fate)(got.len());
        let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        got.push(Got {
            key: key.unwrap_or_default(),
            headers: format!("{headers:?}"),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            fate,
        });
        fate
    };
    let answer = |status: u16, body: Body| {
        let mut answer = Response::new(body);
        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
        answer
    };
    let answer = match fate {
        Fate::Taken => answer(200, Body::from("{\"ok\":true}")),
        Fate::Refused(status) => answer(status, Body::from("not \u{1b}[31mnow")),
        Fate::Cut => answer(200, Body::new(Broken(false))),
        Fate::Hangs => std::future::pending().await,
    };
    drop(open);
    answer
}

impl Hook {
    /// A receiver that does with each request what its number says.
    pub(super) fn new(fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        let shared =
            Shared { got: Mutex::default(), open: AtomicUsize::new(0), fate: Box::new(fate) };
        let mut hook = Self { port: 0, shared: Arc::new(shared), served: None };
        hook.up();
        hook
    }

    /// One that takes everything.
    pub(super) fn good() -> Self {
        Self::new(|_| Fate::Taken)
    }

    /// Listens, at the place where it did before.
    pub(super) fn up(&mut self) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let app = axum::Router::new()
            .fallback(axum::routing::post(take))
            .with_state(Arc::clone(&self.shared));
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        self.served = Some((stop, thread));
    }

    /// Is not there: connections are refused, and those that are open break.
    pub(super) fn down(&mut self) {
        if let Some((stop, thread)) = self.served.take() {
            stop.send(()).unwrap_or_default();
            thread.join().unwrap();
        }
    }

    /// Where it is.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/told", self.port)
    }

    /// What came so far.
    pub(super) fn got(&self) -> Vec<Got> {
        self.shared.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines that jobs printed, of all that was taken, in order; what is known by its key is taken once.
    pub(super) fn evidence(&self) -> Vec<String> {
        let mut known = Vec::new();
        let mut all = Vec::new();
        for got in self.got().iter().filter(|got| matches!(got.fate, Fate::Taken | Fate::Cut)) {
            if !known.contains(&got.key) {
                known.push(got.key.clone());
                all.extend(got.evidence());
            }
        }
        all
    }

    /// How many requests are waiting for an answer.
    pub(super) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.down();
    }
}
