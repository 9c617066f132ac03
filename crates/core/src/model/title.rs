//! What a command runs, in a few words: the title of a job without a name, as in `train.py lr=0.1`.

use std::collections::{HashMap, HashSet};

use crate::text;

/// A title is cut to so many columns.
const MOST: usize = 60;

/// More programs that run another one are not looked through.
const DEEPEST: usize = 8;

/// Characters that a shell does more with than to split words.
const OF_SHELL: &str = "$`|&;<>()*?[]{}#~!\n\\";

/// The script that a command runs, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The file name of the script, or the module.
    pub script: String,
    /// Its arguments, options as `key=value`.
    pub arguments: Vec<String>,
}

impl Runs {
    /// Reads a command; `None` if it has no words. Interpreters and programs that start another one are skipped.
    pub fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Self> {
        let words: Vec<&str> = words.into_iter().collect();
        let first = words.first()?;
        let (script, arguments) =
            script(&words, DEEPEST).unwrap_or_else(|| (file_name(first).to_owned(), Vec::new()));
        Some(Self { script, arguments })
    }
}

/// The titles of jobs that are shown together. Each comes with whether it counts among those of its script: an earlier
/// attempt does not. Where several of one script count, a title has the arguments that differ; else all of them.
pub fn titles<'r>(jobs: impl Iterator<Item = (&'r Runs, bool)> + Clone) -> Vec<String> {
    let mut counted: HashMap<&str, (usize, HashMap<&str, usize>)> = HashMap::new();
    for (runs, _) in jobs.clone().filter(|(_, counts)| *counts) {
        let (several, of_argument) = counted.entry(&runs.script).or_default();
        *several += 1;
        let each: HashSet<&str> = runs.arguments.iter().map(String::as_str).collect();
        for argument in each {
            *of_argument.entry(argument).or_default() += 1;
        }
    }
    let title = |runs: &Runs| {
        let differs = |argument: &&String| match counted.get(runs.script.as_str()) {
            Some((several, of_argument)) if *several > 1 => {
                of_argument.get(argument.as_str()) != Some(several)
            }
            _ => true,
        };
        let arguments = runs.arguments.iter().filter(differs);
        let words: Vec<&str> =
            std::iter::once(&runs.script).chain(arguments).map(String::as_str).collect();
        text::cut(&text::escape(&words.join(" ")), MOST).into_owned()
    };
    jobs.map(|(runs, _)| title(runs)).collect()
}

/// The script of a command and its arguments, below at most `deep` programs that run another one.
fn script(words: &[&str], deep: usize) -> Option<(String, Vec<String>)> {
    let (first, behind) = words.split_first()?;
    let below = |words: &[&str]| script(words, deep.checked_sub(1)?);
    if is_assignment(first) {
        return below(behind);
    }
    let name = file_name(first);
    match name {
        "env" => below(behind_options(behind, &["-u", "--unset", "-C", "--chdir"])),
        "nohup" | "time" | "exec" | "setsid" | "command" => below(behind_options(behind, &[])),
        "nice" => below(behind_options(behind, &["-n", "--adjustment"])),
        "ionice" => below(behind_options(behind, &["-c", "-n"])),
        "stdbuf" => below(behind_options(behind, &["-i", "-o", "-e"])),
        "timeout" => {
            below(behind_options(behind, &["-k", "--kill-after", "-s", "--signal"]).get(1..)?)
        }
        "uv" | "poetry" | "pipenv" | "pixi" | "hatch" | "rye" | "pdm" | "conda" | "mamba"
        | "micromamba" => match behind.split_first() {
            Some((&"run", behind)) => below(behind_options(behind, RUN_OPTIONS)),
            _ => Some(itself(name, behind)),
        },
        "torchrun" | "deepspeed" | "srun" | "mpirun" | "mpiexec" => launched(behind, deep),
        "accelerate" => match behind.split_first() {
            Some((&"launch", behind)) => launched(behind, deep),
            _ => Some(itself(name, behind)),
        },
        "bash" | "sh" | "zsh" | "dash" | "ksh" => shell(name, behind, deep),
        _ if is_python(name) => python(name, behind, deep),
        _ => Some(itself(name, behind)),
    }
}

/// Options of `uv run` and its like that take a value behind them.
const RUN_OPTIONS: &[&str] = &[
    "-n",
    "--name",
    "-p",
    "--prefix",
    "--cwd",
    "--python",
    "--with",
    "--project",
    "--directory",
    "--extra",
    "--group",
    "--package",
    "--env-file",
    "-e",
    "--environment",
];

/// Modules of Python that run another script.
const LAUNCHERS: &[&str] = &[
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
];

fn python(name: &str, words: &[&str], deep: usize) -> Option<(String, Vec<String>)> {
    match words {
        [] => Some(itself(name, &[])),
        ["-m", module, behind @ ..] if LAUNCHERS.contains(module) => launched(behind, deep),
        ["-m", module, behind @ ..] => Some(itself(module, behind)),
        ["-c", ..] => Some(itself(&format!("{name} -c"), &[])),
        ["-X" | "-W", _, behind @ ..] => python(name, behind, deep),
        [option, behind @ ..] if is_option(option) => python(name, behind, deep),
        [script, behind @ ..] => Some(itself(file_name(script), behind)),
    }
}

fn shell(name: &str, words: &[&str], deep: usize) -> Option<(String, Vec<String>)> {
    match words {
        [] => Some(itself(name, &[])),
        ["-o" | "+o", _, behind @ ..] => shell(name, behind, deep),
        [options, line, ..]
            if options.starts_with('-') && !options.starts_with("--") && options.contains('c') =>
        {
            let is_split_only = !line.contains(|c| OF_SHELL.contains(c));
            let split = shlex::split(line).filter(|_| is_split_only);
            let Some(split) = split else {
                let line = line.trim().lines().next().unwrap_or_default();
                return Some((line.to_owned(), Vec::new()));
            };
            let split: Vec<&str> = split.iter().map(String::as_str).collect();
            script(&split, deep.checked_sub(1)?)
        }
        [options, _, behind @ ..] if options.starts_with('-') && options.ends_with('o') => {
            shell(name, behind, deep)
        }
        [option, behind @ ..] if is_option(option) => shell(name, behind, deep),
        [script, behind @ ..] => Some(itself(file_name(script), behind)),
    }
}

/// What `torchrun` and its like run: options may have a value behind them, and nobody knows all of those.
fn launched(words: &[&str], deep: usize) -> Option<(String, Vec<String>)> {
    let is_program = |word: &str| {
        is_python(file_name(word))
            || word.starts_with("./")
            || [".py", ".sh"].iter().any(|end| word.ends_with(end))
    };
    match words {
        ["-m" | "--module", module, behind @ ..] => Some(itself(module, behind)),
        [option, value, behind @ ..]
            if is_option(option)
                && !option.contains('=')
                && !is_option(value)
                && !is_program(value) =>
        {
            launched(behind, deep)
        }
        [option, behind @ ..] if is_option(option) => launched(behind, deep),
        words => script(words, deep.checked_sub(1)?),
    }
}

fn itself(name: &str, arguments: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), items(arguments))
}

/// Arguments, an option and its value as one: `--lr 0.1` and `--lr=0.1` are `lr=0.1`.
fn items(words: &[&str]) -> Vec<String> {
    let mut items = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if !is_option(word) {
            items.push((*word).to_owned());
            continue;
        }
        let bare = word.trim_start_matches('-');
        let bare = bare.strip_prefix("config.").unwrap_or(bare);
        let value = words.next_if(|next| !bare.contains('=') && !is_option(next));
        match value {
            Some(value) => items.push(format!("{bare}={value}")),
            None if bare.contains('=') => items.push(bare.to_owned()),
            None => items.push((*word).to_owned()),
        }
    }
    // Where a restart goes on from is no part of what it runs.
    items.retain(|item| !item.starts_with("load_from="));
    items
}

/// The words behind the options at the front; those of `valued` have a value behind them.
fn behind_options<'a, 'w>(words: &'a [&'w str], valued: &[&str]) -> &'a [&'w str] {
    match words {
        ["--", behind @ ..] => behind,
        [option, _, behind @ ..] if valued.contains(option) => behind_options(behind, valued),
        [option, behind @ ..] if is_option(option) => behind_options(behind, valued),
        words => words,
    }
}

fn is_option(word: &str) -> bool {
    let first = word.strip_prefix('-').and_then(|behind| behind.chars().next());
    first.is_some_and(|c| !c.is_ascii_digit() && c != '.')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn file_name(word: &str) -> &str {
    let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if name.is_empty() { word } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(line: &str) -> Runs {
        let words = shlex::split(line).unwrap();
        Runs::of(words.iter().map(String::as_str)).unwrap()
    }

    fn alone(line: &str) -> String {
        titles([(&runs(line), true)].into_iter()).remove(0)
    }

    #[test]
    fn what_only_starts_a_script_is_skipped() {
        for (line, title) in [
            ("python3 -u src/train.py --lr 0.1 --fp16", "train.py lr=0.1 --fp16"),
            ("/usr/bin/python3.11 -W ignore train.py --lr=-1", "train.py lr=-1"),
            ("python -m lab.train --seed -3", "lab.train seed=-3"),
            ("python3 -c 'import x'", "python3 -c"),
            ("env -u A B=1 C=2 python train.py lr=0.1", "train.py lr=0.1"),
            ("bash -c 'A=1 python train.py --lr 0.1' bash", "train.py lr=0.1"),
            ("bash -euo pipefail -c 'exec python train.py'", "train.py"),
            ("bash -c 'cd a && python train.py'", "cd a && python train.py"),
            ("sh run.sh 7", "run.sh 7"),
            ("bash -e scripts/run.sh", "run.sh"),
            ("uv run --with torch train.py --lr 1", "train.py lr=1"),
            ("conda run -n lab python train.py", "train.py"),
            ("torchrun --standalone --nproc_per_node 4 train.py --lr 1", "train.py lr=1"),
            ("torchrun --nproc_per_node=4 -m lab.train", "lab.train"),
            ("accelerate launch --multi_gpu train.py", "train.py"),
            ("python -m torch.distributed.run --nnodes 2 train.py x", "train.py x"),
            ("srun -n 4 python train.py", "train.py"),
            ("mpirun -np 4 ./solve grid", "solve grid"),
            ("nohup timeout -k 5 60 nice -n 10 ./train", "train"),
            (
                "python train.py --config.model.depth=2 --config.load_from=/x",
                "train.py model.depth=2",
            ),
            ("python", "python"),
            ("uv sync", "uv sync"),
            ("env", "env"),
            ("bash -c ''", "bash"),
        ] {
            assert_eq!(alone(line), title, "{line}");
        }
        assert_eq!(Runs::of([]), None);
    }

    #[test]
    fn several_of_one_script_are_told_apart_by_what_differs() {
        let all = [
            ("python train.py --lr 0.1 --steps 9", true),
            ("python train.py --lr=0.2 --steps 9 --fp16", true),
            ("python train.py --lr=0.2 --steps 9 --fp16 --late", false),
            ("python eval.py --steps 9", true),
        ]
        .map(|(line, counts)| (runs(line), counts));
        let titles = titles(all.iter().map(|(runs, counts)| (runs, *counts)));
        let expected = [
            "train.py lr=0.1",
            "train.py lr=0.2 --fp16",
            "train.py lr=0.2 --fp16 --late",
            "eval.py steps=9",
        ];
        assert_eq!(titles, expected);
    }

    #[test]
    fn a_long_title_is_cut_and_nothing_reaches_a_terminal_as_it_is() {
        let long = alone(&format!("python train.py --text {}", "x".repeat(200)));
        assert_eq!(text::width(&long), MOST);
        assert!(!alone("python 'a\u{1b}[31m.py'").contains('\u{1b}'));
    }
}
