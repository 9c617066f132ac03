//! Volumes of a job, as a person says them and as a manifest has them.

use serde_json::{Map, Value, json};

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
    /// Reads one as settings and flavors have it: text, or an object.
    pub(super) fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Object(members) => Self::of_members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        }
    }

    /// Reads `{"claim": NAME, "mount": PATH, "read_only": true}`, with `nfs`, `configmap`, `secret` or `host` in the place of
    /// the claim.
    fn of_members(members: &Map<String, Value>) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (mut what, mut mount, mut is_read_only) = (None, None, false);
        for (key, value) in members {
            match key.as_str() {
                "mount" => mount = Some(text(value)?),
                "read_only" | "readOnly" => is_read_only = value.as_bool()?,
                "nfs" if value.is_object() => {
                    let of = |key: &str| value.get(key).and_then(text);
                    what = what.xor(Some(format!("nfs/{}:{}", of("server")?, of("path")?)));
                    what.as_ref()?;
                }
                "claim" | "nfs" | "configmap" | "secret" | "host" => {
                    what = what.xor(Some(format!("{key}/{}", text(value)?)));
                    what.as_ref()?;
                }
                _ => return None,
            }
        }
        let volume = Self::parse(&format!("{}:{}", what?, mount?))?;
        Some(Self { is_read_only: is_read_only || volume.is_read_only, ..volume })
    }

    /// Reads `[KIND/]WHAT:/MOUNT[:ro]`, or the JSON of an object.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') {
            return Self::of_members(&serde_json::from_str(text).ok()?);
        }
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

    /// The claim, where it is one.
    pub(super) fn claim(&self) -> Option<&str> {
        match &self.source {
            VolumeSource::Claim(name) => Some(name),
            VolumeSource::Nfs { .. }
            | VolumeSource::Host(_)
            | VolumeSource::ConfigMap(_)
            | VolumeSource::Secret(_) => None,
        }
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
    fn an_object_says_the_same() {
        for (object, text) in [
            (r#"{"claim": "data", "mount": "/data"}"#, "data:/data"),
            (r#"{"nfs": "filer:/export", "mount": "/data"}"#, "nfs/filer:/export:/data"),
            (r#"{"nfs": {"server": "filer", "path": "/e"}, "mount": "/d"}"#, "nfs/filer:/e:/d"),
            (r#"{"host": "/srv/x", "mount": "/data", "read_only": false}"#, "host/srv/x:/data"),
            (r#"{"secret": "s", "mount": "/etc/s", "readOnly": true}"#, "secret/s:/etc/s:ro"),
            (r#"{"mount": "/c", "configmap": "c", "read_only": true}"#, "configmap/c:/c:ro"),
        ] {
            let of_value = Volume::of_value(&serde_json::from_str(object).unwrap());
            assert_eq!(Volume::parse(object), of_value, "{object}");
            assert_eq!(of_value, Volume::parse(text), "{object}");
            assert!(of_value.is_some(), "{object}");
        }
        for odd in [
            r#"{"claim": "data"}"#,
            r#"{"mount": "/data"}"#,
            r#"{"claim": "a", "secret": "b", "mount": "/d"}"#,
            r#"{"claim": "a", "mount": "d"}"#,
            r#"{"claim": "a", "mount": "/d", "read_only": "perhaps"}"#,
            r#"{"claim": "a", "mount": "/d", "size": 3}"#,
            r#"{"claim": 3, "mount": "/d"}"#,
            r#"{"nfs": "filer", "mount": "/d"}"#,
            "{",
        ] {
            assert_eq!(Volume::parse(odd), None, "{odd}");
        }
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
