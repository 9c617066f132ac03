//! The wire between a user and the server: it can be cut, and it can go dead without anybody being told.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};

/// So often a wire looks at how it is.
const LOOK: Duration = Duration::from_millis(20);

/// How a wire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WireIs {
    /// What is sent arrives.
    Whole,
    /// Connections break, and new ones break as soon as they are made.
    Cut,
    /// What is sent never arrives.
    Dead,
    /// It is taken away.
    Gone,
}

/// What its carriers know of a wire.
#[derive(Default)]
struct Known {
    is: AtomicU8,
    /// How many connections there have been.
    made: AtomicUsize,
    /// So many of the first of them are dead, whatever becomes of the wire.
    dead: AtomicUsize,
}

/// A wire to a server on this machine.
pub(super) struct Wire {
    port: u16,
    known: Arc<Known>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// To the server behind a port.
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let known = Arc::new(Known::default());
        let carriers = Arc::clone(&known);
        let thread = std::thread::spawn(move || {
            let mut ends = Vec::new();
            for near in listener.incoming().flatten() {
                match carriers.is.load(Ordering::Acquire) {
                    is if is == WireIs::Gone as u8 => break,
                    is if is == WireIs::Cut as u8 => continue,
                    _ => {}
                }
                let far = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
                let number = carriers.made.fetch_add(1, Ordering::AcqRel);
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let known = Arc::clone(&carriers);
                    ends.push(std::thread::spawn(move || carry(&from, &to, (&known, number))));
                }
            }
            for end in ends {
                end.join().unwrap();
            }
        });
        Self { port, known, thread: Some(thread) }
    }

    /// Where this end of it is.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// From now on it is so.
    pub(super) fn becomes(&self, is: WireIs) {
        self.known.is.store(is as u8, Ordering::Release);
    }

    /// The connections that are there now die without a word; those that are made from now on are not touched.
    pub(super) fn loses_its_connections(&self) {
        self.known.dead.store(self.known.made.load(Ordering::Acquire), Ordering::Release);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.becomes(WireIs::Gone);
        // It is woken to see that.
        drop(TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Carries what one end sends to the other.
fn carry(mut from: &TcpStream, mut to: &TcpStream, (known, number): (&Known, usize)) {
    from.set_read_timeout(Some(LOOK)).unwrap();
    let (mut piece, clock) = ([0; 16 << 10], SystemClock::new());
    loop {
        let is = known.is.load(Ordering::Acquire);
        if is == WireIs::Cut as u8 || is == WireIs::Gone as u8 {
            break;
        }
        if is == WireIs::Dead as u8 || number < known.dead.load(Ordering::Acquire) {
            clock.sleep(LOOK);
            continue;
        }
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) if to.write_all(&piece[..length]).is_ok() => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(_) | Err(_) => break,
        }
    }
    for end in [from, to] {
        drop(end.shutdown(Shutdown::Both));
    }
}
