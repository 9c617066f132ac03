//! A line on the terminals that look at a session.

use super::{OneShot, TmuxError, commands, is_missing};

impl OneShot {
    pub(super) fn tell_all(&self, session: &str, line: &str) -> Result<usize, TmuxError> {
        let clients = match self.call(commands::clients(session)) {
            Ok(output) => output.text(),
            Err(TmuxError::NoServer { .. }) => return Ok(0),
            Err(error) if is_missing(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut told = 0;
        for client in clients.lines().filter(|client| !client.is_empty()) {
            // Whoever has gone in between is not told.
            match self.call(commands::tell(client, line)) {
                Ok(_) => told += 1,
                Err(TmuxError::Failed { message, .. }) if message.starts_with("can't find") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(told)
    }
}
