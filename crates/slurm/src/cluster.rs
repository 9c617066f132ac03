//! Which cluster, and how its programs are reached: all that is needed to ask it, as one line of text.

use std::fmt;

use tpu_core::model::options::KindOptions;
use tpu_system::sys::env::Env;

/// A cluster, as the handle of a run keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cluster {
    /// Path of its `slurm.conf`, where the programs would not find it by themselves.
    pub conf: Option<String>,
    /// The login node on which its programs are; without one, this machine.
    pub login: Option<LoginNode>,
    /// The account of this machine whose jobs are meant, where there is no login node.
    pub uid: Option<u32>,
}

/// A login node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginNode {
    /// The account, where it is not the one that OpenSSH takes.
    pub user: Option<String>,
    /// `host` or `host:port`.
    pub address: String,
    /// The key, where it is not the one that OpenSSH takes.
    pub key: Option<String>,
}

impl LoginNode {
    /// Reads `[user@]host[:port]`.
    pub fn parse(text: &str) -> Option<Self> {
        let (user, address) = match text.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, text),
        };
        let is_plain = |text: &str, also: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && text.chars().all(|c| c.is_alphanumeric() || also.contains(c))
        };
        let fits = is_plain(address, ".-_:[]%") && user.is_none_or(|user| is_plain(user, ".-_\\@"));
        let user = user.map(str::to_owned);
        fits.then(|| Self { user, address: address.to_owned(), key: None })
    }

    /// `user@host:port`.
    pub fn in_words(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.address),
            None => self.address.clone(),
        }
    }
}

/// What stands for the cluster of which nothing is said.
const USUAL: &str = "usual";

impl Cluster {
    /// The one that the options of a target name, for whoever asks; where they name none, that of his environment.
    pub fn of(options: &KindOptions, env: &Env) -> Self {
        let login = options.get("login").and_then(LoginNode::parse);
        let key = options.get("login-key").map(str::to_owned);
        let login = login.map(|login| LoginNode { key, ..login });
        // What the environment says of this machine is nothing to a login node.
        let by_env = env.non_empty("SLURM_CONF").filter(|_| login.is_none());
        let conf = options.get("cluster").or(by_env).map(str::to_owned);
        let uid = login.is_none().then_some(env.uid);
        Self { conf, login, uid }
    }

    /// Reads what [`fmt::Display`] has written.
    pub fn parse(text: &str) -> Self {
        let mut cluster = Self::default();
        let mut key = None;
        for word in shlex::split(text).unwrap_or_default() {
            match word.split_once('=') {
                Some(("conf", path)) => cluster.conf = Some(path.to_owned()),
                Some(("login", login)) => cluster.login = LoginNode::parse(login),
                Some(("key", path)) => key = Some(path.to_owned()),
                Some(("uid", uid)) => cluster.uid = uid.parse().ok(),
                _ => {}
            }
        }
        if let Some(login) = &mut cluster.login {
            login.key = key;
        }
        cluster
    }

    /// Where it is asked, for people.
    pub fn in_words(&self) -> String {
        match (&self.login, &self.conf) {
            (Some(login), _) => format!("the Slurm cluster behind {}", login.in_words()),
            (None, Some(conf)) => format!("the Slurm cluster of {conf}"),
            (None, None) => "the Slurm cluster of this machine".to_owned(),
        }
    }
}

/// `conf=/etc/slurm/slurm.conf uid=1000`, `login=alice@login1 key=~/.ssh/lab`, `usual`.
impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.login.as_ref();
        let words = [
            ("login", login.map(LoginNode::in_words)),
            ("key", login.and_then(|login| login.key.clone())),
            ("conf", self.conf.clone()),
            ("uid", self.uid.map(|uid| uid.to_string())),
        ];
        let words = words.into_iter().filter_map(|(name, value)| {
            let word = format!("{name}={}", value?);
            // No word of these holds a NUL, which is all that cannot be quoted.
            Some(
                shlex::try_quote(&word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned),
            )
        });
        let text = words.collect::<Vec<_>>().join(" ");
        f.write_str(if text.is_empty() { USUAL } else { &text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_reads_what_it_writes() {
        let login = |text: &str, key: Option<&str>| {
            LoginNode::parse(text).map(|node| LoginNode { key: key.map(str::to_owned), ..node })
        };
        for cluster in [
            Cluster::default(),
            Cluster { conf: Some("/etc/a b/it's.conf".to_owned()), login: None, uid: Some(7) },
            Cluster { login: login("alice@login1:2222", Some("/k e y")), ..Cluster::default() },
            Cluster { conf: Some("/c".to_owned()), login: login("[::1]:22", None), uid: None },
        ] {
            assert_eq!(Cluster::parse(&cluster.to_string()), cluster, "{cluster}");
        }
        assert_eq!(Cluster::default().to_string(), USUAL);
    }

    #[test]
    fn what_the_environment_says_counts_here_and_where_nothing_is_said() {
        let options = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<KindOptions>();
        let env = Env::fixed([("SLURM_CONF", "/env")]);
        let conf = |pairs: &[(&str, &str)]| Cluster::of(&options(pairs), &env).conf;
        assert_eq!(conf(&[]).as_deref(), Some("/env"));
        assert_eq!(conf(&[("cluster", "/said")]).as_deref(), Some("/said"));
        assert_eq!(conf(&[("login", "alice@l")]), None);
        assert_eq!(Cluster::of(&options(&[]), &env).uid, Some(env.uid));
    }

    #[test]
    fn a_login_node_is_no_option_of_ssh() {
        for odd in ["", "-oProxyCommand=x", "a b", "$(id)", "alice@", "@host", "-l@host"] {
            assert_eq!(LoginNode::parse(odd), None, "{odd}");
        }
    }
}
