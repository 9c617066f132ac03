//! How ssh reaches a machine is a setting of a person as of the machine from which it is reached: it holds for what is asked,
//! for what waits in the queue and for the launcher in a job's window, whatever cloud there is.

use serde_json::json;

use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn what_a_user_says_of_ssh_holds_with_and_without_a_cloud() {
    for cloud in ["none", "sim"] {
        let Some(mut lab) = Lab::new(1) else { return };
        lab.env.set("TPU_CLOUD", cloud);
        write_file(&lab.env.path("settings.json"), "{}");
        let mut data = lab.env.two_users();
        data["users"]["alice"]["settings"]["ssh_options"] = json!(lab.hosts.options());
        data["users"]["alice"]["settings"]["ssh_key"] = json!(lab.hosts.path("client"));
        lab.env.write_data(&data);
        drop(lab.add("h1 --max-jobs 2").exits(0));
        drop(lab.env.tpu("run h1 -q -- echo it is there").exits(0));
        wait_until("it has run", || lab.env.tpu("logs 1").stdout.contains("it is there"));
        drop(lab.env.tpu("submit h1 -- echo it has waited").exits(0));
        let _monitor = lab.env.start_tpu("daemon run", &[]);
        wait_until("that has run", || lab.env.tpu("logs 2").stdout.contains("it has waited"));
    }
}
