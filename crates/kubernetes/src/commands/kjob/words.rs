//! What may be typed.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::super::images;

/// The file of settings.
pub(super) const SETTINGS: &str = "kjob-settings";
/// Whether only the version is asked for.
pub(super) const VERSION: &str = "kjob-version";
/// The name of a Job.
pub(super) const JOB: &str = "job-name";
/// The image.
pub(super) const IMAGE: &str = "image";
/// The flavor.
pub(super) const FLAVOR: &str = "resources-flavor";
/// Whether the words are the command of the container.
pub(super) const COMMAND: &str = "command";
/// Annotations.
pub(super) const ANNOTATIONS: &str = "annotations";
/// Variables.
pub(super) const ENV: &str = "env";
/// All jobs.
pub(super) const ALL: &str = "all";
/// A file.
pub(super) const FILE: &str = "file";
/// The target of whose cluster is told.
pub(super) const CLUSTER: &str = "cluster";
/// Words for the container.
pub(super) const WORDS: &str = "words";

/// How to begin.
pub(super) const EXAMPLES: &str = "\nExamples:\n  tpu kjob submit -i alpine -r no-gpu -- ls -al /\n  \
    tpu kjob list\n  tpu kjob logs -j NAME\n  tpu kjob delete -j NAME\n\nCalled by the name `kjobman`, tpu is the same.\n";

/// The name of the command, and that of a link to the program.
const NAMES: [&str; 2] = ["kjob", "kjobman"];

/// The command.
pub(super) fn command() -> Command {
    let [name, link] = NAMES;
    let about = "Run commands of the Kubernetes job manager";
    Command::new(name).alias(link).about(about).defer(define)
}

/// Adds what may be said.
fn define(command: Command) -> Command {
    let settings = Arg::new(SETTINGS).short('s').value_name("FILE").global(true).help(
        "Read only this settings file [default: ~/.jobman/settings.json, and the settings of tpu]",
    );
    let version = Arg::new(VERSION)
        .short('v')
        .long("version")
        .action(ArgAction::SetTrue)
        .help("Print the version");
    command.after_help(EXAMPLES.trim()).args([settings, version]).subcommands([
        images::of_images("images").about("List the images with their tags"),
        images::of_details("image-details").about("Show the description of an image"),
        Command::new("queue").about("Show the active Jobs by what they ask for").arg(
            Arg::new(CLUSTER)
                .long(CLUSTER)
                .value_name("TARGET")
                .num_args(0..=1)
                .default_missing_value("")
                .help("Target whose cluster is shown [default: the usual one]"),
        ),
        Command::new("submit").about("Submit a Job").args(of_submit()),
        Command::new("list").about("List the Jobs, the newest first"),
        Command::new("details").about("Show the whole object of a Job").arg(job().required(true)),
        Command::new("logs").about("Print what a Job has printed").arg(job().required(true)),
        Command::new("log").about("The same").hide(true).arg(job()),
        Command::new("delete")
            .about("Delete a Job, or all of them")
            .arg(job().required_unless_present(ALL).conflicts_with(ALL))
            .arg(Arg::new(ALL).long(ALL).action(ArgAction::SetTrue).help("All of them")),
        Command::new("resources-flavors").about("List the flavors"),
        Command::new("import").about("Import its settings").arg(
            Arg::new(FILE)
                .value_name("FILE")
                .help("Its settings [default: ~/.jobman/settings.json]"),
        ),
    ])
}

fn job() -> Arg {
    Arg::new(JOB).short('j').long(JOB).value_name("NAME").help("The name of the Job")
}

fn of_submit() -> [Arg; 7] {
    let option = |name: &'static str, letter, value, help| {
        Arg::new(name).short(letter).long(name).value_name(value).help(help)
    };
    [
        option(IMAGE, 'i', "IMAGE[:TAG]", "The image; without it the default"),
        job().help("Name of the Job [default: a generated one]"),
        option(
            FLAVOR,
            'r',
            "FLAVOR",
            "What it asks for: JSON, a file, or a name; without it the default",
        ),
        option(ANNOTATIONS, 'a', "JSON", "Annotations: names and values"),
        option(ENV, 'e', "NAME=VALUE", "A variable").action(ArgAction::Append),
        Arg::new(COMMAND)
            .short('c')
            .long(COMMAND)
            .action(ArgAction::SetTrue)
            .help("The words are the command, not arguments of the command of the image"),
        Arg::new(WORDS)
            .value_name("WORD")
            .last(true)
            .num_args(0..)
            .value_parser(value_parser!(OsString))
            .help("Words for the container"),
    ]
}

/// Whether something is lost.
pub(super) fn destroys(said: &ArgMatches) -> bool {
    said.subcommand_name() == Some("delete")
}

/// Options behind which a value stands.
const WITH_VALUE: [&str; 7] =
    ["-s", "--settings", "--data", "--user", "--tmux-socket", "--cloud", "--color"];

/// Its commands are written in any case, and its `--settings` is not ours.
pub(super) fn spelled(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = of_cluster(words);
    let mut is_value = false;
    // How many words were neither options nor values: the command, then that of its own.
    let mut named = 0;
    for word in words.iter_mut().take_while(|word| *word != "--") {
        let Some(text) = word.to_str() else { continue };
        if std::mem::replace(&mut is_value, WITH_VALUE.contains(&text)) {
            is_value = false;
            continue;
        }
        let spelled = match text.strip_prefix("--settings") {
            Some("") if named > 0 => "-s".to_owned(),
            Some(file) if named > 0 && file.starts_with('=') => format!("-s{file}"),
            _ if text.starts_with('-') => continue,
            _ if named == 0 && !NAMES.contains(&text) => break,
            _ if named == 1 => text.to_ascii_lowercase(),
            _ => text.to_owned(),
        };
        named += u32::from(!spelled.starts_with('-'));
        *word = OsString::from(spelled);
    }
    words
}

/// `tpu queue --cluster NAME` is about the queue of a cluster, and not about ours.
fn of_cluster(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut is_value = false;
    let is_command = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        let was_value = std::mem::replace(&mut is_value, WITH_VALUE.contains(&text));
        !was_value && !text.starts_with('-')
    };
    let Some(at) = words.iter().position(is_command) else { return words };
    let option = format!("--{CLUSTER}");
    let is_asked = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        text == option || text.strip_prefix(&option).is_some_and(|rest| rest.starts_with('='))
    };
    let behind = words.iter().skip(at).take_while(|word| *word != "--");
    if words.get(at).is_some_and(|word| word == "queue") && behind.into_iter().any(is_asked) {
        words.insert(at, OsString::from(NAMES[0]));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_in_any_case_and_its_settings_are_not_ours() {
        for (typed, meant) in [
            ("kjob LIST", "kjob list"),
            ("--data F kjob -s F Submit -i A -- LS", "--data F kjob -s F submit -i A -- LS"),
            (
                "--settings F kjob --settings G Delete -j Name",
                "--settings F kjob -s G delete -j Name",
            ),
            ("kjob Details -j X --settings=G", "kjob details -j X -s=G"),
            ("kjob --user Bob LOGS", "kjob --user Bob logs"),
            ("queue --cluster lab", "kjob queue --cluster lab"),
            (
                "--data queue queue --json --cluster=lab",
                "--data queue kjob queue --json --cluster=lab",
            ),
            ("queue alice -- x --cluster", "queue alice -- x --cluster"),
            ("run local queue --cluster", "run local queue --cluster"),
            ("run local kjob --settings G LIST", "run local kjob --settings G LIST"),
        ] {
            let words = typed.split(' ').map(OsString::from).collect();
            let meant: Vec<OsString> = meant.split(' ').map(OsString::from).collect();
            assert_eq!(spelled(words), meant, "{typed}");
        }
    }
}
