//! People log in to their machines with the shell that they like: what is said there arrives byte for byte all the same.

use std::os::unix::fs::chown;

use serde_json::json;

use crate::common::accounts::{Accounts, mode};
use crate::common::tmux::write_file;

use super::Lab;

/// What shells read differently: quotes, backslashes, `!`, and more than one line.
const HOSTILE: &str = "echo 'back\\slash' \"it's\" 'hi!there' '$HOME'\necho \"$((6 * 7))\"";

#[test]
fn whatever_the_login_shell_is_a_command_arrives_as_it_was_typed() {
    let Some(accounts) = Accounts::new(1) else { return };
    let account = &accounts.all()[0];
    for shell in ["/bin/bash", "/bin/dash", "/bin/zsh", "/usr/bin/fish", "/bin/tcsh"] {
        if !accounts.take_shell(shell) {
            continue;
        }
        let Some(lab) = Lab::new(1) else { return };
        for open in ["", "authorized"].map(|name| lab.hosts.path(name)) {
            mode(&open, 0o755);
        }
        chown(lab.hosts.home(0), Some(account.uid()), Some(account.uid())).unwrap();
        let settings = json!({
            "ssh_options": lab.hosts.options(),
            "ssh_key": lab.hosts.path("client"),
            "ssh_user": account.name,
        });
        write_file(&lab.env.path("settings.json"), &settings.to_string());
        let added = lab.add("h1 --max-jobs 2").exits(0).json();
        assert_eq!(added["added"][0]["machine"]["hostname"], "h1", "{shell}: {added}");
        let said = lab.env.tpu_words(&["ssh", "h1", "--command", HOSTILE]).exits(0);
        let expected = "back\\slash it's hi!there $HOME\n42\n";
        assert_eq!(said.stdout, expected, "{shell}: {said}");
    }
}
