//! Watches: a line for everything that happens, from a version on, until the time is over.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::asked::{Asked, Form, Meant, Reply, formed};
use super::cluster::Cluster;
use super::lists;
use super::refused::Refused;
use super::resources::{JOBS, PODS};
use super::selectors::Wanted;
use super::shared::Shared;
use super::store::Happened;
use super::tables;

/// How long before its end a watch tells the newest version, where that is wanted.
const BEFORE_END: Duration = Duration::from_secs(2);
/// How often a long watch does.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// A watch that goes on.
struct Watching {
    meant: Meant,
    wanted: Wanted,
    form: Form,
    row: String,
    version: u64,
    /// Whether the next table has its columns.
    with_columns: bool,
}

/// Begins a watch.
pub(super) fn watch(shared: &Arc<Shared>, asked: &Asked, meant: Meant) -> Result<Reply, Refused> {
    let form = asked.form()?;
    let mut fields = asked.parameter("fieldSelector").unwrap_or_default().to_owned();
    if let Some(name) = &meant.name {
        fields = format!("metadata.name={name}");
    }
    let wanted = Wanted::parse(meant.resource, asked.parameter("labelSelector"), Some(&fields))?;
    let seconds = asked.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).unwrap_or(1800);
    let version = lists::version(asked)?.filter(|version| *version > 0);
    // A short watch ends without one [watch-bookmark].
    let bookmarks = asked.flag("allowWatchBookmarks") && seconds > 5;
    let row = asked.parameter("includeObject").unwrap_or("Metadata").to_owned();
    let mut watching =
        Watching { meant, wanted, form, row, version: version.unwrap_or(0), with_columns: true };
    let (sender, receiver) = mpsc::channel(64);
    let shared = Arc::clone(shared);
    let end = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
    tokio::spawn(async move {
        let mut changed = shared.changed();
        let expired = shared.expired();
        if version.is_none() {
            let lines = shared.look(|cluster| watching.present(cluster));
            for line in lines {
                if sender.send(Ok(line)).await.is_err() {
                    return;
                }
            }
        }
        let mut bookmark =
            (Instant::now() + BOOKMARKS).min(end - BEFORE_END.min(end - Instant::now()));
        loop {
            changed.mark_unchanged();
            let lines = shared.look(|cluster| watching.next(cluster));
            let lines = lines.filter(|_| shared.expired() == expired);
            let (lines, is_over) = match lines {
                Some(lines) => (lines, false),
                None => (vec![gone()], true),
            };
            for line in lines {
                if sender.send(Ok(line)).await.is_err() {
                    return;
                }
            }
            let wait = if bookmarks { end.min(bookmark) } else { end };
            let is_cut = is_over || shared.is_cut();
            if is_cut || Instant::now() >= end {
                return;
            }
            tokio::select! {
                happened = changed.changed() => if happened.is_err() { return },
                () = tokio::time::sleep_until(wait) => {
                    if bookmarks && Instant::now() >= bookmark && Instant::now() < end {
                        let line = shared.look(|cluster| watching.bookmark(cluster));
                        if sender.send(Ok(line)).await.is_err() {
                            return;
                        }
                        bookmark = Instant::now() + BOOKMARKS;
                    }
                }
                () = sender.closed() => return,
            }
        }
    });
    Ok(Reply::Stream("application/json", receiver))
}

/// The line that says that what was asked for is forgotten.
fn gone() -> Bytes {
    let refused = Refused::expired("The resourceVersion for the provided watch is too old.");
    line("ERROR", &refused.body)
}

fn line(of: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": of, "object": object})))
}

impl Watching {
    fn said(&mut self, cluster: &Cluster, of: &str, object: &Value) -> Bytes {
        if self.form != Form::Table {
            return line(of, &formed(self.form, object));
        }
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let with_columns = std::mem::replace(&mut self.with_columns, false);
        let one = std::iter::once(object);
        let row = self.row.as_str();
        line(of, &tables::table(cluster, self.meant.resource, one, (metadata, with_columns, row)))
    }

    /// What is there, as if it had just begun.
    fn present(&mut self, cluster: &Cluster) -> Vec<Bytes> {
        self.version = cluster.store.version();
        let all: Vec<Arc<Value>> = cluster
            .store
            .list(self.meant.resource, self.meant.namespace.as_deref())
            .filter(|(_, object)| self.wanted.matches(object))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        all.iter().map(|object| self.said(cluster, "ADDED", object)).collect()
    }

    /// What has happened since. `None` if that is forgotten.
    fn next(&mut self, cluster: &Cluster) -> Option<Vec<Bytes>> {
        // A version that is not there yet is waited for [watch-future].
        if self.version > cluster.store.version() {
            return Some(Vec::new());
        }
        let all: Vec<Happened> = cluster
            .store
            .since(self.version)?
            .filter(|happened| {
                let namespace = self.meant.namespace.as_deref();
                happened.key.is_of(self.meant.resource)
                    && namespace.is_none_or(|wanted| wanted == happened.key.namespace)
            })
            .cloned()
            .collect();
        let mut lines = Vec::new();
        for happened in all {
            let of = |object: &Option<Arc<Value>>| {
                object.as_ref().filter(|object| self.wanted.matches(object)).map(Arc::clone)
            };
            let (before, after) = (of(&happened.before), of(&happened.after));
            let (word, object) = match (before, after) {
                (None, Some(after)) => ("ADDED", after),
                (Some(_), Some(after)) => ("MODIFIED", after),
                (Some(before), None) => {
                    // Out of sight is gone; its version is that of what took it out of sight.
                    let mut last = happened.last.as_deref().unwrap_or(&before).clone();
                    last["metadata"]["resourceVersion"] = json!(happened.version.to_string());
                    ("DELETED", Arc::new(last))
                }
                (None, None) => continue,
            };
            lines.push(self.said(cluster, word, &object));
        }
        self.version = self.version.max(cluster.store.version());
        Some(lines)
    }

    fn bookmark(&self, cluster: &Cluster) -> Bytes {
        let version = cluster.store.version().max(self.version).to_string();
        let resource = self.meant.resource;
        let mut object = json!({
            "kind": resource.kind, "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": version, "creationTimestamp": null},
        });
        // Empty as the server's language prints it [watch-bookmark-jobs].
        let pod = json!({"containers": null});
        if resource.is(&JOBS) {
            object["spec"] =
                json!({"template": {"metadata": {"creationTimestamp": null}, "spec": pod}});
            object["status"] = json!({});
        } else if resource.is(&PODS) {
            object["spec"] = pod;
            object["status"] = json!({});
        }
        line("BOOKMARK", &object)
    }
}
