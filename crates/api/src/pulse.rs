//! The journal as it grows, for all who follow it: it is read once, and each event goes to everybody.
//!
//! An event is called by the place behind it in the journal ([`Bookmark`]), so that whoever was away asks for what came
//! since, from this server or from the next one.

use std::sync::Mutex;
use std::sync::PoisonError;

use axum::body::Bytes;
use tokio::sync::mpsc;

use tpu_core::model::ids::UserName;
use tpu_core::model::outbox::Bookmark;
use tpu_core::model::token::Rights;
use tpu_ops::front::tokens;
use tpu_ops::observe::journal::Event;
use tpu_ops::{Ctx, Error};
use tpu_wire::events::StreamedEventPart;

use super::flow::{Bit, WAITING};

/// Bytes that are told at once, about; what is more comes with the next beat.
const LARGEST_PIECE: usize = 64 << 10;
/// Places of the journal from which is read at one beat: of those who were away each has its own.
const AT_ONCE: usize = 8;
/// Those who follow at once; who comes then is asked to come later.
const MOST: usize = 2_000;

/// Somebody who follows the journal.
struct Follower {
    pieces: mpsc::Sender<Bit>,
    rights: Rights,
    user: Option<UserName>,
    /// The hash of its token, where it has shown one.
    token: Option<String>,
    /// How far it has been told.
    told: Bookmark,
}

#[derive(Default)]
struct State {
    followers: Vec<Follower>,
    read: Option<Bookmark>,
}

/// The journal, and who follows it.
#[derive(Default)]
pub(super) struct Pulse(Mutex<State>);

/// What was read of the journal at once: events with the places behind them, and the place behind all.
type Heard = (Vec<(Event, Bookmark)>, Bookmark);

/// Who wants to follow, and from where.
pub(super) struct Following {
    /// What the follower may see.
    pub(super) rights: Rights,
    /// Whose events; everybody's without.
    pub(super) user: Option<UserName>,
    /// The hash of the token that was shown; whoever came by the socket has none.
    pub(super) token: Option<String>,
    /// The last event that was heard; from now on without.
    pub(super) heard: Option<Bookmark>,
}

impl Pulse {
    /// Follows from now on, or behind what was heard. `None` where too many do.
    pub(super) fn follow(
        &self,
        ctx: &Ctx,
        following: Following,
    ) -> Result<Option<mpsc::Receiver<Bit>>, Error> {
        let Following { rights, user, token, heard } = following;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.followers.retain(|follower| !follower.pieces.is_closed());
        if state.followers.len() >= MOST {
            return Ok(None);
        }
        let told = match heard {
            Some(heard) => heard,
            None => ctx.store.journal_end()?,
        };
        let (pieces, flow) = mpsc::channel(WAITING);
        // Whoever is cut off before anything has happened knows where to go on.
        drop(pieces.try_send(Ok(at(told))));
        state.followers.push(Follower { pieces, rights, user, token, told });
        Ok(Some(flow))
    }

    /// How many follow.
    pub(super) fn followers(&self) -> usize {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.followers.iter().filter(|follower| !follower.pieces.is_closed()).count()
    }

    /// Reads on, and tells everybody; to be called every now and then. Nobody reads where nobody follows.
    pub(super) fn beat(&self, ctx: &Ctx) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.followers.retain(|follower| !follower.pieces.is_closed());
        if state.followers.is_empty() {
            return;
        }
        let Ok(end) = ctx.store.journal_end() else { return };
        if state.read == Some(end) && state.followers.iter().all(|follower| follower.told == end) {
            return;
        }
        // Most of them have heard the same: each place is read from once, that of those who keep up before all others.
        let mut read: Vec<(Bookmark, Heard)> = Vec::new();
        let place = state.read.filter(|place| state.followers.iter().any(|of| of.told == *place));
        if let Some(heard) = place.and_then(|place| ctx.store.placed_events_since(place).ok()) {
            read.extend(place.map(|place| (place, heard)));
        }
        // Of those who were away others are next with each beat.
        let others = AT_ONCE.min(state.followers.len());
        state.followers.rotate_left(others);
        state.followers.retain_mut(|follower| {
            if follower.pieces.capacity() == 0 {
                // It reads slowly; `still_here` gives it up.
                return true;
            }
            let known = read.iter().position(|(from, _)| *from == follower.told);
            let place = known.or_else(|| {
                if read.len() == AT_ONCE {
                    return None;
                }
                // What cannot be read now is told later.
                let heard = ctx.store.placed_events_since(follower.told).ok()?;
                read.push((follower.told, heard));
                Some(read.len() - 1)
            });
            let heard = place.and_then(|place| read.get(place));
            heard.is_none_or(|(_, heard)| follower.hear(heard))
        });
        state.read = Some(end);
    }

    /// Says that all is well, and how far it has come, to everybody: else a proxy would hang up. Whoever does not read, or
    /// whose token is worth nothing any more, is cut off.
    pub(super) fn still_here(&self, ctx: &Ctx) {
        let is_worth = tokens::worth(ctx);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.followers.retain(|follower| {
            follower.token.as_ref().is_none_or(|hash| is_worth(hash))
                && follower.pieces.try_send(Ok(at(follower.told))).is_ok()
        });
    }
}

impl Follower {
    /// Tells what has happened since: a piece of the journal, and what is more with the next beat. Whether it still
    /// follows: who is too slow is cut off, and asks again.
    fn hear(&mut self, (events, end): &Heard) -> bool {
        let mut text = String::new();
        for (event, place) in events {
            if self.is_meant(event) {
                text += &as_text(event, *place);
            }
            self.told = *place;
            if text.len() >= LARGEST_PIECE {
                return self.pieces.try_send(Ok(Bytes::from(text))).is_ok();
            }
        }
        self.told = *end;
        text.is_empty() || self.pieces.try_send(Ok(Bytes::from(text))).is_ok()
    }

    fn is_meant(&self, event: &Event) -> bool {
        let is_of = self.user.is_none() || self.user == event.user;
        is_of
            && match &event.user {
                Some(user) => self.rights.may_see(user),
                // What is nobody's affair may name everybody.
                None => self.rights.sees_everybody(),
            }
    }
}

/// As a server-sent event: JSON has no line break, so that it is one line.
fn as_text(event: &Event, place: Bookmark) -> String {
    let id = in_words(place);
    let data =
        serde_json::to_string(&StreamedEventPart::from((event, id.as_str()))).unwrap_or_default();
    format!("id: {id}\ndata: {data}\n\n")
}

/// How far somebody has come, without an event.
fn at(place: Bookmark) -> Bytes {
    Bytes::from(format!(": still here\nid: {}\n\n", in_words(place)))
}

/// A place of the journal as the name of an event.
pub(super) fn in_words(place: Bookmark) -> String {
    format!("{:x}-{}", place.mark, place.offset)
}

/// The same, read.
pub(super) fn place(text: &str) -> Option<Bookmark> {
    let (mark, offset) = text.split_once('-')?;
    Some(Bookmark { mark: u64::from_str_radix(mark, 16).ok()?, offset: offset.parse().ok()? })
}
