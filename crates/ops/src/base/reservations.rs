//! Who may begin on a target beside what people have written on the board: who keeps it, and who is said to use it.

use tpu_core::model::board::Written;
use tpu_core::model::data::Data;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::time::{self, Timestamp};

use crate::Error;

/// Refuses a target that somebody else keeps, or that people say somebody else uses.
pub fn may_take(
    data: &Data,
    name: &TargetName,
    user: &UserName,
    now: Timestamp,
) -> Result<(), Error> {
    let free =
        || format!("take another one (tpu find), free it (tpu release {name}), or use --force");
    let entry = data.board().entry(name);
    if let Some(kept) = entry.reserved(now, |user| data.user(user).is_some()) {
        if kept.user == *user {
            return Ok(());
        }
        let left = time::age(kept.until.seconds_since(now));
        return Err(Error::refused(format!("{name} is reserved by {} for {left} more", kept.user))
            .hint(free()));
    }
    match (entry.status, &entry.user) {
        (Some(status @ (Written::Running | Written::Reserved | Written::Error)), Some(other))
            if other != user.as_str() =>
        {
            let word = status.as_str();
            Err(Error::refused(format!("on the board {name} is {word} by {other}")).hint(free()))
        }
        _ => Ok(()),
    }
}
