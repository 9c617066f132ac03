//! `serve`, and what the daemon answers beside its work: the API and the page.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};

use tpu_api::{ServeOptions, Server};
use tpu_ops::act::service;
use tpu_ops::base::another_tpu::ServerNote;
use tpu_ops::base::watch;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::proc::{self, Spawn};

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::{ServeArgs, ServeCommand};
use super::browser;
use super::legacy;
use super::print::{self, Output};

/// The API and the page, until somebody ends it.
pub(super) fn serve(app: App, args: &ServeCommand) -> Outcome {
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let anew = asked_to_start_anew(&stop)?;
    let serving = serving(&app, &args.how);
    let (global, env) = (app.global.clone(), app.env.clone());
    let typed = app.typed.clone();
    let ctx = Arc::new(app.into_ctx()?);
    let server = Server::bind(Arc::clone(&ctx), &serving, legacy::command_words())?;
    let (address, link) = (server.address(), args.open.then(|| server.link()));
    let output = browser::answering(&address, link.as_deref());
    print::to_stdout(&print::printed(&output, &global), print::choice(global.color))
        .map_err(|e| Error::failed(format!("cannot print: {e}")))?;
    let gone_with_the_server = link.as_deref().and_then(|link| browser::open(&env, link));
    let note = ServerNote::of_this(&ctx, address);
    // Without it nobody can tell this server to start anew, and it answers all the same.
    drop(note.write(&ctx));
    let served = server.serve(&stop);
    let told = ServerNote::read(&ctx, &ctx.store.paths().server_note(note.pid));
    note.forget(&ctx);
    drop(gone_with_the_server);
    served?;
    match told.and_then(|told| told.next).filter(|_| anew.load(Ordering::Relaxed)) {
        // The browser is open already.
        Some(program) => {
            let words = typed.into_iter().filter(|word| word != "--open");
            Err(proc::become_program(&Spawn::new(program).args(words)).into())
        }
        None => Ok(Output::default()),
    }
}

/// Set, as `stop` is, once this server is to become the program that its note names.
fn asked_to_start_anew(stop: &Arc<AtomicBool>) -> Result<Arc<AtomicBool>, Error> {
    let anew = asked_to_end(&[SIGUSR2])?;
    signal_hook::flag::register(SIGUSR2, Arc::clone(stop))
        .map_err(|e| Error::failed(format!("cannot listen for signals: {e}")))?;
    Ok(anew)
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
