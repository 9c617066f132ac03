//! `serve`, and what the daemon answers beside its work: the API and the page.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use tpu_api::{ServeOptions, Server};
use tpu_ops::act::service;
use tpu_ops::base::watch;
use tpu_ops::{Ctx, Error};

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::{ServeArgs, ServeCommand};
use super::browser;
use super::legacy;
use super::print::{self, Output};

/// The API and the page, until somebody ends it.
pub(super) fn serve(app: App, args: &ServeCommand) -> Outcome {
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let serving = serving(&app, &args.how);
    let (global, env) = (app.global.clone(), app.env.clone());
    let server = Server::bind(Arc::new(app.into_ctx()?), &serving, legacy::command_words())?;
    let (address, link) = (server.address(), args.open.then(|| server.link()));
    let output = browser::answering(&address, link.as_deref());
    print::to_stdout(&print::printed(&output, &global), print::choice(global.color))
        .map_err(|e| Error::failed(format!("cannot print: {e}")))?;
    let _gone_with_the_server = link.as_deref().and_then(|link| browser::open(&env, link));
    server.serve(&stop).map(|()| Output::default())
}

/// The same beside the daemon, and no longer than that. Where it cannot go on, the daemon does.
pub(super) fn beside(
    app: App,
    args: &ServeArgs,
    stop: &Arc<AtomicBool>,
    daemon: impl FnOnce(&Arc<Ctx>, &AtomicBool) -> Outcome,
) -> Outcome {
    // Else it is the port of one that runs already that would be in the way.
    service::is_free(app.ctx()?)?;
    let (serving, colors) = (serving(&app, args), print::choice(app.global.color));
    let ctx = app.into_daemon()?;
    let server = Server::bind(Arc::clone(&ctx), &serving, legacy::command_words())?;
    let said = format!("Answering on {}.\n", server.address());
    print::to_stdout(&said, colors).map_err(|e| Error::failed(format!("cannot print: {e}")))?;
    std::thread::scope(|scope| {
        let watched = &ctx;
        scope.spawn(move || {
            let Err(error) = server.serve(stop) else { return };
            // It has said so where it could; whoever asks for an answer finds nobody.
            drop(watch::note(watched, watch::ACTOR, "not-serving", &error.message));
        });
        // However the daemon ends, nobody answers any longer.
        let _ends = EndsWith(stop);
        daemon(&ctx, stop)
    })
}

/// Where a server is to listen, and as what.
fn serving(app: &App, args: &ServeArgs) -> ServeOptions {
    let here = |path: &Option<PathBuf>| path.as_ref().map(|path| app.env.cwd.join(path));
    let listen = args.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7960)));
    ServeOptions {
        listen: args.socket.is_none().then_some(listen),
        socket: here(&args.socket),
        tls: here(&args.cert).zip(here(&args.key)),
        behind_proxy: args.behind_proxy,
        hosts: args.host.clone(),
    }
}

/// Has everything else end as well, however this ends.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
