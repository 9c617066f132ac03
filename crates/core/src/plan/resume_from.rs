//! Where a successor of an attempt begins, as far as anybody can tell.

use crate::model::launch::Checkpoint;

/// What a resume goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The newest complete checkpoint of the lineage.
    Found(CheckpointAt),
    /// What this directory may hold. Whether it does is not known, for the reason that follows.
    Perhaps(String, String),
    /// What the program itself may find in this directory of its working directory, for the reason that follows.
    InWorkDir(String, String),
    /// Nothing: for certain no attempt of the lineage has a complete checkpoint. It was looked for in these
    /// directories.
    Nothing(Vec<String>),
}

/// A complete checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointAt {
    /// The directory in which it was looked for.
    pub dir: String,
    /// Its path below that.
    pub name: String,
    /// Its step.
    pub step: u64,
    /// Whether nobody has named that directory: it lies in the working directory.
    pub is_in_work_dir: bool,
}

impl CheckpointAt {
    /// Its whole path.
    pub fn path(&self) -> String {
        format!("{}/{}", self.dir.trim_end_matches('/'), self.name)
    }
}

impl ResumeFrom {
    /// Whether everything is done anew.
    pub fn is_from_nothing(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }

    /// The directory that its program is told of by `--config.load_from=…`, and that its machine has to see. What lies in the
    /// working directory it finds there by itself.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Found(CheckpointAt { dir, is_in_work_dir: false, .. })
            | Self::Perhaps(dir, _) => Some(dir),
            Self::Found(_) | Self::InWorkDir(..) | Self::Nothing(_) => None,
        }
    }

    /// The step of the checkpoint, where it is known which that is.
    pub fn step(&self) -> Option<u64> {
        match self {
            Self::Found(found) => Some(found.step),
            Self::Perhaps(..) | Self::InWorkDir(..) | Self::Nothing(_) => None,
        }
    }

    /// What the program is told of it by its environment.
    pub fn told(&self) -> Option<Checkpoint> {
        match self {
            Self::Found(found) => {
                let path = found.path();
                let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
                Some(Checkpoint { path: Some(path), dir, step: Some(found.step) })
            }
            Self::Perhaps(dir, _) | Self::InWorkDir(dir, _) => {
                Some(Checkpoint { path: None, dir: dir.clone(), step: None })
            }
            Self::Nothing(_) => None,
        }
    }

    /// Why it is unknown whether there is a checkpoint.
    pub fn doubt(&self) -> Option<&str> {
        match self {
            Self::Perhaps(_, why) | Self::InWorkDir(_, why) => Some(why),
            Self::Found(_) | Self::Nothing(_) => None,
        }
    }

    /// What a person should know about it before it begins.
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::Found(_) => None,
            Self::Perhaps(_, why) | Self::InWorkDir(_, why) => {
                Some(format!("whether there is a checkpoint is unknown: {why}"))
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
