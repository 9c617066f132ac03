//! `conda activate` in a command of bash.
//!
//! At a terminal `conda` is a function, and no shell exports it: a bash that a job starts finds the program of that name,
//! which can activate nothing. So the bash of a command reads conda's functions first, from a file that `BASH_ENV` names.
//! A command starts from exactly the variables that its shell exported: the first line of that file removes `BASH_ENV`
//! again, so that neither the command nor what it starts has a variable that nobody exported.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tpu_engine::runner::environment::{Variables, set};
use tpu_system::store::atomic;
use tpu_system::store::disk::OsDisk;

/// Read by a bash that is no terminal's, before its first command (`bash(1)`, INVOCATION).
const READ_FIRST: &str = "BASH_ENV";

/// Gives the bash of a command the functions of the conda that its variables name. `state` is the directory of its launch.
/// Where its shell exported `BASH_ENV` itself, that stays.
pub fn add_functions(vars: &mut Variables, words: &[OsString], state: &Path) {
    let Some(functions) = functions(vars, words) else { return };
    let Some(quoted) = functions.to_str().and_then(|path| shlex::try_quote(path).ok()) else {
        return;
    };
    let text = format!("unset {READ_FIRST}\n. {quoted} || :\n");
    let file = state.join("conda.sh");
    // Without the file the command says itself what it lacks.
    if atomic::write_file(&OsDisk, &file, text.as_bytes(), 0o600).is_ok() {
        set(vars, READ_FIRST, file);
    }
}

/// The file with the functions of conda that a command needs: it is a bash, and its variables say where conda is.
fn functions(vars: &Variables, words: &[OsString]) -> Option<PathBuf> {
    let var = |wanted: &str| vars.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let is_bash = Path::new(words.first()?).file_name() == Some(OsStr::new("bash"));
    if !is_bash || var(READ_FIRST).is_some() {
        return None;
    }
    let functions = Path::new(var("CONDA_EXE")?).parent()?.join("../etc/profile.d/conda.sh");
    (functions.is_absolute() && functions.is_file()).then_some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bash_that_knows_of_a_conda_reads_its_functions() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("bin")).unwrap();
        std::fs::create_dir_all(root.path().join("etc/profile.d")).unwrap();
        drop(std::fs::File::create(root.path().join("etc/profile.d/conda.sh")).unwrap());
        let exe = root.path().join("bin/conda").into_os_string();
        let conda = || vec![(OsString::from("CONDA_EXE"), exe.clone())];
        let is_read = |mut vars: Variables, program: &str| {
            add_functions(&mut vars, &[program.into(), "-c".into()], root.path());
            let file = root.path().join("conda.sh").into_os_string();
            vars.iter().any(|(name, value)| name == READ_FIRST && *value == file)
        };
        assert!(is_read(conda(), "bash") && is_read(conda(), "/usr/bin/bash"));
        assert!(!is_read(conda(), "python3") && !is_read(conda(), "sh"));
        assert!(!is_read(Vec::new(), "bash"));
        assert!(!is_read(vec![("CONDA_EXE".into(), "bin/conda".into())], "bash"), "no whole path");
        assert!(!is_read(vec![("CONDA_EXE".into(), "/nowhere/bin/conda".into())], "bash"));
        let own = [conda(), vec![(READ_FIRST.into(), "own.sh".into())]].concat();
        assert!(!is_read(own, "bash"), "what the shell exported stays");
    }
}
