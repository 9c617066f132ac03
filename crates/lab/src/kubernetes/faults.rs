//! What goes wrong when somebody asks for it: `POST /_sim/…`, for the administrator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::access::LAB;
use super::asked::{Asked, Reply};
use super::cluster::text;
use super::kubelet::PodFault;
use super::refused::{Refused, Subject};
use super::resources::PODS;
use super::shared::Shared;
use super::store::ObjectKey;
use super::works::Works;
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// What the log of a pod does instead of being there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogFault {
    /// Is answered so.
    Status(u16),
    /// Is never answered.
    Hang,
    /// Breaks off after so many bytes.
    Break(usize),
}

/// What goes wrong now.
#[derive(Debug)]
pub(super) struct Faults {
    /// How much was asked so far.
    asked: AtomicU64,
    /// How many watches have begun.
    watches: AtomicU64,
    clock: SystemClock,
    api: Mutex<Option<(u16, Duration)>>,
    log: Mutex<Option<(LogFault, Duration)>>,
}

impl Faults {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self {
            asked: AtomicU64::new(0),
            watches: AtomicU64::new(0),
            clock: SystemClock::new(),
            api: Mutex::new(None),
            log: Mutex::new(None),
        }
    }

    fn now<T: Copy>(&self, of: &Mutex<Option<(T, Duration)>>) -> Option<T> {
        let fault = *of.lock().unwrap_or_else(PoisonError::into_inner);
        fault.filter(|(_, until)| self.clock.monotonic() < *until).map(|(fault, _)| fault)
    }

    /// How much was asked so far, and how many watches have begun.
    pub(super) fn counted(&self) -> Reply {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Reply::Json(200, json!({"asked": of(&self.asked), "watches": of(&self.watches)}))
    }

    /// Counts a watch.
    pub(super) fn watch_begins(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    /// How every request is refused now, if it is. Each is counted.
    pub(super) fn refusal(&self) -> Option<Refused> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let status = self.now(&self.api)?;
        let mut refused = if status == 429 {
            let text = "Too many requests, please try again later.";
            Refused::new(429, "TooManyRequests", text, Some(json!({"retryAfterSeconds": 1})))
        } else {
            let text = "Internal error occurred: as was asked for";
            Refused::new(status, "InternalError", text, Some(json!({})))
        };
        refused.retry_after_s = (status == 429).then_some(1);
        Some(refused)
    }

    /// What logs do now.
    pub(super) fn of_logs(&self) -> Option<LogFault> {
        self.now(&self.log)
    }

    /// Lets something go wrong.
    pub(super) fn begin(
        &self,
        asked: &Asked,
        shared: &Shared,
        works: &Works,
    ) -> Result<Reply, Refused> {
        let said: Value = if asked.body.is_empty() {
            json!({})
        } else {
            serde_json::from_slice(&asked.body).map_err(|error| Refused::bad(&error.to_string()))?
        };
        let for_s = said["for_s"].as_f64().unwrap_or(1.0).clamp(0.0, 86400.0);
        let until = self.clock.monotonic() + Duration::from_secs_f64(for_s);
        let word = text(&said["do"]);
        let parts: Vec<&str> = asked.path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["_sim", "api"] => {
                let status = said["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                let status = status
                    .filter(|status| (400..600).contains(status))
                    .ok_or_else(|| Refused::bad("as in {\"status\": 429, \"for_s\": 2}"))?;
                *self.api.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, until));
            }
            ["_sim", "logs"] => {
                let bytes = said["after"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                let fault = match word {
                    "hang" => LogFault::Hang,
                    "break" => LogFault::Break(bytes.unwrap_or(1)),
                    "400" => LogFault::Status(400),
                    "404" => LogFault::Status(404),
                    "500" => LogFault::Status(500),
                    _ => {
                        return Err(Refused::bad(
                            "as in {\"do\": \"400|404|500|hang|break\", \"for_s\": 2}",
                        ));
                    }
                };
                *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, until));
            }
            ["_sim", "controllers"] if ["stop", "start"].contains(&word) => {
                works.let_stand_still(word == "stop");
            }
            ["_sim", "watch"] if word == "410" => shared.expire(),
            ["_sim", "pods", name] => {
                let ago_s = said["ago_s"].as_u64().and_then(|ago_s| u32::try_from(ago_s).ok());
                let fault = PodFault::parse(word, ago_s.unwrap_or(0)).ok_or_else(|| {
                    Refused::bad(
                        "as in {\"do\": \"oom|evict|preempt|node-lost|image|unschedulable|delete\"}",
                    )
                })?;
                let namespace = said["namespace"].as_str().unwrap_or(LAB);
                hit(shared, works, &ObjectKey::new(&PODS, namespace, name), fault)?;
            }
            _ => {
                return Err(Refused::bad(
                    "there are /_sim/api, /_sim/logs, /_sim/controllers {\"do\": \"stop|start\"}, \
                     /_sim/watch {\"do\": \"410\"} and /_sim/pods/NAME",
                ));
            }
        }
        Ok(Reply::Json(200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})))
    }
}

fn hit(shared: &Shared, works: &Works, key: &ObjectKey, fault: PodFault) -> Result<(), Refused> {
    works.with_kubelets(|kubelets| {
        shared.act(|cluster| {
            let pod = cluster.store.get(key).cloned();
            let pod = pod.ok_or_else(|| {
                Refused::not_found(&Subject { name: &key.name, group: "", kind: "pods" })
            })?;
            kubelets.hit(cluster, key, &pod, fault).map_err(|why| {
                let subject = Subject { name: &key.name, group: "", kind: "pods" };
                Refused::conflict(&subject, &why)
            })
        })
    })
}
