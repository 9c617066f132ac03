//! Connections: a port or a socket, with TLS or without. Whoever is slow to say what they want is given up, and more than
//! can be served are not taken.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use tpu_ops::{Ctx, Error};

use super::ServeOptions;
use super::flow::SLOWEST_READER;

/// Connections at once, however many files may be open; who comes then waits until one has ended.
const MOST: usize = 2_500;
/// A request, and the greeting of TLS, have to be there within this.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the end has come.
const LOOK: Duration = Duration::from_millis(50);
/// After a connection that could not be taken, for want of files.
const BREATH: Duration = Duration::from_millis(50);

/// Connections at once where so many files may be open: half of them, so that each can be answered.
pub(super) fn most(files: u64) -> usize {
    usize::try_from(files / 2).unwrap_or(MOST).clamp(1, MOST)
}

/// By which door a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// A port: everybody on the machine, or on the net, reaches it.
    Port,
    /// A socket that only the account which serves can open.
    Socket,
}

/// Where it listens.
pub(super) struct Doorway {
    listening: Listening,
    tls: Option<TlsAcceptor>,
    /// The account that may come by the socket.
    uid: u32,
}

enum Listening {
    Port(TcpListener, SocketAddr),
    Socket(UnixListener, SocketFile),
}

/// The file of a socket, which goes with it.
struct SocketFile {
    path: PathBuf,
    /// Its device and inode: by now another server's may have this name.
    file: Option<(u64, u64)>,
}

impl SocketFile {
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: Self::named(path) }
    }

    fn named(path: &Path) -> Option<(u64, u64)> {
        fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == Self::named(&self.path) {
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Doorway {
    /// Listens.
    pub(super) fn open(ctx: &Ctx, serving: &ServeOptions) -> Result<Self, Error> {
        let tls = serving.tls.as_ref().map(|(chain, key)| acceptor(chain, key)).transpose()?;
        let listening = match (&serving.socket, serving.listen) {
            (Some(path), _) => socket(path)?,
            (None, Some(address)) => port(address)?,
            (None, None) => return Err(Error::usage("nowhere to listen")),
        };
        Ok(Self { listening, tls, uid: ctx.env.uid })
    }

    /// Where it listens, as an address that can be typed.
    pub(super) fn address(&self) -> String {
        match &self.listening {
            Listening::Port(_, address) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                format!("{scheme}://{address}")
            }
            Listening::Socket(_, file) => file.path.display().to_string(),
        }
    }

    /// The same as a browser of this machine reaches it: where it listens to all, itself.
    pub(super) fn address_for_browser(&self) -> String {
        let address = self.address();
        match &self.listening {
            Listening::Port(_, at) if at.ip().is_unspecified() => address
                .replace(&at.ip().to_string(), "localhost")
                .replace("[localhost]", "localhost"),
            Listening::Port(..) | Listening::Socket(..) => address,
        }
    }

    /// Answers until `is_over` says so.
    pub(super) async fn serve(
        self,
        (router, most): (Router, usize),
        is_over: impl Fn() -> bool,
    ) -> io::Result<()> {
        let room = Arc::new(Semaphore::new(most));
        let taking = tokio::spawn(take(self, router, room));
        while !is_over() && !taking.is_finished() {
            tokio::time::sleep(LOOK).await;
        }
        if taking.is_finished() {
            return taking.await.map_err(io::Error::other)?;
        }
        taking.abort();
        Ok(())
    }
}

fn port(address: SocketAddr) -> Result<Listening, Error> {
    let cannot = |e: io::Error| {
        let hint = "another port: --listen 127.0.0.1:PORT, or 0 for any that is free";
        Error::state(format!("cannot listen on {address}: {e}")).hint(hint)
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok(Listening::Port(listener, address))
}

/// A socket that nobody else can open from its first moment on: it comes to be in a directory of ours alone, and is then
/// put where it belongs. One that a server which is gone has left is replaced.
fn socket(path: &Path) -> Result<Listening, Error> {
    let cannot = |e: io::Error| {
        Error::state(format!("cannot listen on {}: {e}", path.display()))
            .hint("its directory must be there, and ours to write; a path has 107 bytes at most")
    };
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(Error::refused(format!("somebody serves on {} already", path.display()))
            .hint("end that one first, or name another path"));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            return Err(Error::refused(format!("{} is there, and no socket", path.display()))
                .hint("name another path"));
        }
        Ok(_) | Err(_) => {}
    }
    let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let room = tempfile::Builder::new().prefix(".s").tempdir_in(beside.unwrap_or(Path::new(".")));
    let room = room.map_err(cannot)?;
    let born = room.path().join("s");
    let listener = UnixListener::bind(&born).map_err(cannot)?;
    fs::set_permissions(&born, fs::Permissions::from_mode(0o600)).map_err(cannot)?;
    fs::rename(&born, path).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    Ok(Listening::Socket(listener, SocketFile::at(path)))
}

fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let cannot = |path: &Path, e: &dyn std::fmt::Display| {
        Error::usage(format!("{}: {e}", path.display()))
            .hint("--cert has the chain of certificates and --key its key, both in PEM")
    };
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| cannot(chain, &e))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| cannot(key, &e))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| cannot(chain, &e))?
        .with_no_client_auth()
        .with_single_cert(certificates, secret)
        .map_err(|e| cannot(chain, &e))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Takes connections, each served on its own.
async fn take(doorway: Doorway, router: Router, room: Arc<Semaphore>) -> io::Result<()> {
    let Doorway { listening, tls, uid } = doorway;
    match listening {
        Listening::Port(listener, _) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = router.layer(Extension(Door::Port));
            loop {
                let permit = permit(&room).await?;
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(BREATH).await;
                    continue;
                };
                // Small answers are not held back.
                drop(stream.set_nodelay(true));
                match tls.clone() {
                    None => drop(tokio::spawn(serve(stream, router.clone(), permit))),
                    Some(tls) => {
                        let router = router.clone();
                        drop(tokio::spawn(async move {
                            let greeted = tokio::time::timeout(PATIENCE, tls.accept(stream)).await;
                            if let Ok(Ok(stream)) = greeted {
                                serve(stream, router, permit).await;
                            }
                        }));
                    }
                }
            }
        }
        Listening::Socket(listener, _file) => {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            let router = router.layer(Extension(Door::Socket));
            loop {
                let permit = permit(&room).await?;
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(BREATH).await;
                    continue;
                };
                // The mode of the file keeps others out; root may pass it, and is told apart here.
                let is_owner = stream.peer_cred().is_ok_and(|peer| peer.uid() == uid);
                if is_owner {
                    drop(tokio::spawn(serve(stream, router.clone(), permit)));
                }
            }
        }
    }
}

async fn permit(room: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(room).acquire_owned().await.map_err(io::Error::other)
}

/// Serves one connection to its end.
fn serve<S>(
    stream: S,
    router: Router,
    permit: OwnedSemaphorePermit,
) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = TowerToHyperService::new(router);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(SLOWEST_READER));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    async move {
        // Whoever hangs up does not want to know.
        drop(connection.await);
        drop(permit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_their_answers() {
        for (files, connections) in
            [(0, 1), (256, 128), (1_024, 512), (8_192, MOST), (u64::MAX, MOST)]
        {
            assert_eq!(most(files), connections, "{files}");
        }
    }
}
