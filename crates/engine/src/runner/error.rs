//! What can go wrong with a run, in words for a person; `ops::Error` gives it an exit code.

use tpu_system::store::StoreError;
use tpu_system::tmux::TmuxError;

/// A message, and what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Said {
    /// What is wrong and where.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

/// Why a runner could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such run any more.
    #[error(transparent)]
    NotFound(Said),
    /// It is not for us to do: it lives elsewhere, or nobody can tell what is whose.
    #[error(transparent)]
    Refused(Said),
    /// What runs it does not take it as it is asked for, in its own words, and has not begun it: an option, or a
    /// name that it does not know.
    #[error(transparent)]
    Usage(Said),
    /// What runs it, or a machine that it runs on, does not answer; safe to try again.
    #[error(transparent)]
    Unreachable(Said),
    /// Files of ours cannot be read or written.
    #[error(transparent)]
    State(Said),
    /// The operation failed.
    #[error(transparent)]
    Failed(Said),
    /// What runs it does not know who asks, and has begun nothing; the same until a person has logged in.
    #[error(transparent)]
    Login(Said),
    /// tmux has not done it.
    #[error(transparent)]
    Tmux(#[from] TmuxError),
    /// The state directory cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn said(message: impl Into<String>, hint: impl Into<String>) -> Said {
    Said { message: message.into(), hint: Some(hint.into()) }
}

impl RunError {
    /// [`RunError::NotFound`] with advice.
    pub fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::NotFound(said(message, hint))
    }

    /// [`RunError::Refused`] with advice.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(said(message, hint))
    }

    /// [`RunError::Usage`] with what to ask for instead.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage(said(message, hint))
    }

    /// [`RunError::Unreachable`] with advice.
    pub fn unreachable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unreachable(said(message, hint))
    }

    /// [`RunError::State`] with advice.
    pub fn state(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::State(said(message, hint))
    }

    /// [`RunError::Login`] with what to do about it.
    pub fn login(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Login(said(message, hint))
    }

    /// [`RunError::Failed`] with advice.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed(said(message, hint))
    }
}
