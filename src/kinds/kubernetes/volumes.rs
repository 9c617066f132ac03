//! Volumes of a job, as a person says them and as a manifest has them.

use serde_json::{Value, json};

/// A volume, and where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    source: VolumeSource,
    /// Where the container sees it.
    pub(super) mount: String,
    is_read_only: bool,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum VolumeSource {
    Claim(String),
    Nfs { server: String, path: String },
    Host(String),
    ConfigMap(String),
    Secret(String),
}

/// How volumes are said.
pub(super) const LIKE: &str =
    "as in: --volume data:/data, nfs/server:/export:/data, host/dir:/data, configmap/c:/etc/c:ro";

impl Volume {
    /// Reads `[KIND/]WHAT:/MOUNT[:ro]`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, is_read_only) = match text.strip_suffix(":ro") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (what, mount) = text.rsplit_once(':')?;
        let is_path = mount.starts_with('/') && mount.len() > 1 && !mount.contains("..");
        if !is_path || what.is_empty() || what.chars().any(char::is_control) {
            return None;
        }
        let source = match what.split_once('/') {
            Some(("claim", name)) => VolumeSource::Claim(name.to_owned()),
            Some(("configmap", name)) => VolumeSource::ConfigMap(name.to_owned()),
            Some(("secret", name)) => VolumeSource::Secret(name.to_owned()),
            Some(("host", path)) => {
                VolumeSource::Host(format!("/{}", path.trim_start_matches('/')))
            }
            Some(("nfs", place)) => {
                let (server, path) = place.split_once(':')?;
                let is_place = !server.is_empty() && path.starts_with('/');
                is_place.then(|| VolumeSource::Nfs {
                    server: server.to_owned(),
                    path: path.to_owned(),
                })?
            }
            Some(_) => return None,
            None => VolumeSource::Claim(what.to_owned()),
        };
        let is_named = match &source {
            VolumeSource::Claim(name)
            | VolumeSource::ConfigMap(name)
            | VolumeSource::Secret(name) => !name.is_empty() && !name.contains(['/', ':']),
            VolumeSource::Nfs { .. } | VolumeSource::Host(_) => true,
        };
        is_named.then(|| Self {
            source,
            mount: mount.trim_end_matches('/').to_owned(),
            is_read_only,
        })
    }

    /// Whether what is written there outlives the pod.
    pub(super) fn keeps(&self) -> bool {
        !self.is_read_only
            && !matches!(self.source, VolumeSource::ConfigMap(_) | VolumeSource::Secret(_))
    }

    /// The volume of a manifest.
    pub(super) fn of_pod(&self, name: &str) -> Value {
        let mut volume = match &self.source {
            VolumeSource::Claim(claim) => json!({"persistentVolumeClaim": {"claimName": claim}}),
            VolumeSource::Nfs { server, path } => json!({"nfs": {"server": server, "path": path}}),
            VolumeSource::Host(path) => json!({"hostPath": {"path": path}}),
            VolumeSource::ConfigMap(name) => json!({"configMap": {"name": name}}),
            VolumeSource::Secret(name) => json!({"secret": {"secretName": name}}),
        };
        volume["name"] = Value::from(name);
        volume
    }

    /// The mount of a container.
    pub(super) fn of_container(&self, name: &str) -> Value {
        let mut mount = json!({"name": name, "mountPath": self.mount});
        if self.is_read_only {
            mount["readOnly"] = Value::Bool(true);
        }
        mount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_read_as_they_are_said() {
        let volume = |text: &str| Volume::parse(text).unwrap().of_pod("v");
        assert_eq!(volume("data:/data")["persistentVolumeClaim"]["claimName"], "data");
        assert_eq!(volume("claim/data:/data"), volume("data:/data"));
        let nfs = json!({"nfs": {"server": "filer", "path": "/export/a"}, "name": "v"});
        assert_eq!(volume("nfs/filer:/export/a:/data"), nfs);
        assert_eq!(volume("host/srv/x:/data")["hostPath"]["path"], "/srv/x");
        assert_eq!(volume("secret/s:/etc/s:ro")["secret"]["secretName"], "s");
        let read_only = Volume::parse("data:/data:ro").unwrap();
        assert_eq!(read_only.of_container("v")["readOnly"], true);
        assert!(!read_only.keeps() && Volume::parse("data:/data").unwrap().keeps());
    }

    #[test]
    fn what_is_no_volume_is_none() {
        for odd in [
            "",
            "data",
            "data:",
            ":/data",
            "data:data",
            "odd/x:/data",
            "nfs/x:/data",
            "a:/..",
            "a:/",
            "claim/:/x",
        ] {
            assert_eq!(Volume::parse(odd), None, "{odd}");
        }
    }
}
