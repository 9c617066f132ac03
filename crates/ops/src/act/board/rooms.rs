//! What engines say of the room of their targets. Asked only where targets are shown, each kind beside the others, and
//! nobody is waited for longer than a look may take.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use crate::observe::runners::PATIENCE;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::facts::{Room, TargetFact};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::{Machines, Registration, TargetKind};
use tpu_engine::runner::RunError;
use tpu_system::sys::threads;

use super::Board;

/// What was said of the room of a target.
type Answer = (TargetName, Result<Room, RunError>);

/// The board with the room of the targets on it.
pub fn look(ctx: &Ctx) -> Result<Board, Error> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let answers = ask(ctx, &*ctx.data()?);
    let mut board = super::look(ctx)?;
    loop {
        let left = deadline.saturating_sub(ctx.clock.monotonic());
        let (name, room) = match threads::next_of(&*ctx.threads, &answers, left) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => return Ok(board),
            Err(RecvTimeoutError::Timeout) => break,
        };
        let Some(row) = board.targets.iter_mut().find(|row| row.target == name) else { continue };
        match room {
            Ok(room) => {
                row.fact.raw_state.clone_from(&room.state);
                row.fact.room = Some(Box::new(room));
            }
            Err(why) => row.fact.symptoms = vec![why.to_string()],
        }
    }
    let is_silent = |fact: &TargetFact| fact.room.is_none() && fact.symptoms.is_empty();
    let engines = board.targets.iter_mut().map(|row| &mut row.fact);
    for fact in engines.filter(|fact| fact.machines == Machines::Engine && is_silent(fact)) {
        fact.symptoms =
            vec![format!("its engine has not answered within {} s", PATIENCE.as_secs())];
    }
    Ok(board)
}

/// Asks each kind that has engines about all of its targets, and waits for nothing.
fn ask(ctx: &Ctx, data: &Data) -> Receiver<Answer> {
    let (say, answers) = channel();
    let mut kinds: BTreeMap<TargetKind, (Vec<TargetName>, Vec<Registration>)> = BTreeMap::new();
    let all = data.registry().registrations();
    for (name, registration) in all.filter(|(_, of)| of.machines() == Machines::Engine) {
        let (names, registrations) = kinds.entry(registration.kind.clone()).or_default();
        names.push(name.clone());
        registrations.push(registration.clone());
    }
    for (names, registrations) in kinds.into_values() {
        let (kinds, effects, say) = (ctx.kinds.clone(), ctx.effects.clone(), say.clone());
        ctx.threads.spawn(Box::new(move || {
            let kind = registrations.first().and_then(|of| kinds.of_registration(of).ok());
            let mut said = |place: usize, room| {
                if let Some(name) = names.get(place) {
                    // Nobody hears it any more where the look is over.
                    drop(say.send((name.clone(), room)));
                }
            };
            if let Some(kind) = kind {
                kind.rooms(&registrations, &effects, &mut said);
            }
        }));
    }
    answers
}
