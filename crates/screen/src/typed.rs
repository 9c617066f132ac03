//! What is typed behind `:`: commands of the screen, and every command of `tpu`.

use super::rows::Group;
use super::theme::BUILT_IN;

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

/// What the command line knows of a line that is one of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// It prints as it goes, reads keys or never ends.
    pub needs_terminal: bool,
    /// Something is lost by it: the screen asks before it runs it.
    pub destroys: bool,
    /// It can say what it would do without doing it (`--dry-run`).
    pub can_be_tried: bool,
}

/// Tells what the words of a command ask for. The command line hands its own in.
pub type TellNature = fn(&[String]) -> Nature;

/// What the screen knows of the commands of `tpu`.
#[derive(Clone, Debug)]
pub struct Commands {
    /// Those that are proposed, with what each does.
    pub known: Vec<(String, String)>,
    /// Tells what a line asks for.
    pub nature: TellNature,
}

/// How a column of the list may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnName {
    /// Its name, which is proposed.
    pub id: &'static str,
    /// Its head on the screen.
    pub head: &'static str,
}

/// Reads a line, which may name one of these columns. The error says what cannot be read.
pub fn parse(line: &str, nature: TellNature, columns: &[ColumnName]) -> Result<Typed, String> {
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
        "sort" => return sort(argument.unwrap_or("file"), columns),
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
    let nature = nature(&words);
    Ok(if nature.needs_terminal {
        Typed::Foreground(words)
    } else if nature.destroys {
        Typed::Destroy(words, nature.can_be_tried)
    } else {
        Typed::Command(words)
    })
}

/// Whether a line may hold a secret: it names a key, a token or the like, alone or as a part of a name. Such a
/// line is not remembered.
pub fn names_a_secret(line: &str) -> bool {
    const NAMES: [&str; 8] =
        ["key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials"];
    let parts = line.split(|c: char| !c.is_ascii_alphanumeric());
    parts.map(str::to_ascii_lowercase).any(|part| NAMES.contains(&part.as_str()))
}

fn sort(column: &str, columns: &[ColumnName]) -> Result<Typed, String> {
    match columns.iter().find(|known| known.id == column || known.head == column) {
        Some(known) => Ok(Typed::Sort(Some(known.id.to_owned()))),
        None if column == "file" => Ok(Typed::Sort(None)),
        None => {
            let known: Vec<&str> = columns.iter().map(|column| column.id).collect();
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
            all.sort_unstable();
            all
        }
        Some("theme") => BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Some("sort") => names.columns.iter().map(|column| column.id.to_owned()).collect(),
        Some("group") => Group::ALL.iter().map(|group| group.as_str().to_owned()).collect(),
        Some("user" | "monitor") => names.users.clone(),
        Some("daemon") => ["start", "stop", "status", "plan", "run", "install", "uninstall"]
            .map(str::to_owned)
            .to_vec(),
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
    /// Columns of the list.
    pub columns: Vec<ColumnName>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::columns;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// What the command line says of the lines below.
    fn nature(words: &[String]) -> Nature {
        let is_tried = words.iter().any(|word| word == "--dry-run");
        Nature {
            needs_terminal: words.iter().any(|word| word == "-f"),
            destroys: words.first().is_some_and(|word| word == "kill") && !is_tried,
            can_be_tried: true,
        }
    }

    fn parse(line: &str) -> Result<Typed, String> {
        super::parse(line, nature, &columns::names())
    }

    #[test]
    fn lines_are_read() {
        assert_eq!(parse("theme light"), Ok(Typed::Theme("light".to_owned())));
        assert_eq!(parse("  "), Ok(Typed::Nothing));
        assert_eq!(parse("tpu check"), Ok(Typed::Command(words("check"))));
        assert_eq!(parse("kill 7"), Ok(Typed::Destroy(words("kill 7"), true)));
        assert_eq!(parse("kill 7 --dry-run"), Ok(Typed::Command(words("kill 7 --dry-run"))));
        assert_eq!(parse("logs 7 -f"), Ok(Typed::Foreground(words("logs 7 -f"))));
        assert_eq!(parse("logs 7"), Ok(Typed::Command(words("logs 7"))));
        assert_eq!(parse("monitor bob"), Ok(Typed::User(vec!["bob".to_owned()])));
        assert_eq!(parse("sort tpu"), Ok(Typed::Sort(Some("target".to_owned()))));
        assert!(parse("sort colour").is_err_and(|why| why.contains("status")));
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
