//! What the workers of a job say, in one window.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use tpu_core::text::transcript::Transcript;
use tpu_system::sys::clock::Clock;

use super::POLL;

/// A line of one of several workers that is longer (bytes) comes in pieces.
const LONGEST: usize = 2 << 20;

/// What is to be printed: a line with its end, and whose it is.
pub(super) struct Line {
    pub(super) worker: u32,
    pub(super) bytes: Vec<u8>,
}

/// Prints what is heard until everybody has ended: of one worker as it comes; of several in lines that say
/// whose they are, as the log would have them, for two bars cannot be drawn in one place. `look` is called
/// whenever nothing is heard for a moment.
pub(super) fn print(
    heard: &Receiver<Line>,
    clock: &dyn Clock,
    (out, several): (&mut dyn Write, bool),
    look: impl Fn(),
) {
    let mut speeches: BTreeMap<u32, Speech> = BTreeMap::new();
    let mut out = BufWriter::new(out);
    loop {
        // Nobody waits for what is there; nothing is flushed while more is there.
        let line = heard.try_recv().map_err(|_| drop(out.flush()));
        let Line { worker, bytes } = match line.or_else(|()| heard.recv_timeout(POLL)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                look();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if several {
            let speech = speeches.entry(worker).or_default();
            speech.transcript.take(&bytes, clock.monotonic(), &mut speech.lines);
            speech.print(worker, &mut out);
        } else {
            drop(out.write_all(&bytes));
        }
    }
    for (worker, speech) in &mut speeches {
        speech.transcript.end(&mut speech.lines);
        speech.print(*worker, &mut out);
    }
}

/// What one of several workers says.
#[derive(Default)]
struct Speech {
    transcript: Transcript,
    /// What came out of it; the last line may have no end yet.
    lines: Vec<u8>,
}

impl Speech {
    fn print(&mut self, worker: u32, out: &mut dyn Write) {
        if self.lines.len() > LONGEST && !self.lines.contains(&b'\n') {
            self.lines.push(b'\n');
        }
        let whole = self.lines.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let rest = self.lines.split_off(whole);
        for line in std::mem::replace(&mut self.lines, rest).split_inclusive(|b| *b == b'\n') {
            drop(write!(out, "[worker {worker}] "));
            drop(out.write_all(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use tpu_system::sys::clock::SystemClock;

    fn printed(lines: &[(u32, &[u8])], several: bool) -> String {
        let (say, heard) = channel();
        for (worker, bytes) in lines {
            say.send(Line { worker: *worker, bytes: bytes.to_vec() }).unwrap();
        }
        drop(say);
        let mut out = Vec::new();
        print(&heard, &SystemClock::new(), (&mut out, several), || {});
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn one_worker_draws_as_it_likes() {
        let lines: [(u32, &[u8]); 3] = [(0, b"1/9\r"), (0, b"\x1b[A9/9\r"), (0, b"end\n")];
        assert_eq!(printed(&lines, false), "1/9\r\u{1b}[A9/9\rend\n");
    }

    #[test]
    fn of_several_each_keeps_its_lines() {
        let lines: [(u32, &[u8]); 9] = [
            (0, b"1/9\r"),
            (1, b"1/9\r"),
            (0, b"2/9\r"),
            (1, b"\x1b[32mplain\x1b[0m\n"),
            (0, b"3/9\r"),
            (0, b"tpu: worker 0 does not answer\n"),
            (0, b"4/9\r"),
            (0, b"9/9\n"),
            (1, b"no end"),
        ];
        let expected = "[worker 0] 1/9\n[worker 1] 1/9\n[worker 1] plain\n\
                        [worker 0] tpu: worker 0 does not answer\n[worker 0] 9/9\n\
                        [worker 1] no end\n";
        assert_eq!(printed(&lines, true), expected);
    }
}
