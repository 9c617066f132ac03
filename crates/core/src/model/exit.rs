//! How a command ended, as far as its exit code tells: what the number says depends on whose it is.

use std::fmt;

use super::launch::LaunchMode;

/// An exit code that knows whose it is.
///
/// A script may end with another code than the program that it ran: `train.py | tee log`, a `cd` behind it. So
/// its 0 says only that it is over. How the program ended is then not known, which is neither a good end nor
/// none, and the text has the word. Its other codes are a hint that something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The program's own.
    Program(i32),
    /// That of a script around the program.
    Script(i32),
}

impl Exit {
    /// The code with which a launch of this kind ended. A record without a launch is the original's, which knew
    /// scripts only.
    pub fn of(mode: Option<LaunchMode>, code: i32) -> Self {
        match mode {
            Some(LaunchMode::Native) => Self::Program(code),
            Some(LaunchMode::Script) | None => Self::Script(code),
        }
    }

    /// The number, whoever gave it.
    pub fn code(self) -> i32 {
        match self {
            Self::Program(code) | Self::Script(code) => code,
        }
    }

    /// Whether it proves a good end.
    pub fn is_success(self) -> bool {
        self == Self::Program(0)
    }

    /// Whether it says that something failed.
    pub fn is_failure(self) -> bool {
        self.code() != 0
    }

    /// The number with its signal, whoever gave it: `exit code 137 (SIGKILL)`.
    pub fn in_words(self) -> String {
        in_words(self.code())
    }

    /// The signal that it tells of.
    pub fn signal(self) -> Option<i32> {
        signal_of(self.code())
    }
}

/// `exit code 1`, `exit code 0 of the script`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words())?;
        match self {
            Self::Program(_) => Ok(()),
            Self::Script(_) => f.write_str(" of the script"),
        }
    }
}

/// The signal that has ended a command whose shell answers `code`: 128 and its number, of which there are 64
/// (signal(7)). 255 is what ssh answers when the connection broke, and Python to `exit(-1)`: it says nothing
/// of a signal.
fn signal_of(code: i32) -> Option<i32> {
    (129..=192).contains(&code).then(|| code - 128)
}

/// `exit code 1`, `exit code 137 (SIGKILL)`, `exit code 162 (signal 34)`.
fn in_words(code: i32) -> String {
    let Some(signal) = signal_of(code) else { return format!("exit code {code}") };
    match name_of(signal) {
        Some(name) => format!("exit code {code} ({name})"),
        None => format!("exit code {code} (signal {signal})"),
    }
}

/// The names of those signals that end programs in practice.
fn name_of(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_proves_its_own_good_end() {
        let script = Exit::of(Some(LaunchMode::Script), 0);
        let program = Exit::of(Some(LaunchMode::Native), 0);
        assert!(program.is_success() && !program.is_failure());
        assert!(!script.is_success() && !script.is_failure(), "how it ended is not known");
        assert_eq!(Exit::of(None, 0), script, "the original ran scripts");
        for exit in [Exit::Program(3), Exit::Script(3)] {
            assert!(exit.is_failure() && !exit.is_success());
        }
    }

    #[test]
    fn a_number_is_told_with_its_signal_if_it_has_one() {
        assert_eq!(in_words(1), "exit code 1");
        assert_eq!(in_words(137), "exit code 137 (SIGKILL)");
        assert_eq!(in_words(162), "exit code 162 (signal 34)");
        assert_eq!(in_words(255), "exit code 255");
        assert_eq!(in_words(i32::MIN), format!("exit code {}", i32::MIN));
    }
}
