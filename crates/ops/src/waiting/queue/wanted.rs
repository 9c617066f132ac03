//! What a word means on which something is to begin when its turn comes.

use crate::base::named;
use tpu_core::model::data::Data;
use tpu_core::model::spec::{AnyOf, TargetRequest};
use tpu_core::plan::types;

use super::wish;

/// What a word asks for: one target, one of several machines, or any target of a type, also of one that is yet to come.
pub fn wanted(data: &Data, word: &str) -> TargetRequest {
    let has_room_for_several = data.resolve_target(word).is_some_and(|target| {
        let registered = data.registration(&target.name);
        target.is_here() || registered.is_some_and(|known| known.host.is_some())
    });
    if has_room_for_several || named::is_of_several(data, word) {
        return TargetRequest::Any(AnyOf { among: vec![word.to_owned()], ..AnyOf::default() });
    }
    let is_target = data.resolve_target(word).is_some();
    if !is_target && (wish::is_type(data, word) || types::is_type(word)) {
        return TargetRequest::Any(AnyOf { types: vec![word.to_owned()], ..AnyOf::default() });
    }
    TargetRequest::Named(word.to_owned())
}
