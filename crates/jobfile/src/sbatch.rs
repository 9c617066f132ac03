//! A batch script of Slurm as a job of ours: its `#SBATCH` lines become keys, or options of the target, and what follows
//! them is the command.
//!
//! Source of the options: `sbatch(1)`, and how it reads them: from the top of the script to its first command, words as a
//! shell parts them, long names with `=` or a blank, short ones with or without.

mod mail;
mod table;

use tpu_core::text::either;

use super::BadFile;
use super::converted::{ConversionNote, Converted};
use super::own::{Place, literal};
use super::yaml::{Yaml, YamlValue};
use table::Becomes::{self, HandedOn, Nothing, OfTarget, Own};
use table::OPTIONS;

/// An option as a script says it.
struct Said {
    line: u64,
    name: String,
    value: Option<String>,
    becomes: Becomes,
}

/// What begins the options of other schedulers.
const OTHERS: [&str; 2] = ["#PBS", "#BSUB"];

/// Shells whose text a command may be.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];

/// What is said of a job bit by bit.
#[derive(Default)]
struct Job {
    name: Option<Yaml>,
    partition: Vec<Yaml>,
    of_target: Vec<(String, Yaml)>,
    handed_on: Vec<Yaml>,
    members: Vec<(String, Yaml)>,
    workplace: Option<Yaml>,
    mail: mail::Mail,
    notes: Vec<ConversionNote>,
}

/// Reads a batch script.
pub fn read(text: &str) -> Result<Converted, BadFile> {
    let mut job = Job::default();
    let interpreter = interpreter(text, &mut job)?;
    let (said, body) = parted(text, &mut job)?;
    for one in said {
        job.take(one)?;
    }
    mail::tell(&mut job);
    let command = job.command(&body, &interpreter)?;
    Ok(job.converted(command))
}

fn bad(line: u64, what: impl Into<String>, hint: impl Into<String>) -> BadFile {
    BadFile::new(line, "", what, hint).at_column(1)
}

fn yaml(line: u64, value: YamlValue) -> Yaml {
    Yaml { line, column: 1, key: None, value }
}

fn word(line: u64, text: impl AsRef<str>) -> Yaml {
    yaml(line, YamlValue::Text(literal(text.as_ref())))
}

/// The words of the first line: what reads the script.
fn interpreter(text: &str, job: &mut Job) -> Result<Vec<String>, BadFile> {
    let first = text.lines().next().unwrap_or_default();
    let Some(said) = first.strip_prefix("#!") else {
        return Err(bad(
            1,
            "it is no batch script: its first line does not say what reads it",
            "as in #!/bin/bash",
        ));
    };
    let mut words: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    if words.first().is_some_and(|program| program.ends_with("/env")) {
        words.remove(0);
        words.retain(|word| word != "-S");
    }
    let program = words.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    let Some(shell) = program.filter(|program| SHELLS.contains(program)).map(str::to_owned) else {
        let what = format!("it is a script for '{}'", program.unwrap_or_default());
        let hint =
            format!("read are those for {}; of others: command: [PROGRAM, FILE]", either(&SHELLS));
        return Err(bad(1, what, hint));
    };
    if words.len() > 1 {
        job.note(1, "#!", "its command is a list of words, so that the shell has its options");
    }
    if let Some(program) = words.first_mut() {
        *program = shell;
    }
    Ok(words)
}

/// A line with its number.
type Line<'a> = (u64, &'a str);

/// The options, and the lines that are no such.
fn parted<'a>(text: &'a str, job: &mut Job) -> Result<(Vec<Said>, Vec<Line<'a>>), BadFile> {
    let (mut said, mut body, mut is_over) = (Vec::new(), Vec::new(), false);
    for (number, line) in (1_u64..).zip(text.lines()) {
        let Some(options) = line.strip_prefix("#SBATCH") else {
            if let Some(mark) = OTHERS.into_iter().find(|mark| line.starts_with(mark)) {
                job.note(number, mark, "left out: it is for another scheduler");
            }
            let is_comment = line.trim_start().starts_with('#') || line.trim().is_empty();
            is_over |= !is_comment;
            if number > 1 {
                body.push((number, line));
            }
            continue;
        };
        if is_over {
            job.note(
                number,
                "#SBATCH",
                "left out, as sbatch does: it stands below the first command",
            );
            continue;
        }
        said.extend(options_of(number, options)?);
    }
    Ok((said, body))
}

/// The options of one line.
fn options_of(line: u64, text: &str) -> Result<Vec<Said>, BadFile> {
    let unread = || bad(line, "its words cannot be parted: a quote is open", "close it");
    let words = shlex::split(text).ok_or_else(unread)?;
    let mut words = words.into_iter().peekable();
    let mut all = Vec::new();
    while let Some(typed) = words.next() {
        if typed == "hetjob" || typed == "packjob" {
            let what = "it asks for several kinds of machines at once";
            return Err(bad(line, what, "write a job for each, parted by ---"));
        }
        let (name, value, known) = if let Some(long) = typed.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            };
            let known = OPTIONS.iter().find(|option| option.name == name);
            (name, value, known)
        } else {
            let letter = typed.strip_prefix('-').and_then(|rest| rest.chars().next());
            let known = OPTIONS.iter().find(|option| letter.is_some() && option.short == letter);
            let Some(known) = known else {
                let hint = "as in #SBATCH --time=2:00:00";
                return Err(bad(line, format!("'{typed}' is no option of sbatch"), hint));
            };
            let rest: String = typed.chars().skip(2).collect();
            let value = Some(rest.trim_start_matches('=').to_owned());
            (known.name.to_owned(), value.filter(|value| !value.is_empty()), Some(known))
        };
        let takes_value = known.is_none_or(|option| option.takes_value);
        // An option that nobody knows here may be a flag, before another one.
        let has_next = |next: &String| known.is_some() || !next.starts_with('-');
        let value = match value {
            None if takes_value => words.next_if(has_next),
            value => value,
        };
        if known.is_some() && takes_value && value.is_none() {
            let what = format!("--{name} has no value");
            return Err(bad(line, what, format!("as in #SBATCH --{name}=VALUE")));
        }
        let becomes = known.map_or(HandedOn, |option| option.becomes);
        all.push(Said { line, name, value, becomes });
    }
    Ok(all)
}

impl Job {
    fn note(&mut self, line: u64, field: &str, what: impl Into<String>) {
        let place: Place = (line, 1);
        self.notes.push(ConversionNote { place, field: field.to_owned(), what: what.into() });
    }

    fn say(&mut self, key: &str, value: Yaml) {
        self.members.retain(|(known, _)| known != key);
        self.members.push((key.to_owned(), value));
    }

    /// What becomes of one option; of several of one name the last holds, as for sbatch.
    fn take(&mut self, said: Said) -> Result<(), BadFile> {
        let Said { line, name, value, becomes } = said;
        let shown = format!("--{name}");
        match becomes {
            Nothing(why) => self.note(line, &shown, why),
            OfTarget => {
                self.of_target.retain(|(known, _)| *known != name);
                self.of_target.push((name, word(line, value.unwrap_or_default())));
            }
            HandedOn => {
                let text = value.map_or_else(|| name.clone(), |value| format!("{name}={value}"));
                self.handed_on.push(word(line, text));
            }
            Own => return self.take_own(line, &name, &value.unwrap_or_default()),
        }
        Ok(())
    }

    fn take_own(&mut self, line: u64, name: &str, value: &str) -> Result<(), BadFile> {
        match name {
            "job-name" => self.name = Some(word(line, value)),
            "partition" => {
                self.partition = value.split(',').map(|one| word(line, one)).collect();
                let what = format!(
                    "target: is a target of that name, made of the partition once by: tpu register {0} --kind slurm \
                     --partition {0}",
                    self.partition.first().and_then(Yaml::text).unwrap_or("NAME")
                );
                self.note(line, "--partition", what);
            }
            "array" => {
                let members = members(value).ok_or_else(|| {
                    bad(line, format!("--array={value}: these are no members"), "as in 0-15:4%2")
                })?;
                self.say("array", word(line, members));
            }
            "output" => self.output(line, value),
            "input" => self.say("stdin", word(line, value)),
            "chdir" if value.starts_with('/') || value.starts_with("~/") => {
                self.workplace = Some(word(line, value));
            }
            "chdir" => {
                self.note(
                    line,
                    "--chdir",
                    format!("left out: '{value}' is no whole path; dir: with code: none is one"),
                );
            }
            "comment" => self.say("notes", word(line, value)),
            "hold" => self.say("hold", word(line, "true")),
            "mail-user" | "mail-type" => self.mail.take(line, name, value),
            "requeue" => {
                let rules = vec![("preempted".to_owned(), word(line, "rerun"))];
                self.say("rules", yaml(line, YamlValue::Map(rules)));
                self.note(
                    line,
                    "--requeue",
                    "rules: {preempted: rerun}; resume goes on from a checkpoint",
                );
            }
            _ => self.exported(line, value),
        }
        Ok(())
    }

    /// A second place for what it prints; the first is the log that every job has.
    fn output(&mut self, line: u64, value: &str) {
        let plain = value.replace("%%", "");
        if value == "/dev/null" {
            self.note(
                line,
                "--output",
                "left out: output.log of its log directory holds what it prints",
            );
        } else if plain.contains('%') {
            let what = format!(
                "left out: '{value}' is filled in by Slurm; output.log of its log directory holds the same"
            );
            self.note(line, "--output", what);
        } else {
            self.say("output", word(line, value.replace("%%", "%")));
        }
    }

    fn exported(&mut self, line: u64, value: &str) {
        let mut variables = Vec::new();
        let mut is_noted = false;
        for one in value.split(',') {
            match one.split_once('=') {
                Some((name, value)) => variables.push((name.to_owned(), word(line, value))),
                None => is_noted = true,
            }
        }
        if is_noted {
            let what = "of the caller's variables those are kept that `tpu help run` names; say others as env:";
            self.note(line, "--export", what);
        }
        if !variables.is_empty() {
            self.say("env", yaml(line, YamlValue::Map(variables)));
        }
    }

    /// The command: what is left of the script.
    fn command(&mut self, body: &[Line<'_>], interpreter: &[String]) -> Result<Yaml, BadFile> {
        let is_blank = |line: &Line<'_>| line.1.trim().is_empty();
        let from = body.iter().position(|line| !is_blank(line));
        let to = body.iter().rposition(|line| !is_blank(line));
        let lines = from.zip(to).and_then(|(from, to)| body.get(from..=to)).unwrap_or_default();
        let first = lines.iter().find(|(_, line)| !line.trim_start().starts_with('#'));
        let Some((begin, _)) = first else {
            return Err(bad(
                1,
                "there is no command in it",
                "what follows its options is the command",
            ));
        };
        let mut text = String::new();
        for (number, line) in lines {
            let line = self.without_srun(*number, line);
            if line.contains("SLURM_ARRAY_TASK_ID") {
                self.note(
                    *number,
                    "SLURM_ARRAY_TASK_ID",
                    "TPU_MEMBER, which is so on every target",
                );
            }
            text += &line.replace("SLURM_ARRAY_TASK_ID", "TPU_MEMBER");
            text.push('\n');
        }
        Ok(match interpreter {
            [shell] if shell == "bash" => word(*begin, text),
            words => {
                let words = words.iter().map(String::as_str).chain(["-c", &text]);
                yaml(*begin, YamlValue::List(words.map(|one| word(*begin, one)).collect()))
            }
        })
    }

    /// A line without the srun that begins it: tpu starts the whole command by one, once for each task.
    fn without_srun(&mut self, number: u64, line: &str) -> String {
        let bare = line.trim_start();
        let Some(rest) = bare.strip_prefix("srun ").map(str::trim_start) else {
            if bare.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "srun")
                && !bare.starts_with('#')
            {
                self.note(number, "srun", "as it is: tpu starts the whole command by srun, once for each task; take it out");
            }
            return line.to_owned();
        };
        if rest.starts_with('-') {
            let what = "as it is, for its options: tpu starts the whole command by srun, once for each task; say them as \
                        options of the target, and take it out";
            self.note(number, "srun", what);
            return line.to_owned();
        }
        self.note(
            number,
            "srun",
            "taken out: tpu starts the whole command by srun, once for each task",
        );
        let indent = line.len() - bare.len();
        format!("{}{rest}", " ".repeat(indent))
    }

    fn converted(mut self, command: Yaml) -> Converted {
        let line = command.line;
        let mut partition = std::mem::take(&mut self.partition);
        let named = match partition.pop() {
            Some(only) if partition.is_empty() => only,
            Some(last) => {
                partition.push(last);
                yaml(line, YamlValue::List(partition))
            }
            None => {
                let what = "it names no partition: write the name of a target instead of `slurm`";
                self.note(1, "target", what);
                word(line, "slurm")
            }
        };
        let mut target = vec![("slurm".to_owned(), named)];
        target.append(&mut self.of_target);
        if !self.handed_on.is_empty() {
            let handed_on = std::mem::take(&mut self.handed_on);
            target.push(("sbatch".to_owned(), yaml(line, YamlValue::List(handed_on))));
        }
        let mut document = Vec::new();
        document.extend(self.name.take().map(|name| ("name".to_owned(), name)));
        document.push(("target".to_owned(), yaml(line, YamlValue::Map(target))));
        if let Some(dir) = self.workplace.take() {
            document.push(("dir".to_owned(), dir));
            document.push(("code".to_owned(), word(line, "none")));
        } else {
            let what = "a copy of the directory of the file, as it is when it is submitted; sbatch runs it where you are";
            self.note(1, "code", what);
            document.push(("code".to_owned(), word(line, ".")));
        }
        document.push(("command".to_owned(), command));
        document.append(&mut self.members);
        self.notes.sort_by_key(|note| note.place);
        Converted { document: yaml(1, YamlValue::Map(document)), notes: self.notes }
    }
}

/// Members as we write them: a step is written out.
fn members(typed: &str) -> Option<String> {
    let (list, limit) = match typed.split_once('%') {
        Some((list, limit)) => (list, format!("%{limit}")),
        None => (typed, String::new()),
    };
    let mut all: Vec<String> = Vec::new();
    for part in list.split(',') {
        let Some((range, step)) = part.split_once(':') else {
            all.push(part.to_owned());
            continue;
        };
        let (from, to) = range.split_once('-')?;
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        let step: usize = step.parse().ok().filter(|step| *step > 0)?;
        all.extend((from..=to).step_by(step).take(MOST_MEMBERS).map(|index| index.to_string()));
    }
    Some(all.join(",") + &limit)
}

/// No group of ours has more.
const MOST_MEMBERS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::{Given, KindKey, KindWords, read as read_own};
    use crate::yaml;

    fn written(text: &str) -> (String, Vec<String>) {
        let Converted { document, notes } = read(text).unwrap();
        let notes =
            notes.iter().map(|note| format!("{} {}: {}", note.place.0, note.field, note.what));
        let file = yaml::written(std::slice::from_ref(&document));
        let options = ["time", "nodes", "ntasks", "gres", "account", "qos", "signal"];
        let mut options: Vec<_> = options.iter().map(|name| KindKey::plain(name, false)).collect();
        options.push(KindKey::plain("sbatch", true));
        let kinds = [KindWords { word: "slurm".to_owned(), options }];
        let given = Given { set: &[], kinds: &kinds };
        assert!(read_own(&file, &given).is_ok(), "{file}\n{:?}", read_own(&file, &given));
        (file, notes.collect())
    }

    #[test]
    fn options_in_each_spelling_become_keys() {
        let (file, notes) = written(
            "#!/bin/bash\n#SBATCH -J train -p gpu # which\n#SBATCH --time 2:00:00\n#SBATCH -N2 --ntasks=4\n\
             #SBATCH --array=0-6:2%2\n#SBATCH --gpus-per-node=4 --exclusive\n#SBATCH --constraint='a100&big'\n\
             #SBATCH -D /data/run -o run.out\n#SBATCH --export=ALL,LR=1e-3 --mail-type=END\n\n\
             module load cuda\nsrun python train.py --fmt '{{x}}' $SLURM_ARRAY_TASK_ID\n",
        );
        for said in [
            "name: train\n",
            "  slurm: gpu\n",
            "  time: \"2:00:00\"\n",
            "  nodes: 2\n",
            "  ntasks: 4\n",
            "  - gpus-per-node=4\n  - exclusive\n  - constraint=a100&big\n",
            "dir: /data/run\ncode: none\n",
            "  LR: ",
            "  python train.py",
            "$TPU_MEMBER",
            "output: run.out\n",
        ] {
            assert!(file.contains(said), "{said}\n{file}");
        }
        assert!(
            file.contains("array: 0,2,4,6%2\n") || file.contains("array: \"0,2,4,6%2\"\n"),
            "{file}"
        );
        let all = notes.join("\n");
        for told in [
            "2 --partition",
            "9 --export",
            "9 --mail-type",
            "12 srun: taken out",
            "12 SLURM_ARRAY_TASK_ID",
        ] {
            assert!(all.contains(told), "{told}\n{all}");
        }
    }

    #[test]
    fn what_sbatch_does_not_read_is_told() {
        let (file, notes) = written("#!/bin/sh -e\necho a\n#SBATCH --time=1\n");
        assert!(
            !file.contains("time") && file.contains("- sh\n- '-e'\n- '-c'\n")
                || file.contains("- -e\n"),
            "{file}"
        );
        assert!(notes.iter().any(|note| note.starts_with("3 #SBATCH: left out")), "{notes:?}");
        for (text, says) in [
            ("echo a\n", "no batch script"),
            ("#!/usr/bin/env python3\nprint(1)\n", "for 'python3'"),
            ("#!/bin/bash\n#SBATCH --time\necho\n", "--time has no value"),
            ("#!/bin/bash\n#SBATCH -Z\necho\n", "no option of sbatch"),
            ("#!/bin/bash\n#SBATCH --comment='x\necho\n", "a quote is open"),
            ("#!/bin/bash\n#SBATCH hetjob\necho\n", "several kinds"),
            ("#!/bin/bash\n#SBATCH --array=a:2\necho\n", "no members"),
            ("#!/bin/bash\n# nothing\n", "no command"),
        ] {
            let bad = read(text).unwrap_err();
            assert!(
                bad.what.contains(says) && bad.line.is_some() && !bad.hint.is_empty(),
                "{bad:?}"
            );
        }
    }
}
