//! The file of another tool as one of ours, and what of it is not as it was.

use super::own::Place;
use super::yaml::Yaml;

/// A file of another tool as one of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The document of ours; each value has the place that it had in the file.
    pub document: Yaml,
    /// What is not as it was.
    pub notes: Vec<ConversionNote>,
}

/// What is not as it was in the file of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionNote {
    /// Where it stands.
    pub place: Place,
    /// The field, as in `job.loop`.
    pub field: String,
    /// What becomes of it.
    pub what: String,
}
