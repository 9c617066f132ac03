//! Which cluster, and which of its namespaces: all that is needed to ask it, as one line of text.

use std::fmt;
use std::path::{Path, PathBuf};

use tpu_core::model::options::KindOptions;
use tpu_system::sys::env::Env;

/// The namespace where nobody names one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Where a pod finds what its account in the cluster is (Kubernetes documentation, service accounts).
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The namespace of the account whose files lie in a directory.
fn namespace_of_account(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("namespace")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A namespace of a cluster, as the handle of a run keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceAt {
    /// The kubeconfig files that name it, as `KUBECONFIG` lists them; none within a cluster, where the account of the
    /// pod is taken.
    pub kubeconfig: Option<String>,
    /// The context in them; without one, the current one.
    pub context: Option<String>,
    /// The namespace.
    pub namespace: String,
    /// The volume on which logs and checkpoints lie, if there is one: see [`super::volumes::Volume`].
    pub log_volume: Option<String>,
    /// The image of what looks there, where the target has one.
    pub image: Option<String>,
}

impl NamespaceAt {
    /// The one that the options of a target name, for whoever asks; where they name none, that of his environment.
    pub fn of(options: &KindOptions, env: &Env) -> Self {
        let said = |name| options.get(name).map(str::to_owned);
        let kubeconfig = said("kubeconfig").or_else(|| usual_kubeconfig(env));
        let of_account =
            || namespace_of_account(Path::new(ACCOUNT)).filter(|_| kubeconfig.is_none());
        let namespace = said("namespace").or_else(of_account);
        Self {
            namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            kubeconfig,
            context: said("context"),
            log_volume: said(super::options::LOG_VOLUME),
            image: said(super::options::IMAGE)
                .filter(|_| options.get(super::options::LOG_VOLUME).is_some()),
        }
    }

    /// Reads what [`fmt::Display`] has written.
    pub fn parse(text: &str) -> Self {
        let mut cluster = Self { namespace: DEFAULT_NAMESPACE.to_owned(), ..Self::default() };
        for word in shlex::split(text).unwrap_or_default() {
            match word.split_once('=') {
                Some(("kubeconfig", files)) => cluster.kubeconfig = Some(files.to_owned()),
                Some(("context", name)) => cluster.context = Some(name.to_owned()),
                Some(("namespace", name)) => name.clone_into(&mut cluster.namespace),
                Some(("log-volume", volume)) => cluster.log_volume = Some(volume.to_owned()),
                Some(("image", image)) => cluster.image = Some(image.to_owned()),
                _ => {}
            }
        }
        cluster
    }

    /// The kubeconfig files, in their order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.kubeconfig.iter().flat_map(std::env::split_paths).collect()
    }

    /// Whether both are namespaces of one cluster, asked by one user.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (&self.kubeconfig, &self.context) == (&other.kubeconfig, &other.context)
    }

    /// Where it is asked, for people.
    pub fn in_words(&self) -> String {
        match &self.context {
            Some(context) => format!("Kubernetes ({context}, namespace {})", self.namespace),
            None => format!("Kubernetes (namespace {})", self.namespace),
        }
    }

    /// The options of `kubectl` that lead to it.
    pub(crate) fn for_kubectl(&self) -> Vec<String> {
        let context = self.context.iter().map(|name| format!("--context={name}"));
        context.chain([format!("--namespace={}", self.namespace)]).collect()
    }
}

/// The files in which `kubectl` would look, as far as one of them is there.
pub(super) fn usual_kubeconfig(env: &Env) -> Option<String> {
    if let Some(files) = env.non_empty("KUBECONFIG") {
        let whole: Vec<PathBuf> = std::env::split_paths(files)
            .filter(|path| !path.as_os_str().is_empty())
            .map(|path| env.cwd.join(path))
            .collect();
        return std::env::join_paths(whole).ok()?.into_string().ok();
    }
    let usual = Path::new(env.non_empty("HOME")?).join(".kube/config");
    usual.is_file().then(|| usual.display().to_string())
}

/// `context=lab namespace=team-a`.
impl fmt::Display for NamespaceAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            ("kubeconfig", self.kubeconfig.as_deref()),
            ("context", self.context.as_deref()),
            ("namespace", Some(self.namespace.as_str())),
            ("log-volume", self.log_volume.as_deref()),
            ("image", self.image.as_deref()),
        ];
        let words = words.into_iter().filter_map(|(name, value)| {
            let word = format!("{name}={}", value?);
            // No word of these holds a NUL, which is all that cannot be quoted.
            Some(
                shlex::try_quote(&word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned),
            )
        });
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_cluster_reads_what_it_writes() {
        for cluster in [
            NamespaceAt { namespace: "default".to_owned(), ..NamespaceAt::default() },
            NamespaceAt {
                kubeconfig: Some("/a b/it's:/c".to_owned()),
                context: Some("arn:aws:eks/lab x".to_owned()),
                namespace: "team-a".to_owned(),
                log_volume: Some("claim/data:/data".to_owned()),
                image: Some("train:1".to_owned()),
            },
        ] {
            assert_eq!(NamespaceAt::parse(&cluster.to_string()), cluster, "{cluster}");
        }
    }

    #[test]
    fn the_account_of_a_pod_says_its_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let mut file = std::fs::File::create(dir.path().join("namespace")).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            namespace_of_account(dir.path())
        };
        assert_eq!(namespace_of_account(dir.path()), None, "no pod");
        assert_eq!(of("team-a\n").as_deref(), Some("team-a"));
        assert_eq!(of("\n"), None);
    }

    #[test]
    fn what_the_environment_says_counts_where_nothing_is_said() {
        let env = Env::fixed([("KUBECONFIG", "/one:/two")]);
        let options = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<KindOptions>();
        assert_eq!(
            NamespaceAt::of(&options(&[]), &env).files(),
            [Path::new("/one"), Path::new("/two")]
        );
        let said = NamespaceAt::of(&options(&[("kubeconfig", "/said"), ("namespace", "n")]), &env);
        assert_eq!((said.kubeconfig.as_deref(), said.namespace.as_str()), (Some("/said"), "n"));
    }
}
