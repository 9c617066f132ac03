//! Which login or key is missing, by what the programs say that reach a machine; and what a person can do about it.
//!
//! Such a failure is the same each time until a person has done something, so nothing is tried again before that.

/// Words of a program, and what a person can do about what they say.
struct Sign {
    /// All of these are in its line.
    words: &'static [&'static str],
    remedy: &'static str,
}

const KEY: &str = "the key of this account is missing or not let in: name the right one (`tpu set-settings ssh_key FILE`, \
                   for a host `tpu hosts set HOST --key FILE`), or let it in: ssh-copy-id";
const GCLOUD: &str = "log in: gcloud auth login";

/// The more telling ones first. ssh: sshconnect2.c and ssh.c of OpenSSH; gcloud: its own messages of 2020 to 2025.
const SIGNS: [Sign; 9] = [
    Sign {
        words: &["gcloud auth application-default login"],
        remedy: "log in: gcloud auth application-default login",
    },
    Sign { words: &["gcloud auth login"], remedy: GCLOUD },
    Sign { words: &["do not currently have an active account"], remedy: GCLOUD },
    Sign { words: &["Reauthentication", "cannot prompt"], remedy: GCLOUD },
    Sign { words: &["problem refreshing your current auth tokens"], remedy: GCLOUD },
    Sign { words: &["Permission denied ("], remedy: KEY },
    Sign { words: &["Identity file", "not accessible"], remedy: KEY },
    Sign { words: &["no such identity:"], remedy: KEY },
    Sign { words: &["Too many authentication failures"], remedy: KEY },
];

/// What a person can do about a failure that is one of a login or a key; `None` if it is another one.
pub fn remedy(said: &str) -> Option<&'static str> {
    let is_said = |sign: &&Sign| {
        sign.words.iter().all(|word| said.contains(word)) || said.contains(sign.remedy)
    };
    SIGNS.iter().find(is_said).map(|sign| sign.remedy)
}

/// Words of ssh about a machine to which a person has to log in once, or whose name is wrong. No later try helps.
const NO_WAY: [&str; 4] = [
    "Could not resolve hostname",
    "Host key verification failed",
    "REMOTE HOST IDENTIFICATION HAS CHANGED",
    "host key is known for",
];

/// Whether ssh fails in the same way until a person does something: the name does not resolve, the host key is unknown or
/// another one, or the login is refused.
pub fn needs_person(said: &str) -> bool {
    NO_WAY.iter().any(|words| said.contains(words)) || remedy(said).is_some()
}

/// A line of what a program said, with what a person can do about it where the whole of it is a matter of a login or a key.
pub fn with_remedy(line: String, said: &str) -> String {
    match remedy(said) {
        // Who says so himself needs no second word for it.
        Some(remedy) if !line.contains(remedy) => format!("{line}; {remedy}"),
        Some(_) | None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_key_and_a_missing_login_name_what_to_do() {
        for (said, remedy_has) in [
            ("alice@h: Permission denied (publickey,password).", "ssh-copy-id"),
            ("Warning: Identity file /k not accessible: No such file or directory.", "--key FILE"),
            ("no such identity: /k: No such file or directory", "ssh_key FILE"),
            (
                "ERROR: (gcloud.x) You do not currently have an active account selected.",
                "gcloud auth login",
            ),
            ("Please run: $ gcloud auth login to obtain new credentials.", "gcloud auth login"),
            (
                "Reauthentication failed. cannot prompt during non-interactive execution.",
                "gcloud auth login",
            ),
            ("run `gcloud auth application-default login`", "application-default login"),
        ] {
            let told = with_remedy("failed".to_owned(), said);
            assert!(told.starts_with("failed; ") && told.contains(remedy_has), "{told}");
            assert_eq!(with_remedy(told.clone(), &told), told, "known again, and said once");
        }
    }

    #[test]
    fn a_wrong_name_an_unknown_key_and_a_refused_login_need_a_person() {
        for said in [
            "ssh: Could not resolve hostname gpu9: Name or service not known",
            "Host key verification failed.",
            "No ED25519 host key is known for gpu1 and you have requested strict checking.",
            "alice@gpu1: Permission denied (publickey).",
        ] {
            assert!(needs_person(said), "{said}");
        }
        assert!(!needs_person("ssh: connect to host 10.0.0.1 port 22: Connection timed out"));
        assert!(!needs_person("no answer within 10 s"));
    }

    #[test]
    fn what_may_pass_by_itself_is_none_of_it() {
        for said in [
            "ssh: connect to host 10.0.0.1 port 22: Connection refused",
            "Connection timed out during banner exchange",
            "cat: /data/x: Permission denied",
            "kex_exchange_identification: Connection closed by remote host",
            "the connection broke",
        ] {
            assert_eq!(remedy(said), None, "{said}");
        }
    }
}
