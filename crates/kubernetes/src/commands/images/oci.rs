//! A registry by the API that every one has (OCI distribution specification): its catalog, and the tags of each image.

use serde_json::Value;

use crate::settings::ImageRegistry;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::Image;
use super::client::{RegistryAt, RegistryClient};

/// A registry.
pub(super) struct OciRegistry {
    client: RegistryClient,
}

impl OciRegistry {
    /// The one that the settings name. Nothing is asked yet.
    pub(super) fn open(effects: &Effects, registry: &ImageRegistry) -> Result<Self, RunError> {
        let at = RegistryAt {
            url: &registry.url,
            user: registry.user.as_deref(),
            secret: "REGISTRY_PASSWORD",
            ca: registry.ca.as_deref(),
            tokens_by: registry.auth.as_deref(),
        };
        Ok(Self { client: RegistryClient::new(effects, &at)? })
    }

    /// Its images of which `is_wanted` holds, with their tags.
    pub(super) fn images(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Image>, RunError> {
        let names = self.list("/v2/_catalog?n=100", "repositories")?;
        let wanted = names.into_iter().filter(|name| is_image(name) && is_wanted(name));
        let with_tags = |name: String| {
            let tags = self.list(&format!("/v2/{name}/tags/list?n=100"), "tags")?;
            Ok(Image { name, tags })
        };
        wanted.map(with_tags).collect()
    }

    fn list(&self, path: &str, member: &str) -> Result<Vec<String>, RunError> {
        let pages = self.client.linked(path)?;
        let texts = pages.iter().filter_map(|page| page.get(member)?.as_array()).flatten();
        Ok(texts.filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// Whether a name is one by that specification; what is none is no part of a path.
fn is_image(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(fits)
    };
    name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        assert!(is_image("team/train_1.x") && is_image("alpine"));
        assert!(!is_image("../../admin") && !is_image("a b") && !is_image("a?x") && !is_image(""));
    }
}
