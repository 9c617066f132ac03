//! What a route takes: who may use it, what stands in its path and query, and the room in which it is carried out.

/// What a bearer has to be allowed. Where the path names a user, it is about that user's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: anybody may ask.
    Nothing,
    /// To see.
    Seeing,
    /// To act on jobs; where the path names no user, on somebody's.
    Acting,
    /// To make, reserve and give back targets.
    Targets,
    /// To change what is everybody's.
    Administering,
}

/// In which room a route does its work: what takes long keeps nobody waiting who wants something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// With whatever reads and changes the state.
    Usual,
    /// With whatever waits for programs to end and machines to answer.
    Slow,
    /// With what anybody may ask.
    Open,
}

/// Something that stands in a path or a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    /// What it is called.
    pub(super) name: &'static str,
    /// What it means, as a part of a sentence.
    pub(super) says: &'static str,
    /// What it may be.
    pub(super) of: Of,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// Any text.
    Text,
    /// A whole number, between these.
    Number(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Parameter {
    /// One of any text.
    pub(super) const fn text(name: &'static str, says: &'static str) -> Self {
        Self { name, says, of: Of::Text }
    }

    /// A number.
    pub(super) const fn number(name: &'static str, says: &'static str, of: (u64, u64)) -> Self {
        Self { name, says, of: Of::Number(of.0, of.1) }
    }

    /// A truth value.
    pub(super) const fn flag(name: &'static str, says: &'static str) -> Self {
        Self { name, says, of: Of::Flag }
    }

    /// One of some words.
    pub(super) const fn word(
        name: &'static str,
        says: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self { name, says, of: Of::Word(words) }
    }
}
