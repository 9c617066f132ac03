//! Working directories: `set-cur`, `set-dir`, `ls`, `get-dir`, `del-dir`, `swap-dir`.

use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::Output;
use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::act::selection::{self, Sorted};
use tpu_ops::base::ctx::{how_to_begin, user_of};
use tpu_ops::front::dirs;
use tpu_wire::users::{DirDocument, DirsDocument, ForgottenDirDocument, SwappedDirsDocument};

/// The words of a command that takes slots.
fn slots(app: &App, words: &[String]) -> Result<(UserName, Sorted), Error> {
    let data = app.ctx()?.data()?;
    let sorted = selection::sort(words, &data)?;
    sorted.no_window()?;
    let user = app.user(&data, sorted.user.clone())?;
    Ok((user, sorted))
}

fn one(sorted: &Sorted) -> Result<u32, Error> {
    match sorted.numbers.as_slice() {
        [slot] => Ok(*slot),
        [] => Err(Error::usage("which slot?").hint("a number, as in: tpu set-cur 2")),
        _ => Err(Error::usage("one slot at a time, please").hint("as in: tpu get-dir 2")),
    }
}

/// `set-cur N`.
pub(in crate::cli) fn set_current(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = slots(app, words)?;
    sorted.nothing_else()?;
    store(app, &user, one(&sorted)?, &app.env.cwd)
}

/// `set-dir PATH N`.
pub(in crate::cli) fn set(app: &App, words: &[String]) -> Outcome {
    let (user, mut sorted) = slots(app, words)?;
    let path = match sorted.rest.len() {
        1 => app.env.cwd.join(sorted.rest.remove(0)),
        0 => return Err(Error::usage("which path?").hint("as in: tpu set-dir /code/project 2")),
        _ => {
            return Err(Error::usage(format!(
                "one path at a time, please: {}",
                sorted.rest.join(" ")
            ))
            .hint("quote a path that holds blanks: tpu set-dir \"MY PATH\" 2"));
        }
    };
    sorted.nothing_else()?;
    store(app, &user, one(&sorted)?, &path)
}

fn store(app: &App, user: &UserName, slot: u32, path: &Path) -> Outcome {
    let all = dirs::set(app.ctx()?, user, slot, path)?;
    let mut text = format!("Set directory {slot} to {}\nCurrent directories:\n", path.display());
    text += &lines(&all);
    Ok(Output::new(text, &DirsDocument::from((user, &*all))))
}

/// `ls`.
pub(in crate::cli) fn list(app: &App, words: &[String]) -> Outcome {
    let user = app.requester()?.only_user(words)?;
    let data = app.ctx()?.data()?;
    let owner = user_of(&data, &user)?;
    let text = if owner.working_dir.is_empty() {
        format!("{user} has no directories. Begin {}", how_to_begin(&user))
    } else {
        lines(&owner.working_dir)
    };
    Ok(Output::new(text, &DirsDocument::from((&user, &*owner.working_dir))))
}

/// `get-dir N`; 0 is the parent of slot 1, as in the original.
pub(in crate::cli) fn get(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = slots(app, words)?;
    sorted.nothing_else()?;
    let slot = one(&sorted)?;
    let data = app.ctx()?.data()?;
    let owner = user_of(&data, &user)?;
    let path = if slot == 0 {
        let first = dirs::known(owner, 1)?;
        let parent = Path::new(first).parent();
        parent.map_or(first.to_owned(), |parent| parent.to_string_lossy().into_owned())
    } else {
        dirs::known(owner, slot)?.to_owned()
    };
    Ok(Output::new(path.clone(), &DirDocument { path: &path }))
}

/// `del-dir N`.
pub(in crate::cli) fn delete(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = slots(app, words)?;
    sorted.nothing_else()?;
    let slot = one(&sorted)?;
    dirs::delete(app.ctx()?, &user, slot)?;
    Ok(Output::new(
        format!("Forgot directory {slot} of {user}."),
        &ForgottenDirDocument { user: &user, slot },
    ))
}

/// `swap-dir A B`.
pub(in crate::cli) fn swap(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = slots(app, words)?;
    sorted.nothing_else()?;
    let [a, b] = sorted.numbers.as_slice() else {
        return Err(Error::usage("which two slots?").hint("as in: tpu swap-dir 1 2"));
    };
    dirs::swap(app.ctx()?, &user, *a, *b)?;
    Ok(Output::new(
        format!("Swapped directories {a} and {b} of {user}."),
        &SwappedDirsDocument { user: &user, slots: [*a, *b] },
    ))
}

fn lines(dirs: &[(u32, String)]) -> String {
    let mut text = String::new();
    for (slot, path) in dirs {
        let mark = if *slot == 1 { " (default)" } else { "" };
        text += &format!("{slot}: {}{mark}\n", tpu_core::text::escape(path));
    }
    text
}
