//! A flaw that users' own scripts have: what they start on workers may be started twice.

use std::path::{Path, PathBuf};

use tpu_system::sys::files;

/// Words that show that a script takes care of it: our launch token, a lock, our own way to workers.
const CAREFUL: [&str; 4] = ["TPU_LAUNCH", "flock -n", "tpu ssh", "tpu lian"];
/// The longest script that is read.
const LONGEST: u64 = 1 << 20;

/// A script that may start its command twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFlaw {
    /// The script.
    pub path: PathBuf,
    /// The line of the command, from 1.
    pub line: usize,
}

/// Looks through the scripts of a directory, not below it. What cannot be read has no flaw that we know of.
pub fn look(dir: &Path) -> Vec<ScriptFlaw> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        path.extension().is_some_and(|end| end == "sh")
            && path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LONGEST)
    });
    paths.sort_unstable();
    let flaw = |path: PathBuf| {
        let bytes = files::read(&path).ok()?;
        let line = line_of(&String::from_utf8_lossy(&bytes))?;
        Some(ScriptFlaw { path, line })
    };
    paths.into_iter().filter_map(flaw).collect()
}

/// The first line on which a script has gcloud run a command on workers. gcloud runs it again, up to ten
/// times, when the connection breaks (measured: reference/gcloud.md §2.8).
fn line_of(script: &str) -> Option<usize> {
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let code = || script.lines().enumerate().filter(|(_, line)| !is_comment(line));
    if code().any(|(_, line)| CAREFUL.iter().any(|word| line.contains(word))) {
        return None;
    }
    let mut command = String::new();
    let mut first = 0;
    for (number, line) in code() {
        if command.is_empty() {
            first = number + 1;
        }
        if let Some(part) = line.trim_end().strip_suffix('\\') {
            command += part;
            continue;
        }
        command += line;
        let words: Vec<&str> = command.split_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        if has("gcloud") && has("ssh") && words.iter().any(|word| word.starts_with("--command")) {
            return Some(first);
        }
        command.clear();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_over_gcloud_is_found_wherever_it_begins() {
        let script = "#!/bin/bash\n# gcloud compute tpus tpu-vm ssh X --command Y\n\
            gcloud compute tpus tpu-vm ssh $VM_NAME --zone $ZONE \\\n  --worker=all \\\n  \
            --command \"${cmd}\" 2>&1 | tee -a log\n";
        assert_eq!(line_of(script), Some(3));
        assert_eq!(line_of("x=1\ngcloud compute tpus tpu-vm ssh V --command=ls\n"), Some(2));
    }

    #[test]
    fn what_is_no_command_or_is_taken_care_of_is_none() {
        for script in [
            "gcloud compute tpus tpu-vm ssh $VM_NAME --zone $ZONE\n",
            "gcloud compute tpus tpu-vm describe V --command x\n",
            "tpu ssh \"$VM_NAME\" all --command \"$cmd\"\n",
            "gcloud compute tpus tpu-vm ssh V --command \"mkdir /tmp/$TPU_LAUNCH || exit; x\"\n",
            include_str!("../../../../assets/example/run_remote.sh"),
            include_str!("../../../../assets/example/staging.sh"),
            include_str!("../../../../assets/example/ka.sh"),
        ] {
            assert_eq!(line_of(script), None, "{script}");
        }
    }
}
