//! The way of a request: who asks, whether they may, what is done, and how that is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use http_body::Frame;
use serde_json::json;
use tokio::sync::mpsc;

use super::access::{Asking, Tokens, Wish};
use super::asked::{Asked, Meant, Reply};
use super::cluster::text;
use super::faults::{Faults, LogFault};
use super::lists;
use super::logs::{self, LogShelf, LogWish};
use super::refused::Refused;
use super::resources::{self, PODS, RESOURCES};
use super::shared::Shared;
use super::store::ObjectKey;
use super::verbs::{self, LONGEST_BODY};
use super::watching;
use super::wire;
use super::works::Works;

/// What every request needs.
pub(super) struct Served {
    /// The cluster.
    pub(super) shared: Arc<Shared>,
    /// Who is who.
    pub(super) tokens: Tokens,
    /// `127.0.0.1:PORT`.
    pub(super) address: String,
    /// What the containers wrote.
    pub(super) shelf: Arc<LogShelf>,
    /// What the cluster does by itself.
    pub(super) works: Works,
    /// What goes wrong now.
    pub(super) faults: Faults,
}

/// The whole API. Its paths are data here (what is served, what is below it), so one handler reads them all.
pub(super) fn router(served: Arc<Served>) -> Router {
    Router::new().fallback(answer).with_state(served)
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let is_head = request.method() == Method::HEAD;
    let reply = match served.react(request).await {
        Ok(reply) => reply,
        Err(refused) => {
            let mut response = sent(Reply::Json(refused.code, refused.body));
            if let Some(seconds) = refused.retry_after_s {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            if is_head {
                *response.body_mut() = Body::empty();
            }
            return response;
        }
    };
    if matches!(reply, Reply::Never) {
        std::future::pending::<Infallible>().await;
    }
    sent(reply)
}

fn sent(reply: Reply) -> Response {
    let (code, of, body) = match reply {
        Reply::Json(code, body) => (code, "application/json", Body::from(body.to_string())),
        Reply::Text(code, of, text) => (code, of, Body::from(text)),
        Reply::Stream(of, receiver) => (200, of, Body::new(Pieces(receiver))),
        Reply::Never => (500, "text/plain", Body::empty()),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(of));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A body that comes piece by piece.
struct Pieces(mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

impl Served {
    async fn react(&self, request: Request) -> Result<Reply, Refused> {
        let (parts, body) = request.into_parts();
        let word = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let asking = self.tokens.asking(word(header::AUTHORIZATION))?;
        let query = Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(all)| all);
        // One byte more says that it is too long; who sends it may still be refused for another reason.
        let body = match axum::body::to_bytes(body, 8 * LONGEST_BODY).await {
            Ok(body) => body,
            Err(_) => Bytes::from(vec![b' '; LONGEST_BODY + 1]),
        };
        let path = parts.uri.path().trim_end_matches('/').to_owned();
        let asked =
            Asked { method: parts.method, path, query, headers: parts.headers, body, asking };
        if asked.path.starts_with("/_sim/") && asked.asking == Asking::Admin {
            if asked.method == Method::GET && asked.path == "/_sim/asked" {
                return Ok(self.faults.counted());
            }
            if asked.method != Method::POST {
                return Err(Refused::no_such_method());
            }
            return self.faults.begin(&asked, &self.shared, &self.works);
        }
        if let Some(refused) = self.faults.refusal() {
            return Err(refused);
        }
        match asked.meant() {
            Some(meant) => self.resource(&asked, meant),
            None => self.document(&asked),
        }
    }

    /// A request for a resource: the right to it comes before everything else.
    fn resource(&self, asked: &Asked, meant: Meant) -> Result<Reply, Refused> {
        let is_item = meant.name.is_some();
        let watches = !is_item && asked.flag("watch") || meant.is_watch;
        let verb = match (&asked.method, is_item) {
            (&Method::GET, _) if watches => "watch",
            (&Method::GET, true) => "get",
            (&Method::GET, false) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, true) => "update",
            (&Method::PATCH, true) => "patch",
            (&Method::DELETE, true) => "delete",
            (&Method::DELETE, false) => "deletecollection",
            _ => "",
        };
        let wish = Wish {
            verb: if verb.is_empty() { "update" } else { verb },
            group: meant.resource.group,
            resource: &meant.words(),
            namespace: meant.namespace_of_right(),
            name: meant.name.as_deref().unwrap_or_default(),
        };
        asked.asking.check(&wish)?;
        if meant.resource.is_review && verb != "create" {
            return Err(Refused::no_such_method());
        }
        let shared = &self.shared;
        match (verb, meant.below.as_deref()) {
            ("watch", None) => {
                self.faults.watch_begins();
                watching::watch(shared, asked, meant)
            }
            ("get", None | Some("status")) => shared.look(|c| verbs::get(c, asked, &meant)),
            ("get", Some("log")) => self.log(asked, &meant),
            ("list", None) => shared.look(|c| lists::list(c, asked, &meant)),
            ("create", None) if !is_item => shared.act(|c| verbs::create(c, asked, &meant)),
            ("create", Some("binding")) => shared.act(|c| verbs::bind(c, asked, &meant)),
            ("update", None | Some("status")) => shared.act(|c| verbs::update(c, asked, &meant)),
            ("patch", None | Some("status")) => shared.act(|c| verbs::patch(c, asked, &meant)),
            ("delete", None) => shared.act(|c| verbs::delete(c, asked, &meant)),
            ("deletecollection", None) => shared.act(|c| verbs::delete_all(c, asked, &meant)),
            _ => Err(Refused::no_such_method()),
        }
    }

    /// The log of a container: what the server itself knows comes before what the kubelet says.
    fn log(&self, asked: &Asked, meant: &Meant) -> Result<Reply, Refused> {
        let of = |part: &Option<String>| part.clone().unwrap_or_default();
        let (namespace, name) = (of(&meant.namespace), of(&meant.name));
        let key = ObjectKey::new(&PODS, &namespace, &name);
        let (pod, now) = self.shared.look(|cluster| {
            cluster.get(&PODS, &key).map(|pod| (Arc::clone(pod), cluster.moment()))
        })?;
        let wish = LogWish::parse(asked, &name, now)?;
        let container = logs::container_of(&pod, asked.parameter("container"))?;
        let node = text(&pod["spec"]["nodeName"]);
        if node.is_empty() {
            return Ok(Reply::Text(204, "text/plain", Vec::new()));
        }
        if !self.works.with_kubelets(|kubelets| kubelets.answers(node)) {
            let at = "127.0.0.1:10250";
            return Err(Refused::bare(
                500,
                &format!(
                    "Get \"https://{at}/containerLogs/{namespace}/{name}/{container}\": dial tcp {at}: connect: connection \
                 refused"
                ),
            ));
        }
        let mut breaks = None;
        match self.faults.of_logs() {
            Some(LogFault::Status(400)) => {
                return Err(Refused::bad(&format!(
                    "container {container:?} in pod {name:?} is waiting to start: ContainerCreating"
                )));
            }
            Some(LogFault::Status(404)) => return Err(logs::unknown_to_kubelet(&name)),
            Some(LogFault::Status(_)) => {
                let why = "Internal Error: failed to list pod from runtime";
                let details = json!({"causes": [{"message": why}]});
                let text = format!("Internal error occurred: {why}");
                return Err(Refused::new(500, "InternalError", &text, Some(details)));
            }
            Some(LogFault::Hang) => return Ok(Reply::Never),
            Some(LogFault::Break(after)) => breaks = Some(after),
            None => {}
        }
        logs::read(&self.shelf, &pod, container, &wish, breaks)
    }

    /// A path that is no resource.
    fn document(&self, asked: &Asked) -> Result<Reply, Refused> {
        const PLAIN: &str = "text/plain; charset=utf-8";
        let verb = match asked.method {
            Method::GET => "get",
            Method::POST => "post",
            Method::PUT => "put",
            Method::DELETE => "delete",
            _ => "patch",
        };
        let path = if asked.path.is_empty() { "/" } else { asked.path.as_str() };
        asked.asking.check_path(verb, path)?;
        if path == "/openapi/v2" {
            if asked.header("accept").contains("protobuf") {
                let kinds: Vec<_> =
                    RESOURCES.iter().map(|of| (of.group, of.version, of.kind)).collect();
                return Ok(Reply::Text(200, "application/octet-stream", wire::openapi(&kinds)));
            }
            let document = json!({
                "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.20.2"}, "paths": {},
                "definitions": {},
            });
            return Ok(Reply::Text(200, PLAIN, document.to_string().into_bytes()));
        }
        if ["/healthz", "/livez", "/readyz"].contains(&path) {
            let of = path.trim_start_matches('/');
            let is_long = asked.query.iter().any(|(key, _)| key == "verbose");
            let text =
                if is_long { format!("[+]ping ok\n{of} check passed\n") } else { "ok".to_owned() };
            return Ok(Reply::Text(200, PLAIN, text.into_bytes()));
        }
        if let Some(found) = resources::discovery(path, &self.address) {
            return Ok(Reply::Json(200, found));
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let within = match parts.as_slice() {
            ["api", version, ..] => Some(("", *version)),
            ["apis", group, version, ..] => Some((*group, *version)),
            ["apis", ..] => Some(("", "")),
            _ => None,
        };
        match within {
            Some((group, version))
                if RESOURCES.iter().any(|of| of.group == group && of.version == version)
                    || group == "authentication.k8s.io" =>
            {
                Err(Refused::no_such_resource())
            }
            Some(_) => Ok(Reply::Text(404, PLAIN, b"404 page not found\n".to_vec())),
            None => {
                let known = resources::discovery("/", &self.address).unwrap_or_default();
                Ok(Reply::Json(404, known))
            }
        }
    }
}
