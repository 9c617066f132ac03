//! Settings about Kubernetes, in the form of the Kubernetes job manager's `settings.json`: flavors, the default image,
//! annotations, the registry of images.
//!
//! From the weakest to the strongest: what is built in, the machine's file, the user's. Of several the stronger one has
//! the last word; lists are put together, as that job manager does.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::flavors::{Flavor, or_default, place};
use super::volumes::{LIKE, Volume};

/// The file, in the directory of settings.
pub const FILE: &str = "kubernetes.json";

/// The machine's file.
const OF_MACHINE: &str = "/etc/tpu/kubernetes.json";

/// What is said about Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KubernetesSettings {
    /// About jobs.
    #[serde(deserialize_with = "or_default")]
    pub job: JobSettings,
    /// Where images are listed.
    pub harbor: Option<Harbor>,
    /// Where images are listed that are in no Harbor.
    pub registry: Option<ImageRegistry>,
    /// A namespace in which a summary of the queue may lie.
    pub jobs_queue: Option<JobsQueue>,
    /// Which kubeconfig is meant.
    pub kube_config: Option<KubeConfig>,
    /// The target that is meant where none is named.
    pub target: Option<String>,
}

/// What is said about jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobSettings {
    /// Annotations of every Job.
    #[serde(deserialize_with = "or_default")]
    pub annotations: Vec<Annotation>,
    /// The image of a job that names none.
    pub default_image: Option<String>,
    /// What stands before the name of an image that has no registry of its own.
    pub image_prefix: Option<String>,
    /// The rank of every job.
    pub priority_class_name: Option<String>,
    /// Who its processes are, in Kubernetes' words.
    pub security_context: Option<Value>,
    /// Secrets by which images are pulled.
    #[serde(deserialize_with = "or_default")]
    pub image_pull_secrets: Vec<String>,
    /// Volumes of every job: each as `--volume` has it, or as an object.
    #[serde(deserialize_with = "or_default")]
    pub volumes: Vec<Value>,
    /// Seconds that a Job stays in the cluster when it is over.
    pub ttl_seconds: Option<u64>,
    /// Flavors.
    #[serde(deserialize_with = "or_default")]
    pub resources: FlavorSettings,
}

/// An annotation of every Job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Annotation {
    /// Its name.
    pub key: String,
    /// Its value, or the variable of the environment that has it.
    pub value: String,
    /// Which of both.
    #[serde(default)]
    pub value_type: ValueType,
}

/// What the value of an annotation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ValueType {
    /// Itself.
    #[default]
    String,
    /// The name of a variable of the environment.
    Env,
}

/// Flavors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct FlavorSettings {
    /// The one of a job that names none.
    pub default: Option<String>,
    /// The annotation that holds the name of the flavor of a Job.
    pub label: Option<String>,
    /// Those that are known.
    #[serde(deserialize_with = "or_default")]
    pub predefined: Vec<Flavor>,
}

/// A registry of images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Harbor {
    /// Its address, without `/api/v2.0`.
    pub url: String,
    /// The project whose images are meant.
    pub project: String,
    /// The account, where it is needed; its password is the secret `HARBOR_PASSWORD`.
    pub user: Option<String>,
    /// A file with the certificates that are believed, where it has one of its own.
    pub ca: Option<String>,
}

/// Any registry of images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ImageRegistry {
    /// Its address.
    pub url: String,
    /// The account, where it is needed; its password is the secret `REGISTRY_PASSWORD`.
    pub user: Option<String>,
    /// Who hands out its tokens, where that is another server.
    pub auth: Option<String>,
    /// A file with the certificates that are believed, where it has one of its own.
    pub ca: Option<String>,
}

/// Where a summary of the queue lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobsQueue {
    /// The namespace.
    pub namespace: String,
    /// The config map.
    pub configmap: String,
    /// Resources that are GPUs.
    #[serde(deserialize_with = "or_default")]
    pub gpu_resources: Vec<String>,
}

/// Which kubeconfig is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KubeConfig {
    /// `file`, `default` or `cluster`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file.
    pub file: Option<String>,
}

/// The annotation that holds the name of a flavor, where no setting names another one.
pub const FLAVOR: &str = "tpu/flavor";

impl KubernetesSettings {
    /// What holds without a word.
    pub(crate) fn built_in() -> Self {
        let of_one_cpu = |name: &str, gpus: Option<u32>| {
            let mut requests = json!({"cpu": "1000m", "memory": "1G"});
            if let Some(gpus) = gpus {
                requests["nvidia.com/gpu"] = json!(gpus);
            }
            let flavor =
                json!({"name": name, "resources": {"requests": requests, "limits": requests}});
            serde_json::from_value::<Flavor>(flavor).unwrap_or_default()
        };
        let predefined = vec![of_one_cpu("no-gpu", None), of_one_cpu("small-gpu", Some(1))];
        let resources = FlavorSettings { predefined, ..FlavorSettings::default() };
        Self { job: JobSettings { resources, ..JobSettings::default() }, ..Self::default() }
    }

    /// What holds for this account: what is built in, then the files that are there.
    pub(crate) fn read() -> Result<Self, String> {
        let mut all = Self::built_in();
        for path in [Some(PathBuf::from(OF_MACHINE)), Self::own_file()].into_iter().flatten() {
            if let Some(more) = Self::of_file(&path)? {
                all = all.and(more);
            }
        }
        Ok(all)
    }

    /// The user's file, where there is a place for it.
    pub(crate) fn own_file() -> Option<PathBuf> {
        let own = directories::ProjectDirs::from("", "", "tpu");
        own.map(|dirs| dirs.config_dir().join(FILE))
    }

    /// What a file says; `None` where there is none. The error says where in it.
    pub(crate) fn of_file(path: &Path) -> Result<Option<Self>, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Self::parse(&text).map(Some).map_err(|why| format!("{}: {why}", path.display()))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    /// Reads what a file holds.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut settings: Self = serde_json::from_str(text).map_err(|e| place(&e))?;
        let resources = &mut settings.job.resources;
        let flavors = std::mem::take(&mut resources.predefined).into_iter();
        resources.predefined = flavors.map(Flavor::checked).collect::<Result<_, _>>()?;
        match settings.job.volumes.iter().find(|said| Volume::of_value(said).is_none()) {
            Some(odd) => Err(format!("{odd} of volumes is no volume, {LIKE}")),
            None => Ok(settings),
        }
    }

    /// These, and over them stronger ones.
    #[must_use]
    pub(crate) fn and(self, over: Self) -> Self {
        let (mut job, of) = (self.job, over.job);
        job.annotations.extend(of.annotations);
        job.image_pull_secrets.extend(of.image_pull_secrets);
        job.volumes.extend(of.volumes);
        let mut predefined = job.resources.predefined;
        predefined.retain(|known| of.resources.predefined.iter().all(|new| new.name != known.name));
        predefined.extend(of.resources.predefined);
        Self {
            job: JobSettings {
                default_image: of.default_image.or(job.default_image),
                image_prefix: of.image_prefix.or(job.image_prefix),
                priority_class_name: of.priority_class_name.or(job.priority_class_name),
                security_context: of.security_context.or(job.security_context),
                ttl_seconds: of.ttl_seconds.or(job.ttl_seconds),
                resources: FlavorSettings {
                    default: of.resources.default.or(job.resources.default),
                    label: of.resources.label.or(job.resources.label),
                    predefined,
                },
                annotations: job.annotations,
                image_pull_secrets: job.image_pull_secrets,
                volumes: job.volumes,
            },
            harbor: over.harbor.or(self.harbor),
            registry: over.registry.or(self.registry),
            jobs_queue: over.jobs_queue.or(self.jobs_queue),
            kube_config: over.kube_config.or(self.kube_config),
            target: over.target.or(self.target),
        }
    }

    /// The flavor that is meant, where a file may be: of that name, in this directory.
    pub(super) fn flavor_beside(
        &self,
        said: Option<&str>,
        dir: &Path,
    ) -> Result<Option<Flavor>, String> {
        match said.map(|said| dir.join(said)).filter(|path| path.is_file()) {
            Some(path) => Flavor::of_file(&path).map(Some),
            None => self.flavor(said),
        }
    }

    /// The flavor that is meant: JSON, else a name; without a word the default. `None` where neither was said. No file is
    /// read: a job may begin where it is not, and what it said was taken in when the job was asked for.
    pub(crate) fn flavor(&self, said: Option<&str>) -> Result<Option<Flavor>, String> {
        let resources = &self.job.resources;
        let Some(said) = said.or(resources.default.as_deref()) else { return Ok(None) };
        if said.trim_start().starts_with('{') {
            return Flavor::parse(said).map(Some);
        }
        let named = resources.predefined.iter().find(|flavor| flavor.name == said);
        named.map(|flavor| Some(flavor.clone())).ok_or_else(|| {
            let known: Vec<&str> =
                resources.predefined.iter().map(|flavor| flavor.name.as_str()).collect();
            format!("there is no flavor {said}; known are {}", known.join(", "))
        })
    }

    /// The annotation that holds the name of the flavor.
    pub(crate) fn flavor_annotation(&self) -> &str {
        self.job.resources.label.as_deref().unwrap_or(FLAVOR)
    }

    /// An image as the server is to have it.
    pub(crate) fn image(&self, said: Option<&str>) -> Option<String> {
        let said = said.or(self.job.default_image.as_deref())?;
        let first = said.split_once('/').map(|(first, _)| first);
        // What has a dot, a colon or the name of this machine in front names its registry (the reference format of
        // images).
        let has_registry =
            first.is_some_and(|first| first.contains(['.', ':']) || first == "localhost");
        match self.job.image_prefix.as_deref() {
            Some(prefix) if !has_registry && !prefix.is_empty() => {
                Some(format!("{}/{said}", prefix.trim_end_matches('/')))
            }
            Some(_) | None => Some(said.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stronger_one_has_the_last_word_and_lists_are_put_together() {
        let ours = r#"{"job": {"defaultImage": "alpine", "annotations": [{"key": "a", "value": "USER", "valueType": "env"}],
            "resources": {"default": "no-gpu", "predefined": [{"name": "no-gpu", "resources": {"requests": {"cpu": 2}}}]}}}"#;
        let all = KubernetesSettings::built_in().and(KubernetesSettings::parse(ours).unwrap());
        assert_eq!(all.job.default_image.as_deref(), Some("alpine"));
        let names: Vec<&str> =
            all.job.resources.predefined.iter().map(|flavor| flavor.name.as_str()).collect();
        assert_eq!(names, ["small-gpu", "no-gpu"], "one of a name, the stronger one");
        let flavor = all.flavor(None).unwrap().unwrap();
        assert_eq!(flavor.resources.requests["cpu"], 2);
        assert_eq!(all.flavor(Some("small-gpu")).unwrap().unwrap().gpus(), 1);
        assert!(all.flavor(Some("none")).unwrap_err().contains("small-gpu"));
        assert_eq!(KubernetesSettings::built_in().flavor(None).unwrap(), None);
    }

    #[test]
    fn what_is_null_in_a_file_is_as_if_it_were_not_said() {
        let null = r#"{"job": {"annotations": null, "imagePullSecrets": null, "volumes": null, "resources": {"predefined": null}},
            "harbor": null, "jobsQueue": {"namespace": "", "gpuResources": null}}"#;
        let said = KubernetesSettings::parse(null).unwrap();
        assert_eq!(said.job, JobSettings::default());
        for null in [r#"{"job": null}"#, r#"{"job": {"resources": null}}"#] {
            assert_eq!(KubernetesSettings::parse(null).unwrap(), KubernetesSettings::default());
        }
    }

    #[test]
    fn an_error_of_a_file_has_its_place() {
        let why = KubernetesSettings::parse("{\n  \"job\": {\"annotations\": 3}\n}").unwrap_err();
        assert!(why.starts_with("line 2, column "), "{why}");
    }

    #[test]
    fn a_prefix_is_for_images_without_a_registry() {
        let mut all = KubernetesSettings::built_in();
        all.job.image_prefix = Some("harbor.lab/team/".to_owned());
        let image = |said| all.image(Some(said)).unwrap();
        assert_eq!(image("train:1"), "harbor.lab/team/train:1");
        assert_eq!(image("team/train"), "harbor.lab/team/team/train");
        for whole in ["ghcr.io/x/y:1", "localhost/x", "registry:5000/x"] {
            assert_eq!(image(whole), whole);
        }
        assert_eq!(all.image(None), None);
    }
}
