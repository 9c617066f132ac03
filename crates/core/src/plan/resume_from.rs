//! Where a successor of an attempt begins, as far as anybody can tell.

/// What a resume goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The newest complete checkpoint of the lineage, of this step, which this log directory holds.
    Checkpoint(String, u64),
    /// What this log directory may hold. Whether it does is not known, for the reason that follows.
    Perhaps(String, String),
    /// Nothing: for certain no attempt of the lineage has a complete checkpoint. It was looked for in these
    /// directories.
    Nothing(Vec<String>),
}

impl ResumeFrom {
    /// Whether everything is done anew.
    pub fn is_from_nothing(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }

    /// Where to load from.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Checkpoint(dir, _) | Self::Perhaps(dir, _) => Some(dir),
            Self::Nothing(_) => None,
        }
    }

    /// The step of the checkpoint, where it is known which that is.
    pub fn step(&self) -> Option<u64> {
        match self {
            Self::Checkpoint(_, step) => Some(*step),
            Self::Perhaps(..) | Self::Nothing(_) => None,
        }
    }

    /// What a person should know about it before it begins.
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::Checkpoint(..) => None,
            Self::Perhaps(_, reason) => {
                Some(format!("whether there is a checkpoint is unknown: {reason}"))
            }
            Self::Nothing(looked) => Some(format!("resumed from nothing: {}", nowhere(looked))),
        }
    }
}

/// Where no checkpoint was found.
pub fn nowhere(looked: &[String]) -> String {
    if looked.is_empty() {
        "no attempt has begun to log".to_owned()
    } else {
        format!("there is no complete checkpoint in {}", looked.join(", "))
    }
}
