//! What the number says that a command's shell answers at its end.

/// The signal that has ended a command whose shell answers `code`: 128 and its number, of which there are 64
/// (signal(7)). 255 is what ssh answers when the connection broke, and Python to `exit(-1)`: it says nothing
/// of a signal.
pub fn signal_of(code: i32) -> Option<i32> {
    (129..=192).contains(&code).then(|| code - 128)
}

/// `exit code 1`, `exit code 137 (SIGKILL)`, `exit code 162 (signal 34)`.
pub fn in_words(code: i32) -> String {
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
    fn a_number_is_told_with_its_signal_if_it_has_one() {
        assert_eq!(in_words(1), "exit code 1");
        assert_eq!(in_words(137), "exit code 137 (SIGKILL)");
        assert_eq!(in_words(162), "exit code 162 (signal 34)");
        assert_eq!(in_words(255), "exit code 255");
        assert_eq!(in_words(i32::MIN), format!("exit code {}", i32::MIN));
    }
}
