//! The wire between a user and the server: it can be cut, and it can go dead without anybody being told.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tpu::sys::clock::{Clock as _, SystemClock};

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

/// A wire to a server on this machine.
pub(super) struct Wire {
    port: u16,
    state: Arc<AtomicU8>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// To the server behind a port.
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(AtomicU8::new(WireIs::Whole as u8));
        let known = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let mut ends = Vec::new();
            for near in listener.incoming().flatten() {
                match known.load(Ordering::Acquire) {
                    is if is == WireIs::Gone as u8 => break,
                    is if is == WireIs::Cut as u8 => continue,
                    _ => {}
                }
                let far = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let known = Arc::clone(&known);
                    ends.push(std::thread::spawn(move || carry(&from, &to, &known)));
                }
            }
            for end in ends {
                end.join().unwrap();
            }
        });
        Self { port, state, thread: Some(thread) }
    }

    /// Where this end of it is.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// From now on it is so.
    pub(super) fn becomes(&self, is: WireIs) {
        self.state.store(is as u8, Ordering::Release);
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
fn carry(mut from: &TcpStream, mut to: &TcpStream, state: &AtomicU8) {
    from.set_read_timeout(Some(LOOK)).unwrap();
    let (mut piece, clock) = ([0; 16 << 10], SystemClock::new());
    loop {
        let is = state.load(Ordering::Acquire);
        if is == WireIs::Cut as u8 || is == WireIs::Gone as u8 {
            break;
        }
        if is == WireIs::Dead as u8 {
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
