//! What is typed behind `:`: commands of the screen, and every command of `tpu`.

use super::rows::Group;
use super::theme::BUILT_IN;
use super::view::columns;

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Nothing.
    Nothing,
    /// Another theme.
    Theme(String),
    /// The order by a column; `None` is that of the file.
    Sort(Option<String>),
    /// The groups.
    Group(Group),
    /// Another user's jobs, or everybody's.
    User(Vec<String>),
    /// The help.
    Help,
    /// To leave.
    Quit,
    /// A command that needs the terminal.
    Foreground(Vec<String>),
    /// A command that destroys something, and whether it can say what without doing it.
    Destroy(Vec<String>, bool),
    /// Any other command.
    Command(Vec<String>),
}

/// The commands of the screen itself, with what each does.
pub const OWN: [(&str, &str); 7] = [
    ("theme", "another look: dark, light, …"),
    ("sort", "by a column: sort age; sort file"),
    ("group", "by target, by directory, or none"),
    ("user", "another user's jobs; user all for everybody's"),
    ("keys", "the keys that work here"),
    ("quit", "leave; the jobs go on"),
    ("q", "leave; the jobs go on"),
];

/// Commands that need the terminal, and the word that makes it so where not every use does.
const FOREGROUND: [(&str, &[&str]); 10] = [
    ("attach", &[]),
    ("demo", &[]),
    ("demo-train", &[]),
    ("launcher", &[]),
    ("maj", &[]),
    ("wait", &[]),
    ("logs", &["-f", "--follow"]),
    ("daemon", &["run"]),
    ("sim", &["serve"]),
    ("run", &["--ask-notes", "-ssn"]),
];

/// Commands that destroy something: the screen asks before it runs them. `true` for those with `--dry-run`.
const DESTROY: [(&str, bool); 17] = [
    ("kill", true),
    ("kill-window", true),
    ("clean", true),
    ("clear-finished", false),
    ("clear-error", false),
    ("clear-all", false),
    ("clear-zombie-windows", false),
    ("clear-zombie-jobs", false),
    ("clear-monitor-log", false),
    ("del-user", false),
    ("del-registered", false),
    ("reset-settings", false),
    ("reapply", true),
    ("solve", true),
    ("delete", false),
    ("stop", false),
    ("restart", false),
];

/// Reads a line. The error says what cannot be read.
pub fn parse(line: &str) -> Result<Typed, String> {
    let words = shlex::split(line).ok_or("a quote is not closed")?;
    // Whoever is used to typing `tpu kill 7` may go on doing so.
    let words = match words.split_first() {
        Some((first, rest)) if first == "tpu" => rest.to_vec(),
        _ => words,
    };
    let Some((first, rest)) = words.split_first() else { return Ok(Typed::Nothing) };
    let argument = rest.first().map(String::as_str);
    match first.as_str() {
        "theme" => return Ok(Typed::Theme(argument.unwrap_or_default().to_owned())),
        "sort" => return sort(argument.unwrap_or("file")),
        "group" => {
            let wanted = argument.unwrap_or("none");
            let found = Group::ALL.into_iter().find(|group| group.as_str() == wanted);
            return found
                .map(Typed::Group)
                .ok_or(format!("group by target, directory or none, not '{wanted}'"));
        }
        "user" => {
            let names = rest.iter().filter(|name| *name != "all");
            return Ok(Typed::User(names.cloned().collect()));
        }
        "keys" => return Ok(Typed::Help),
        "quit" | "q" => return Ok(Typed::Quit),
        // The monitor inside the monitor is this one, about somebody else.
        "monitor" => {
            let all = rest.iter().any(|word| word == "--all-users");
            let users = rest.iter().filter(|word| !all && !word.starts_with('-'));
            return Ok(Typed::User(users.cloned().collect()));
        }
        _ => {}
    }
    let foreground = FOREGROUND.iter().find(|(name, _)| name == first).is_some_and(|(_, marks)| {
        marks.is_empty() || rest.iter().any(|word| marks.contains(&word.as_str()))
    });
    let asks = first == "add-user" && rest.is_empty();
    let logs_in = first == "ssh" && !rest.iter().any(|word| word.starts_with("--command"));
    if foreground || asks || logs_in {
        return Ok(Typed::Foreground(words));
    }
    let stops_monitor = first == "daemon" && argument == Some("stop");
    let tried = words.iter().any(|word| word == "--dry-run");
    match DESTROY.iter().find(|(name, _)| name == first) {
        Some((_, dry)) if !tried => Ok(Typed::Destroy(words, *dry)),
        None if stops_monitor => Ok(Typed::Destroy(words, false)),
        _ => Ok(Typed::Command(words)),
    }
}

/// Whether a line may hold a secret: it names a key, a token or the like, alone or as a part of a name. Such a
/// line is not remembered.
pub fn names_a_secret(line: &str) -> bool {
    const NAMES: [&str; 8] =
        ["key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials"];
    let parts = line.split(|c: char| !c.is_ascii_alphanumeric());
    parts.map(str::to_ascii_lowercase).any(|part| NAMES.contains(&part.as_str()))
}

fn sort(column: &str) -> Result<Typed, String> {
    match columns::TABLE.iter().find(|known| known.id == column || known.head == column) {
        Some(known) => Ok(Typed::Sort(Some(known.id.to_owned()))),
        None if column == "file" => Ok(Typed::Sort(None)),
        None => {
            let known: Vec<&str> = columns::TABLE.iter().map(|column| column.id).collect();
            Err(format!("no column '{column}': file, {}", known.join(", ")))
        }
    }
}

/// What the last word of a line may become: the text before it, and the proposals.
pub fn complete(line: &str, commands: &[(String, String)], names: &Names) -> (String, Vec<String>) {
    let cut = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = line.split_at(cut);
    let first = before.split_whitespace().next();
    let pool: Vec<String> = match first {
        None => {
            let own = OWN.iter().map(|(name, _)| (*name).to_owned());
            let mut all: Vec<String> =
                own.chain(commands.iter().map(|(name, _)| name.clone())).collect();
            all.sort();
            all
        }
        Some("theme") => BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Some("sort") => columns::TABLE.iter().map(|column| column.id.to_owned()).collect(),
        Some("group") => Group::ALL.iter().map(|group| group.as_str().to_owned()).collect(),
        Some("user" | "monitor") => names.users.clone(),
        Some("daemon") => ["start", "stop", "status", "plan", "run"].map(str::to_owned).to_vec(),
        Some("help") => commands.iter().map(|(name, _)| name.clone()).collect(),
        Some(_) => {
            let flags = ["--dry-run", "--force", "--json", "--user", "--yes"].map(str::to_owned);
            let words = [&names.windows, &names.targets, &names.users, &names.tags];
            words.into_iter().flatten().cloned().chain(flags).collect()
        }
    };
    let found = pool.into_iter().filter(|known| known.starts_with(word) && known != word);
    (before.to_owned(), found.collect())
}

/// Names that a command may be about.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Windows of the jobs on the screen.
    pub windows: Vec<String>,
    /// Targets, by their short names.
    pub targets: Vec<String>,
    /// Users.
    pub users: Vec<String>,
    /// Tags, as selectors.
    pub tags: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_read() {
        assert_eq!(parse("theme light"), Ok(Typed::Theme("light".to_owned())));
        assert_eq!(parse("  "), Ok(Typed::Nothing));
        assert_eq!(parse("tpu check"), Ok(Typed::Command(words("check"))));
        assert_eq!(parse("kill 7"), Ok(Typed::Destroy(words("kill 7"), true)));
        assert_eq!(parse("kill 7 --dry-run"), Ok(Typed::Command(words("kill 7 --dry-run"))));
        assert_eq!(parse("daemon stop"), Ok(Typed::Destroy(words("daemon stop"), false)));
        assert_eq!(parse("daemon start"), Ok(Typed::Command(words("daemon start"))));
        assert_eq!(parse("logs 7 -f"), Ok(Typed::Foreground(words("logs 7 -f"))));
        assert_eq!(parse("logs 7"), Ok(Typed::Command(words("logs 7"))));
        assert_eq!(parse("monitor bob"), Ok(Typed::User(vec!["bob".to_owned()])));
        assert_eq!(parse("sort tpu"), Ok(Typed::Sort(Some("target".to_owned()))));
        assert!(parse("sort speed").is_err_and(|why| why.contains("status")));
        assert!(parse("add-tag 7 'x").is_err());
    }

    #[test]
    fn lines_with_secrets_are_known() {
        for line in [
            "data set wandb_api_key 0123",
            "run local -- env WANDB_API_KEY=0123 ./train.sh",
            "data merge '{\"wandb_api_key\": \"0123\"}'",
            "ssh v2-8 --command 'login --password=0123'",
            "run local hf-token=0123",
        ] {
            assert!(names_a_secret(line), "{line}");
        }
        for line in ["run local tokenizer=bpe tokens=4096", "set-settings keys.kill X", "kill 7"] {
            assert!(!names_a_secret(line), "{line}");
        }
    }

    #[test]
    fn words_are_completed() {
        let commands =
            vec![("kill".to_owned(), String::new()), ("kill-window".to_owned(), String::new())];
        let names = Names { windows: vec!["7".to_owned(), "71".to_owned()], ..Names::default() };
        let (before, found) = complete("ki", &commands, &names);
        assert_eq!((before.as_str(), found), ("", words("kill kill-window")));
        let (before, found) = complete("kill 7", &commands, &names);
        assert_eq!((before.as_str(), found), ("kill ", words("71")));
        assert_eq!(complete("theme li", &commands, &names).1, ["light"]);
    }
}
