//! `tpu images` and `tpu image-details`: what a registry has, by the API of Harbor or the one that every registry has.

mod challenge;
mod client;
mod harbor;
mod markdown;
mod oci;

use clap::{Arg, ArgMatches, Command};
use serde_json::json;

use crate::settings::KubernetesSettings;
use tpu_engine::kinds::{KindAnswer, KindCommand, KindList};
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::table::table;
use harbor::HarborProject;
use oci::OciRegistry;

/// `tpu images`.
pub(super) const IMAGES: KindCommand = KindCommand {
    command: || of_images("images").about("List the images of the registry with their tags"),
    spelled: |words| words,
    destroys: |_| false,
    run: |effects, said| super::listed(KindList::Images(filter(said)), effects),
};

/// `tpu image-details`.
pub(super) const DETAILS: KindCommand = KindCommand {
    command: || of_details("image-details").about("Show details of an image"),
    spelled: |words| words,
    destroys: |_| false,
    run: |effects, said| detailed(effects, &super::settings()?, said),
};

/// Part of the names that are wanted.
const FILTER: &str = "filter";
/// The name of an image.
const IMAGE: &str = "image";

/// Where it is said which registry is meant.
const WHERE: &str = "in ~/.config/tpu/kubernetes.json: \"harbor\": {\"url\": \"https://HOST\", \"project\": \"NAME\"}, \
    or \"registry\": {\"url\": \"https://HOST\"}";

/// A command that lists images.
pub(super) fn of_images(name: &'static str) -> Command {
    let filter = Arg::new(FILTER).value_name("FILTER").help("Images with this text in their names");
    Command::new(name).arg(filter).after_help(
        "Examples:\n  tpu images\n  tpu images python\n\nThe registry is that of kubernetes.json; the password of \
         its `user` is kept\nby: tpu secrets set HARBOR_PASSWORD (or REGISTRY_PASSWORD)",
    )
}

/// A command that describes an image.
pub(super) fn of_details(name: &'static str) -> Command {
    let image = Arg::new(IMAGE).short('i').long(IMAGE).value_name("NAME").required(true);
    Command::new(name)
        .arg(image.help("The image; a tag is ignored"))
        .after_help("Examples:\n  tpu image-details -i ubuntu_python_tensorflow\n  tpu image-details -i train --json")
}

/// What is to be in the names that are wanted.
pub(super) fn filter(said: &ArgMatches) -> &str {
    said.get_one::<String>(FILTER).map_or("", String::as_str)
}

/// An image of a registry, and its tags.
struct Image {
    name: String,
    tags: Vec<String>,
}

/// Lists the images.
pub(super) fn listed(
    effects: &Effects,
    settings: &KubernetesSettings,
    filter: &str,
) -> Result<KindAnswer, RunError> {
    let filter = filter.to_lowercase();
    let is_wanted = |name: &str| name.to_lowercase().contains(&filter);
    let mut images = match (&settings.harbor, &settings.registry) {
        (Some(harbor), _) => HarborProject::open(effects, harbor)?.images(&is_wanted)?,
        (None, Some(registry)) => OciRegistry::open(effects, registry)?.images(&is_wanted)?,
        (None, None) => return Err(RunError::usage("no registry is known", WHERE)),
    };
    images.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let rows: Vec<Vec<String>> =
        images.iter().map(|image| vec![image.name.clone(), image.tags.join(", ")]).collect();
    let all = images.iter().map(|image| json!({"name": image.name, "tags": image.tags}));
    let answer = json!({"images": all.collect::<Vec<_>>()});
    let text = table(&["Image Name", "Tags List"], &rows);
    Ok(KindAnswer { text, answer, ..KindAnswer::default() })
}

/// Shows the description of an image.
pub(super) fn detailed(
    effects: &Effects,
    settings: &KubernetesSettings,
    said: &ArgMatches,
) -> Result<KindAnswer, RunError> {
    let named = said.get_one::<String>(IMAGE).map_or("", String::as_str);
    let Some(harbor) = &settings.harbor else {
        return Err(RunError::refused("only Harbor keeps descriptions of images", WHERE));
    };
    let image = without_tag(named);
    let description = HarborProject::open(effects, harbor)?.description(image)?;
    let text = match description.trim() {
        "" => format!("{image} has no description.\n"),
        text => markdown::plain(text),
    };
    let answer = json!({"name": image, "description": description});
    Ok(KindAnswer { text, answer, ..KindAnswer::default() })
}

/// The name of an image alone.
fn without_tag(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        // What has a slash behind the colon is the port of a registry.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_no_part_of_a_name() {
        for (image, name) in [
            ("train", "train"),
            ("train:1", "train"),
            ("lab:5000/team/train", "lab:5000/team/train"),
            ("lab:5000/team/train:3.1cuda11", "lab:5000/team/train"),
            ("train@sha256:0123", "train"),
        ] {
            assert_eq!(without_tag(image), name);
        }
    }
}
