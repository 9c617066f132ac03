//! What a container becomes on this machine: its variables, its words, its volumes, and the program that is started.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::cluster::{Cluster, text};
use super::mounts::{self, Mount};
use super::quantity::Quantity;
use super::resources::{ApiResource, CLAIMS, CONFIG_MAPS, SECRETS};
use super::store::ObjectKey;
use tpu_system::sys::proc::Spawn;

/// Where programs of containers lie.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The variable by which the processes of a pod are known, whatever session they made for themselves.
pub(super) const MARK: &str = "EMULATED_POD_UID";

/// Why a container does not begin.
#[derive(Debug, PartialEq)]
pub(super) enum Hindrance {
    /// Its volumes are not there: it waits.
    Mount(String),
    /// What its variables come from is not there: it waits.
    Config(String),
    /// It cannot be started at all.
    Start(String),
}

/// What is known of a pod on this machine.
pub(super) struct PodPlace<'a> {
    pub(super) pod: &'a Value,
    /// Its own directory.
    pub(super) dir: &'a Path,
    /// The directory of volume claims of all pods.
    pub(super) claims: &'a Path,
}

/// The values of a config map or a secret.
fn data_of(
    cluster: &Cluster,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Option<BTreeMap<String, Vec<u8>>> {
    let object = cluster.store.get(&ObjectKey::new(resource, namespace, name))?;
    let plain = object["data"].as_object().into_iter().flatten();
    let coded = object["binaryData"].as_object().into_iter().flatten();
    let is_secret = resource.is(&SECRETS);
    let bytes = |value: &Value, is_coded: bool| {
        if is_coded {
            STANDARD.decode(text(value)).unwrap_or_default()
        } else {
            text(value).as_bytes().to_vec()
        }
    };
    let plain = plain.map(|(key, value)| (key.clone(), bytes(value, is_secret)));
    Some(plain.chain(coded.map(|(key, value)| (key.clone(), bytes(value, true)))).collect())
}

/// The variables of a container, in their order.
fn variables(
    cluster: &Cluster,
    pod: &Value,
    container: &Value,
) -> Result<Vec<(String, String)>, Hindrance> {
    let namespace = text(&pod["metadata"]["namespace"]);
    let mut all: Vec<(String, String)> = Vec::new();
    let lost = |what: &str, name: &str| Hindrance::Config(format!("{what} {name:?} not found"));
    for source in container["envFrom"].as_array().into_iter().flatten() {
        for (key, resource, word) in
            [("configMapRef", &CONFIG_MAPS, "configmap"), ("secretRef", &SECRETS, "secret")]
        {
            if !source[key].is_object() {
                continue;
            }
            let name = text(&source[key]["name"]);
            match data_of(cluster, resource, namespace, name) {
                Some(data) => all.extend(data.into_iter().map(|(key, value)| {
                    let value = String::from_utf8_lossy(&value).into_owned();
                    (format!("{}{key}", text(&source["prefix"])), value)
                })),
                None if source[key]["optional"] == Value::Bool(true) => {}
                None => return Err(lost(word, name)),
            }
        }
    }
    for env in container["env"].as_array().into_iter().flatten() {
        let from = &env["valueFrom"];
        let value = if from["fieldRef"].is_object() {
            field(pod, text(&from["fieldRef"]["fieldPath"]))
        } else if from["resourceFieldRef"].is_object() {
            resource(container, &from["resourceFieldRef"])
        } else if from["configMapKeyRef"].is_object() || from["secretKeyRef"].is_object() {
            let (of, resource, word, kind) = if from["secretKeyRef"].is_object() {
                (&from["secretKeyRef"], &SECRETS, "secret", "Secret")
            } else {
                (&from["configMapKeyRef"], &CONFIG_MAPS, "configmap", "ConfigMap")
            };
            let (name, key) = (text(&of["name"]), text(&of["key"]));
            let data = data_of(cluster, resource, namespace, name);
            let found = data.as_ref().and_then(|data| data.get(key));
            match found {
                Some(value) => String::from_utf8_lossy(value).into_owned(),
                None if of["optional"] == Value::Bool(true) => continue,
                None if data.is_none() => return Err(lost(word, name)),
                None => {
                    let what = format!("couldn't find key {key} in {kind} {namespace}/{name}");
                    return Err(Hindrance::Config(what));
                }
            }
        } else {
            expanded(text(&env["value"]), &all)
        };
        let name = text(&env["name"]).to_owned();
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    Ok(all)
}

/// A field of a pod: `metadata.name`, `metadata.labels['app']`.
fn field(pod: &Value, path: &str) -> String {
    if let Some((map, key)) = path.split_once("['") {
        let map = map.split('.').fold(pod, |at, part| &at[part]);
        return text(&map[key.trim_end_matches("']")]).to_owned();
    }
    match path {
        "status.podIP" | "status.hostIP" => "127.0.0.1".to_owned(),
        path => text(path.split('.').fold(pod, |at, part| &at[part])).to_owned(),
    }
}

/// An amount that a container has: `limits.cpu`, in parts of a divisor.
fn resource(container: &Value, of: &Value) -> String {
    let at = text(&of["resource"]);
    let (list, name) = at.split_once('.').unwrap_or((at, ""));
    let amount =
        Quantity::parse(text(&container["resources"][list][name])).unwrap_or(Quantity::ZERO);
    let divisor = Quantity::parse(text(&of["divisor"])).map_or(1000, Quantity::milli).max(1);
    let parts = (amount.milli() + divisor - 1) / divisor;
    parts.to_string()
}

/// Words with `$(NAME)` in them; `$$(NAME)` stays as it is with one sign less.
pub(super) fn expanded(word: &str, variables: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out += before;
        if let Some(escaped) = from.strip_prefix("$$") {
            out.push('$');
            rest = escaped;
            continue;
        }
        let named = from.strip_prefix("$(").and_then(|inner| inner.split_once(')'));
        let known = named.and_then(|(name, after)| {
            let found = variables.iter().rev().find(|(known, _)| known == name)?;
            Some((&found.1, after))
        });
        if let Some((value, after)) = known {
            out += value;
            rest = after;
        } else {
            out.push('$');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    out + rest
}

/// The volumes that a container mounts, made ready on the disk.
fn mounted(
    cluster: &Cluster,
    place: &PodPlace<'_>,
    container: &Value,
) -> Result<Vec<Mount>, Hindrance> {
    let pod = place.pod;
    let namespace = text(&pod["metadata"]["namespace"]);
    let mut mounts = Vec::new();
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let name = text(&mount["name"]);
        let all = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let Some(volume) = all.into_iter().find(|volume| text(&volume["name"]) == name) else {
            continue;
        };
        // Nobody in a container here talks to the server.
        if text(&mount["mountPath"]) == "/var/run/secrets/kubernetes.io/serviceaccount" {
            continue;
        }
        let io = |error: io::Error| {
            Hindrance::Mount(format!("MountVolume.SetUp failed for volume {name:?} : {error}"))
        };
        let own = place.dir.join("volumes").join(name);
        let mut source = if volume["emptyDir"].is_object() {
            std::fs::create_dir_all(&own).map_err(io)?;
            own
        } else if volume["hostPath"].is_object() {
            let path = PathBuf::from(text(&volume["hostPath"]["path"]));
            if text(&volume["hostPath"]["type"]) == "DirectoryOrCreate" {
                std::fs::create_dir_all(&path).map_err(io)?;
            }
            path
        } else if volume["persistentVolumeClaim"].is_object() {
            let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
            if cluster.store.get(&ObjectKey::new(&CLAIMS, namespace, claim)).is_none() {
                return Err(Hindrance::Mount(format!("persistentvolumeclaim {claim:?} not found")));
            }
            let path = place.claims.join(namespace).join(claim);
            std::fs::create_dir_all(&path).map_err(io)?;
            path
        } else {
            files(cluster, namespace, volume, &own)?;
            own
        };
        let below = text(&mount["subPath"]);
        if !below.is_empty() {
            if Path::new(below)
                .components()
                .any(|part| !matches!(part, std::path::Component::Normal(_)))
            {
                return Err(Hindrance::Mount(format!("subPath {below:?} leaves volume {name:?}")));
            }
            source = source.join(below);
            if !source.exists() {
                std::fs::create_dir_all(&source).map_err(io)?;
            }
        }
        if !source.exists() {
            let why = format!("hostPath {} is not there", source.display());
            return Err(Hindrance::Mount(format!(
                "MountVolume.SetUp failed for volume {name:?} : {why}"
            )));
        }
        mounts.push(Mount {
            source,
            at: PathBuf::from(text(&mount["mountPath"])),
            is_read_only: mount["readOnly"] == Value::Bool(true),
        });
    }
    Ok(mounts)
}

/// A config map or a secret as files.
fn files(cluster: &Cluster, namespace: &str, volume: &Value, dir: &Path) -> Result<(), Hindrance> {
    let name = text(&volume["name"]);
    let failed = |why: String| {
        Hindrance::Mount(format!("MountVolume.SetUp failed for volume {name:?} : {why}"))
    };
    let (of, resource, word, key) = if volume["configMap"].is_object() {
        (&volume["configMap"], &CONFIG_MAPS, "configmap", "name")
    } else if volume["secret"].is_object() {
        (&volume["secret"], &SECRETS, "secret", "secretName")
    } else {
        return Err(failed(
            "this cluster has volumes of these sorts only: emptyDir, hostPath, configMap, secret, \
             persistentVolumeClaim"
                .to_owned(),
        ));
    };
    let called = text(&of[key]);
    let data = match data_of(cluster, resource, namespace, called) {
        Some(data) => data,
        None if of["optional"] == Value::Bool(true) => BTreeMap::new(),
        None => return Err(failed(format!("{word} {called:?} not found"))),
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(error.to_string()))?;
    let default_mode = of["defaultMode"].as_u64().unwrap_or(0o644);
    let chosen: Vec<(String, String, u64)> = match of["items"].as_array() {
        Some(items) => items
            .iter()
            .map(|item| {
                let mode = item["mode"].as_u64().unwrap_or(default_mode);
                (text(&item["key"]).to_owned(), text(&item["path"]).to_owned(), mode)
            })
            .collect(),
        None => data.keys().map(|key| (key.clone(), key.clone(), default_mode)).collect(),
    };
    for (key, path, mode) in chosen {
        let bytes = data
            .get(&key)
            .ok_or_else(|| failed(format!("references non-existent {word} key: {key}")))?;
        let inside = Path::new(&path)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            return Err(failed(format!("{path:?} is no path within a volume")));
        }
        let path = dir.join(path);
        let write = || -> io::Result<()> {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let mut file = std::fs::File::create(&path)?;
            io::Write::write_all(&mut file, bytes)?;
            let mode = u32::try_from(mode).unwrap_or(0o644);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
        };
        write().map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

/// The program of a container, ready to be started.
pub(super) fn program(
    cluster: &Cluster,
    place: &PodPlace<'_>,
    container: &Value,
) -> Result<Spawn, Hindrance> {
    let pod = place.pod;
    let mounts = mounted(cluster, place, container)?;
    let variables = variables(cluster, pod, container)?;
    let of = |key: &str| container[key].as_array().into_iter().flatten();
    let words: Vec<String> =
        of("command").chain(of("args")).map(|word| expanded(text(word), &variables)).collect();
    let unstartable = |why: String| {
        Hindrance::Start(format!(
            "failed to create containerd task: OCI runtime create failed: {why}: unknown"
        ))
    };
    // Every image is here as one without an entry point: its arguments are the command then.
    let Some((program, arguments)) = words.split_first() else {
        let why = "no command specified (this cluster has no images to take one from)";
        return Err(unstartable(why.to_owned()));
    };
    let path = variables.iter().find(|(name, _)| name == "PATH").map_or(PATH, |(_, path)| path);
    let runs = |file: &Path| {
        std::fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let home = place.dir.join("home");
    std::fs::create_dir_all(&home).map_err(|error| unstartable(error.to_string()))?;
    let directory = match text(&container["workingDir"]) {
        "" => home.clone(),
        said => PathBuf::from(said),
    };
    let is_mounted = |path: &Path| mounts.iter().any(|mount| path.starts_with(&mount.at));
    if !is_mounted(Path::new(program)) {
        if program.contains('/') {
            if !runs(&directory.join(program)) && !is_mounted(&directory) {
                return Err(unstartable(format!(
                    "exec: {program:?}: stat {program}: no such file or directory"
                )));
            }
        } else if !std::env::split_paths(path)
            .any(|dir| runs(&dir.join(program)) || is_mounted(&dir))
        {
            return Err(unstartable(format!(
                "exec: {program:?}: executable file not found in $PATH"
            )));
        }
    }
    if !directory.is_dir() && !is_mounted(&directory) {
        let why = format!(
            "chdir to cwd ({:?}): no such file or directory",
            directory.display().to_string()
        );
        return Err(unstartable(why));
    }
    let spawn = if mounts.is_empty() {
        Spawn::new(program).args(arguments).cwd(&directory)
    } else {
        let root = place.dir.join(format!("root-{}", text(&container["name"])));
        mounts::within(&mounts, &root, &directory, &words).map_err(Hindrance::Mount)?
    };
    let mut spawn = spawn
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", home.as_os_str())
        .env("HOSTNAME", text(&pod["metadata"]["name"]));
    for (name, value) in variables {
        spawn = spawn.env(name, value);
    }
    Ok(spawn.env(MARK, text(&pod["metadata"]["uid"])))
}
