//! Whether the original's monitor is at work: by the processes of a machine, and by the log that it keeps in the data
//! file. It acts on the same jobs by rules of its own, and holds no lease.

use crate::model::time::Timestamp;

use super::answer;

/// The scripts of the original's monitor. `monitor.sh` starts `MONITOR.py` again whenever that ends.
pub const SCRIPTS: [&str; 2] = ["MONITOR.py", "monitor.sh"];

/// Shells that run a script which is their argument.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// Options of Python, and of shells, whose value is the next word.
const PYTHON_VALUES: [&str; 3] = ["-X", "-W", "--check-hash-based-pycs"];
const SHELL_VALUES: [&str; 5] = ["-o", "+o", "-O", "+O", "--rcfile"];

/// The script of the original's monitor that a process runs, by the words that it was started with. A process that only
/// names the script (an editor, `grep`, `tail -f`) does not run it.
pub fn script_of(words: &[String]) -> Option<&'static str> {
    let (program, rest) = words.split_first()?;
    // A login shell has a dash before its name.
    let program = base_name(program.strip_prefix('-').unwrap_or(program));
    let script = if is_python(program) {
        script_argument(rest, &PYTHON_VALUES, &['c', 'm'])?
    } else if SHELLS.contains(&program) {
        script_argument(rest, &SHELL_VALUES, &['c', 's'])?
    } else {
        program
    };
    SCRIPTS.into_iter().find(|name| *name == base_name(script))
}

fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The first word that is no option; none where an option of one of the letters `ends` says that the program is
/// elsewhere: in the next word, or in a module.
fn script_argument<'a>(words: &'a [String], values: &[&str], ends: &[char]) -> Option<&'a str> {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            return words.next();
        }
        if values.contains(&word) {
            words.next();
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let is_long = letters.starts_with('-') || values.iter().any(|of| word.starts_with(of));
            if !is_long && letters.chars().any(|letter| ends.contains(&letter)) {
                return None;
            }
        } else if !word.starts_with('+') {
            return Some(word);
        }
    }
    None
}

/// How long ago the original's monitor wrote to its log, if that is less than two of its rounds: `newest` is the time of
/// its newest entry, and it looks every so many seconds.
pub fn wrote_lately(newest: Timestamp, every_s: u32, now: Timestamp) -> Option<u64> {
    let is_ahead = newest.seconds_since(now) > answer::LIMIT_S;
    let age_s = now.seconds_since(newest);
    (!is_ahead && age_s < silent_after_s(every_s)).then_some(age_s)
}

/// After so many seconds without an entry in its log nothing says any more that it is at work.
pub fn silent_after_s(every_s: u32) -> u64 {
    2 * u64::from(every_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_the_script_is_the_monitor_and_who_only_names_it_is_not() {
        let table = [
            ("python MONITOR.py", Some("MONITOR.py")),
            ("python3 MONITOR.py --verbose", Some("MONITOR.py")),
            ("/usr/bin/python3.11 -u /home/lab/tpu_manager/MONITOR.py", Some("MONITOR.py")),
            ("python -X dev -W ignore -uB ./MONITOR.py", Some("MONITOR.py")),
            ("python -Wignore -- MONITOR.py", Some("MONITOR.py")),
            ("python3 -W module MONITOR.py", Some("MONITOR.py")),
            ("bash monitor.sh", Some("monitor.sh")),
            ("/bin/sh -ex /opt/lab/monitor.sh", Some("monitor.sh")),
            ("-bash monitor.sh", Some("monitor.sh")),
            ("bash -o pipefail --norc monitor.sh", Some("monitor.sh")),
            ("bash +x monitor.sh", Some("monitor.sh")),
            ("./MONITOR.py", Some("MONITOR.py")),
            ("/opt/lab/monitor.sh", Some("monitor.sh")),
            ("vim MONITOR.py", None),
            ("grep -n lock MONITOR.py", None),
            ("tail -f MONITOR.py", None),
            ("less monitor.sh", None),
            ("python check.py MONITOR.py", None),
            ("python -m py_compile MONITOR.py", None),
            ("python3 -Bc print() MONITOR.py", None),
            ("python", None),
            ("python -", None),
            ("bash -c python MONITOR.py", None),
            ("bash -lc monitor.sh", None),
            ("bash", None),
            ("python MY_MONITOR.py", None),
            ("python monitor.py", None),
            ("bash MONITOR.py.sh", None),
            ("pythonic MONITOR.py", None),
            ("", None),
        ];
        for (line, runs) in table {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(script_of(&words), runs, "{line}");
        }
    }

    #[test]
    fn its_log_speaks_for_two_of_its_rounds() {
        let at = Timestamp::from_second;
        let table = [
            (1_000, 600, 1_000, Some(0)),
            (1_000, 600, 2_199, Some(1_199)),
            (1_000, 600, 2_200, None),
            (1_000, 30, 1_059, Some(59)),
            (1_000, 30, 1_060, None),
            // Another clock is a little ahead; what is far ahead was written by one that is wrong.
            (1_000, 600, 940, Some(0)),
            (1_000, 600, 900, None),
            (1_000, 0, 1_000, None),
        ];
        for (newest, every_s, now, age_s) in table {
            let case = format!("{newest}, {every_s}, {now}");
            assert_eq!(wrote_lately(at(newest), every_s, at(now)), age_s, "{case}");
        }
    }
}
