//! The disk of jobs: this machine's for their code, and the volume that their logs and checkpoints lie on, which is seen
//! from within the cluster alone. What lies there is looked up by a small Job that mounts the volume, and kept for a
//! moment: whoever looks for checkpoints asks several times about one directory.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use tpu_core::model::job::Job;
use tpu_engine::runner::files::{Content, Entry, Files, Listing, ThisDisk};
use tpu_engine::runner::tree::{self, InTree};
use tpu_system::sys::clock::Clock;

use super::cluster::NamespaceAt;
use super::manifest::{MAIN, usual_security};
use super::names::JobRef;
use super::request::{PATIENCE, PlainLog, Trouble};
use super::settings::KubernetesSettings;
use super::site::Site;
use super::volumes::Volume;
use super::{WORD, facts, note};

/// A look may take so long: an image may have to be pulled first.
const LOOKING: Duration = Duration::from_secs(90);

/// What was seen is taken for so for this time.
const FRESH: Duration = Duration::from_secs(15);

/// The image of what looks, where none is known: it needs a shell, `ls`, `head` and `tail`.
const IMAGE: &str = "busybox";

/// What a look asks for of what a job may have to ask for.
const LITTLE: [(&str, &str); 3] =
    [("cpu", "100m"), ("memory", "64Mi"), ("ephemeral-storage", "64Mi")];

/// What lies in a directory and in `checkpoints` below it: for each `D` or `-` whether it is there, then a letter for what
/// each entry holds, and its name.
const LIST: &str = r#"for d in "$1" "$1/checkpoints"; do
    if [ ! -e "$d" ]; then echo "= none"; continue; fi
    if [ ! -d "$d" ]; then echo "= file"; continue; fi
    cd -- "$d" || { echo "= closed"; continue; }
    echo "= directory"
    for f in * .[!.]* ..?*; do
        [ -e "$f" ] || [ -L "$f" ] || continue
        if [ -d "$f" ]; then if [ -n "$(ls -A -- "$f" | head -n 1)" ]; then k=D; else k=N; fi
        elif [ -s "$f" ]; then k=F; else k=N; fi
        printf '%s %s\n' "$k" "$f"
    done
done
echo "= over""#;

/// A part of a file, behind a word that says whether it is there.
const READ: &str = r#"[ -f "$1" ] || { echo none; exit; }; echo file; tail -c "+$2" -- "$1" 2>/dev/null | head -c "$3"; echo; echo "= over""#;

/// The files below a directory, with their bytes and the second in which they were written. busybox has no `-printf`.
const TREE: &str = r#"[ -d "$1" ] || { echo none; exit; }; cd -- "$1" && find . ! -type d -exec stat -c 'f %s %Y %n' {} \; && echo "= over""#;

/// What was seen in directories, by the cluster and their paths.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<(String, PathBuf), (Duration, Seen)>>);

/// What is in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    NotThere,
    NoDirectory,
    Closed,
    Entries(Vec<(String, Content)>),
}

/// The disk.
pub(super) struct JobDisk<'a> {
    pub(super) site: &'a Site<'a>,
    pub(super) looks: Arc<Looks>,
}

impl JobDisk<'_> {
    /// The volume on which a path lies, if it lies on one.
    fn volume(&self, path: &Path) -> Option<Volume> {
        let volume = Volume::parse(self.site.cluster.log_volume.as_deref()?)?;
        path.starts_with(&volume.mount).then_some(volume)
    }

    /// What is in a directory of the volume.
    fn seen(&self, volume: &Volume, dir: &Path) -> io::Result<Seen> {
        let key = (self.site.cluster.to_string(), dir.to_owned());
        let now = self.site.effects.clock.monotonic();
        let known = |looks: &Looks| {
            let all = looks.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (at, seen) = all.get(&key)?;
            (now.saturating_sub(*at) < FRESH).then(|| seen.clone())
        };
        if let Some(seen) = known(&self.looks) {
            return Ok(seen);
        }
        let said = self.look((volume, dir), LIST, &[&text(dir)?])?;
        let mut parts = read(&String::from_utf8_lossy(&said))?.into_iter();
        let (own, below) = (parts.next(), parts.next());
        let unsaid = || io::Error::other("what looked there has not said what there is");
        let own = own.ok_or_else(unsaid)?;
        let mut all = self.looks.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (at, _)| now.saturating_sub(*at) < FRESH);
        all.insert(key, (now, own.clone()));
        if let Some(below) = below {
            let path = dir.join("checkpoints");
            all.insert((self.site.cluster.to_string(), path), (now, below));
        }
        Ok(own)
    }

    /// Runs a script beside the volume on which a path lies; what it has printed.
    fn look(
        &self,
        (volume, path): (&Volume, &Path),
        script: &str,
        words: &[&str],
    ) -> io::Result<Vec<u8>> {
        let namespace = self.site.namespace();
        let name = format!("tpu-look-{}", self.site.effects.random.hex(8));
        let failed = |trouble: Trouble| io::Error::new(io::ErrorKind::TimedOut, trouble.why());
        let manifest = self.manifest(&name, (volume, path), script, words);
        let made = namespace.create_job(manifest, false);
        let uid = made.map_err(failed)?.metadata.uid.unwrap_or_default();
        let printed = self.printed(&name);
        // It goes by itself soon, where this is not heard.
        drop(namespace.delete_job(&name, &uid));
        printed
    }

    fn manifest(
        &self,
        name: &str,
        (volume, path): (&Volume, &Path),
        script: &str,
        words: &[&str],
    ) -> Value {
        let command: Vec<&str> =
            ["sh", "-c", script, "look"].into_iter().chain(words.iter().copied()).collect();
        let command: Vec<String> = command.iter().map(|word| word.replace('$', "$$")).collect();
        let labels = json!({"app.kubernetes.io/managed-by": "tpu", "tpu.look": name});
        let mut pod = json!({
            "restartPolicy": "Never", "automountServiceAccountToken": false,
            "containers": [{
                "name": MAIN, "image": IMAGE, "command": command,
                "volumeMounts": [volume.of_container("volume-0")],
            }],
            "volumes": [volume.of_pod("volume-0")],
        });
        if let Some(like) = self.pod_of(path) {
            admitted_like(&mut pod, &like);
        } else {
            let settings = KubernetesSettings::read().unwrap_or_default();
            pod["securityContext"] = usual_security(&settings, self.site.effects);
            if let Some(image) = &self.site.cluster.image {
                pod["containers"][0]["image"] = Value::from(image.as_str());
            }
        }
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "backoffLimit": 0, "activeDeadlineSeconds": LOOKING.as_secs(),
                "ttlSecondsAfterFinished": 60,
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        })
    }

    /// What the pod of the job asked for to whose directory a path belongs; else that of the newest job on this target.
    fn pod_of(&self, path: &Path) -> Option<Value> {
        let effects = self.site.effects;
        let data = effects.data().ok()?;
        let is_here = |job: &&Job| {
            job.engine.as_ref().filter(|of| of.kind.as_str() == WORD).is_some_and(|of| {
                let at = NamespaceAt::parse(&of.cluster);
                at.is_beside(&self.site.cluster) && at.namespace == self.site.cluster.namespace
            })
        };
        let mut jobs: Vec<&Job> = data.jobs().filter(is_here).collect();
        let is_its_own = |job: &Job| job.log_dir.as_ref().is_some_and(|dir| path.starts_with(dir));
        let begun = |job: &Job| job.launch.as_ref().map(|launch| launch.at);
        jobs.sort_by_key(|job| std::cmp::Reverse((is_its_own(job), begun(job))));
        jobs.into_iter().find_map(|job| {
            let text = note::manifest(effects, &JobRef::of(job).token)?;
            let mut manifest: Value = serde_json::from_str(&text).ok()?;
            let pod = manifest["spec"]["template"]["spec"].take();
            pod.is_object().then_some(pod)
        })
    }

    /// Waits until what looks has come to its end.
    fn printed(&self, name: &str) -> io::Result<Vec<u8>> {
        let clock: &dyn Clock = &*self.site.effects.clock;
        let deadline = clock.monotonic() + LOOKING;
        let mut pause = Duration::from_millis(50);
        let failed = |trouble: Trouble| io::Error::new(io::ErrorKind::TimedOut, trouble.why());
        loop {
            let selector = format!("tpu.look={name}");
            let found = self.site.namespace().pods_of_label(&selector, PATIENCE);
            let (pods, _) = found.map_err(failed)?;
            match pods.first().map(|pod| (pod, facts::phase(pod))) {
                Some((pod, "Succeeded")) => {
                    let log = PlainLog { pod: facts::name(pod), container: MAIN };
                    return self.site.namespace().plain_log(&log).map_err(failed);
                }
                Some((_, "Failed")) => {
                    return Err(io::Error::other("what looks at the volume has failed there"));
                }
                Some(_) | None if clock.monotonic() >= deadline => {
                    let what = "what looks at the volume has not begun in time";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
                Some(_) | None => {}
            }
            clock.sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

/// Has the pod of a look be one that the cluster takes as it took that of a job, which sees the same volume: where the job's
/// image is pulled, a node may take it, and what a quota wants to be said is said. It asks for little, and for no device: it
/// waits for none of the nodes that the job waits for, and takes nobody's place, unless it looks at the disk of such a node.
fn admitted_like(pod: &mut Value, like: &Value) {
    if !pod["volumes"][0]["hostPath"].is_null() && !like["nodeSelector"].is_null() {
        pod["nodeSelector"] = like["nodeSelector"].clone();
    }
    for key in ["securityContext", "imagePullSecrets", "serviceAccountName", "tolerations"] {
        if !like[key].is_null() {
            pod[key] = like[key].clone();
        }
    }
    let job = &like["containers"][0];
    let container = &mut pod["containers"][0];
    if job["image"].is_string() {
        container["image"] = job["image"].clone();
    }
    for of in ["requests", "limits"] {
        for (name, little) in LITTLE {
            if !job["resources"][of][name].is_null() {
                container["resources"][of][name] = Value::from(little);
            }
        }
    }
}

/// A path as a word of a command.
fn text(path: &Path) -> io::Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let what = format!("{} is no UTF-8: nobody can ask for it", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// Reads what [`TREE`] has printed: all of it, or nothing.
fn files_of(said: &str) -> io::Result<Option<Vec<InTree>>> {
    if said == "none\n" {
        return Ok(None);
    }
    let list = said
        .strip_suffix("= over\n")
        .ok_or_else(|| io::Error::other("what looks at the volume was cut off"))?;
    let of_find = |line: &str| format!("{}\0\0", line.replacen(" ./", " ", 1));
    tree::read(list.lines().map(of_find).collect::<String>().as_bytes()).map(Some)
}

/// Reads what [`LIST`] has printed: all of it, or nothing.
fn read(said: &str) -> io::Result<Vec<Seen>> {
    if said.lines().last() != Some("= over") {
        return Err(io::Error::other("what looks at the volume was cut off"));
    }
    let mut parts: Vec<Seen> = Vec::new();
    for line in said.lines() {
        match line.split_once(' ') {
            Some(("=", "none")) => parts.push(Seen::NotThere),
            Some(("=", "file")) => parts.push(Seen::NoDirectory),
            Some(("=", "closed")) => parts.push(Seen::Closed),
            Some(("=", "directory")) => parts.push(Seen::Entries(Vec::new())),
            Some((kind, name)) => {
                let content = match kind {
                    "D" => Content::Directory,
                    "F" => Content::File,
                    _ => Content::Nothing,
                };
                if let Some(Seen::Entries(entries)) = parts.last_mut() {
                    entries.push((name.to_owned(), content));
                }
            }
            None => {}
        }
    }
    Ok(parts)
}

impl Files for JobDisk<'_> {
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        match self.volume(path) {
            Some(volume) => {
                Ok(matches!(self.seen(&volume, path)?, Seen::Entries(_) | Seen::Closed))
            }
            None => ThisDisk.is_dir(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        let Some(volume) = self.volume(dir) else { return ThisDisk.list(dir) };
        Ok(match self.seen(&volume, dir)? {
            Seen::NotThere => Listing::NotThere,
            Seen::NoDirectory => Listing::NoDirectory,
            Seen::Closed => {
                let what = format!("{} may not be read there", dir.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            Seen::Entries(entries) => {
                let entry = |(name, content): (String, Content)| Entry {
                    name: name.into(),
                    content: Ok(Some(content)),
                };
                Listing::Entries { entries: entries.into_iter().map(entry).collect(), unread: None }
            }
        })
    }

    /// A volume that is not mounted is seen by nobody: no pod begins without it.
    fn has_disk(&self, path: &Path) -> bool {
        match self.volume(path) {
            Some(volume) => self.seen(&volume, path).is_ok(),
            None => ThisDisk.has_disk(path),
        }
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(volume) = self.volume(path) else { return ThisDisk.read(path, from, most) };
        let words = [text(path)?, from.saturating_add(1).to_string(), most.to_string()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.look((&volume, path), READ, &words)?;
        if said == b"none\n" {
            return Ok(None);
        }
        let content =
            said.strip_prefix(b"file\n").and_then(|rest| rest.strip_suffix(b"\n= over\n"));
        let cut = || io::Error::other("what looks at the volume was cut off");
        content.map(|content| Some(content.to_vec())).ok_or_else(cut)
    }

    /// Directories on the volume are made where a job begins.
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        if self.volume(dir).is_some() { Ok(()) } else { ThisDisk.make_dir(dir) }
    }

    fn tree(&self, dir: &Path) -> io::Result<Option<Vec<InTree>>> {
        let Some(volume) = self.volume(dir) else { return ThisDisk.tree(dir) };
        let said = self.look((&volume, dir), TREE, &[&text(dir)?])?;
        files_of(&String::from_utf8_lossy(&said))
    }

    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        if self.volume(to).is_some() {
            let why = format!("code is not copied to {}, which is a volume", to.display());
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        ThisDisk.put(from, what, to, copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_all_or_nothing() {
        let said = "= directory\nD checkpoint_1\nF wandb_run_id.txt\nN a b\n= none\n= over\n";
        let entries = [
            ("checkpoint_1", Content::Directory),
            ("wandb_run_id.txt", Content::File),
            ("a b", Content::Nothing),
        ];
        let entries = entries.map(|(name, content)| (name.to_owned(), content)).to_vec();
        assert_eq!(read(said).unwrap(), [Seen::Entries(entries), Seen::NotThere]);
        assert!(read("= directory\nD checkpoint_1\n").is_err(), "cut off");
        assert!(read("").is_err());
    }
}
