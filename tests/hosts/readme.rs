//! What docs/hosts.md says of one's own machines, typed word for word on real ones behind real servers of ssh.

use crate::common::readme::{Newcomer, PYTHON, Page};
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_script;

/// A configuration of ssh that knows `gpu1` and so on.
fn ssh_config(hosts: &Hosts) -> String {
    let one = |(number, address): (usize, String)| {
        let (ip, port) = address.split_once(':').unwrap();
        let key = hosts.path("client").display().to_string();
        format!(
            "Host gpu{number}\n HostName {ip}\n Port {port}\n IdentityFile {key}\n \
             GlobalKnownHostsFile none\n"
        )
    };
    (1..).zip(hosts.addresses()).map(one).collect()
}

#[test]
fn what_the_page_says_of_ones_own_machines_is_what_happens_there() {
    let Some(hosts) = is_installed().then(|| Hosts::machines(3, "gpu")).flatten() else { return };
    for index in 0..3 {
        let python = format!("[ \"$1\" != -V ] || exec echo Python 3.11.2\n{PYTHON}");
        write_script(&hosts.home(index).join("bin/python3"), &python);
    }
    let mut reader = Newcomer::new(&ssh_config(&hosts));
    reader.env.set("TPU_SSH_DIR", hosts.path("s"));
    reader.typed("tpu init --name alice");
    let page = Page::with(6, "docs/hosts.md");
    for example in &page.examples() {
        reader.follow(example, &example.command);
    }
    // What the text around them names.
    for line in ["tpu hosts probe lab", "tpu hosts detect gpu1", "tpu hosts show gpu2", "tpu pools"]
    {
        drop(reader.typed(line));
    }
}
