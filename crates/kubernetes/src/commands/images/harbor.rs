//! A project of Harbor, by the second version of its API.

use serde_json::Value;

use crate::settings::Harbor;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::Image;
use super::client::{RegistryAt, RegistryClient, segment};

/// So many of a list come at once: no more are given.
const PAGE: usize = 100;

/// A project.
pub(super) struct HarborProject<'s> {
    client: RegistryClient,
    project: &'s str,
    /// What is in front of every path: the project.
    root: String,
}

impl<'s> HarborProject<'s> {
    /// The one that the settings name. Nothing is asked yet.
    pub(super) fn open(effects: &Effects, harbor: &'s Harbor) -> Result<Self, RunError> {
        let at = RegistryAt {
            url: &harbor.url,
            user: harbor.user.as_deref(),
            secret: "HARBOR_PASSWORD",
            ca: harbor.ca.as_deref(),
            tokens_by: None,
        };
        if harbor.project.is_empty() {
            return Err(RunError::usage("no project of Harbor is named", super::WHERE));
        }
        let root = format!("/api/v2.0/projects/{}/repositories", segment(&harbor.project));
        Ok(Self { client: RegistryClient::new(effects, &at)?, project: &harbor.project, root })
    }

    /// Its images of which `is_wanted` holds, with their tags.
    pub(super) fn images(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Image>, RunError> {
        let all = self.list(&self.root)?;
        let names = all.iter().filter_map(|of| of.get("name")?.as_str());
        let names = names.map(|name| self.own(name)).filter(|name| is_wanted(name));
        names.map(|name| Ok(Image { tags: self.tags(name)?, name: name.to_owned() })).collect()
    }

    fn tags(&self, name: &str) -> Result<Vec<String>, RunError> {
        let artifacts = self.list(&format!("{}/artifacts", self.path(name)))?;
        let tags = artifacts.iter().filter_map(|of| of.get("tags")?.as_array()).flatten();
        Ok(tags.filter_map(|tag| Some(tag.get("name")?.as_str()?.to_owned())).collect())
    }

    /// What is said of an image.
    pub(super) fn description(&self, image: &str) -> Result<String, RunError> {
        let within =
            image.rsplit_once(&format!("{}/", self.project)).map_or(image, |(_, name)| name);
        let found = self.client.get(&self.path(within))?.ok_or_else(|| {
            let what = format!("{} has no image {within}", self.project);
            RunError::not_found(what, "`tpu images` lists them")
        })?;
        Ok(found.get("description").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// The path of an image. A slash in its name is encoded twice (API of Harbor, `repository_name`).
    fn path(&self, name: &str) -> String {
        format!("{}/{}", self.root, segment(&segment(name)))
    }

    /// The name without that of the project.
    fn own<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.project).and_then(|name| name.strip_prefix('/')).unwrap_or(name)
    }

    fn list(&self, path: &str) -> Result<Vec<Value>, RunError> {
        let page = |number: usize| format!("{path}?page={number}&page_size={PAGE}");
        let next = |number: usize, body: &Value| {
            body.as_array().is_some_and(|all| all.len() >= PAGE).then(|| page(number + 1))
        };
        // By numbers alone: what its header says names the address that it has for itself.
        let pages = self.client.numbered(&page(1), next)?;
        Ok(pages.into_iter().filter_map(|page| Some(page.as_array()?.clone())).flatten().collect())
    }
}
