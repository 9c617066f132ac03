//! Jobs over HTTP: `tpu serve`. A way in like the command line: routes call `ops` and speak `wire`, and decide nothing.
//!
//! From the outside in: `connection` takes connections (port, socket, TLS) and gives them up in time; `guard` looks at
//! what every request must have (the name of this server, no other origin); `who` says who asks and whether they may;
//! `limited` keeps a token to its targets; `asked` is the request as the function of a route sees it; `answer`, `flow` and `failure` are what it gives back.
//! `cookie`, `session` and `links` are how a browser shows a token, and `page` is what it then shows.
//! `routes` lists all routes, one file for each resource, and `openapi` describes them from the same table. `looks` and
//! `pulse` look and read once for all who ask; `piece` and `follow` read what a job has printed.

mod acts;
mod answer;
mod asked;
mod cloudmesh;
mod connection;
mod cookie;
mod counted;
mod curve;
mod denied;
#[cfg(test)]
mod described;
mod events;
mod failure;
mod flow;
mod follow;
mod guard;
mod health;
mod hosts;
mod idempotency;
mod jobs;
mod kind_lists;
mod limited;
mod links;
mod logs;
mod looks;
mod metrics;
mod openapi;
mod page;
mod piece;
mod plan;
mod pulse;
mod queues;
mod route;
mod routes;
mod served;
mod session;
mod submit;
mod takes;
mod targets;
mod usage;
mod users;
mod who;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_ops::front::jobfile::body;
use tpu_ops::front::tokens;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::procs;

use connection::Doorway;
use served::{Description, Served, THREADS};

/// How often the journal is read on, and the look is looked at.
const BEAT: Duration = Duration::from_millis(200);
/// Whoever has heard nothing for so long hears that all is well.
const STILL_HERE: Duration = Duration::from_secs(15);
/// Files that may be open at once, if the system lets us: a connection is one, and an answer may need some more.
const OPEN_FILES: u64 = 8_192;
/// Answers that are being made get so long, once the server is to end.
const LAST_ANSWERS: Duration = Duration::from_secs(6);
/// Targets that are being made get so long; what they have come to then the control plane says.
const LAST_MAKERS: Duration = Duration::from_secs(2);

/// Where to listen, and as what.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The address of a port.
    pub listen: Option<SocketAddr>,
    /// A socket in the file system, which its owner alone can open.
    pub socket: Option<PathBuf>,
    /// The chain of certificates and the key, as files in PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether something in front of it speaks TLS.
    pub behind_proxy: bool,
    /// Names under which it is called beside those of this machine.
    pub hosts: Vec<String>,
}

/// A server that listens and does not answer yet.
pub struct Server {
    served: Arc<Served>,
    doorway: Doorway,
}

impl Server {
    /// Listens. What would let strangers in is refused: an address that others reach without TLS, or before there is a
    /// token.
    pub fn bind(
        ctx: Arc<Ctx>,
        serving: &ServeOptions,
        job_words: Vec<String>,
    ) -> Result<Self, Error> {
        ctx.data()?;
        if let Some(listen) = serving.listen.filter(|listen| !listen.ip().is_loopback()) {
            if serving.tls.is_none() && !serving.behind_proxy {
                let what = format!("on {listen} everybody on the way reads the tokens");
                return Err(Error::refused(what).hint(
                    "--cert FILE --key FILE speak TLS; --behind-proxy says that something in front does",
                ));
            }
            if tokens::list(&ctx)?.is_empty() {
                return Err(Error::refused("there is no token, so that nobody could ask")
                    .hint("tpu token create NAME --role viewer"));
            }
        }
        let doorway = Doorway::open(&ctx, serving)?;
        let routes = routes::all();
        let description = Description {
            for_programs: openapi::for_programs(&body::schema(&ctx.kinds)).to_string(),
            for_people: openapi::for_people(&routes),
        };
        let hosts = serving.hosts.clone();
        let is_secure = serving.tls.is_some() || serving.behind_proxy;
        let served = Served::new(ctx, (hosts, is_secure), (description, job_words));
        Ok(Self { served: Arc::new(served), doorway })
    }

    /// A link that logs a browser in as the account that serves, once and soon.
    pub fn link(&self) -> String {
        let code = self.served.links.make(&self.served.ctx);
        format!("{}/#login={code}", self.doorway.address_for_browser())
    }

    /// Where it listens, as an address that can be typed.
    pub fn address(&self) -> String {
        self.doorway.address()
    }

    /// Answers until `stop` is set. Whoever follows something then is cut off, and asks the next server.
    pub fn serve(self, stop: &AtomicBool) -> Result<(), Error> {
        let cannot = |e: std::io::Error| Error::failed(format!("cannot serve: {e}"));
        let most = connection::most(procs::allow_open_files(OPEN_FILES));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()
            .map_err(cannot)?;
        let ended = AtomicBool::new(false);
        let is_over = || stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
        let (served, is_over) = (&self.served, &is_over);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut quiet = Duration::ZERO;
                while !is_over() {
                    served.ctx.clock.sleep(BEAT);
                    served.pulse.beat(&served.ctx);
                    quiet += BEAT;
                    if quiet >= STILL_HERE {
                        quiet = Duration::ZERO;
                        served.pulse.still_here(&served.ctx);
                    }
                }
            });
            scope.spawn(|| {
                while !is_over() {
                    served.ctx.clock.sleep(BEAT);
                    // What was set meanwhile holds, as for a command that is started now; what cannot be read now changes
                    // nothing.
                    drop(served.ctx.refresh_settings());
                    served.looks.keep_fresh(&served.ctx);
                }
            });
            let done = runtime.block_on(async {
                let done = self.doorway.serve((guard::router(served), most), is_over).await;
                ended.store(true, Ordering::Relaxed);
                // What is being done to a job is done to its end, and said; a slow answer keeps nobody from the end.
                served.quiet(LAST_ANSWERS).await;
                done
            });
            runtime.shutdown_timeout(LAST_MAKERS);
            targets::tell_cut_off(served);
            done.map_err(cannot)
        })
    }
}
