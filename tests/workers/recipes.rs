//! Recipes on real hosts: what is so already is left alone, what is not is set up where it is not, mistakes
//! are found before anything runs, and secrets stay out of sight.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::cli::json_schema::assert_described;
use crate::common::env::TestEnv;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;

const TARGET: &str = "lab-hosts";
const SECRET: &str = "w4ndb-k3y-0f-the-lab";

/// A target of real hosts, and a file of recipes.
struct Lab {
    env: TestEnv,
    hosts: Hosts,
}

impl Lab {
    fn new(count: usize, recipes: &str) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let hosts = Hosts::new(count);
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        std::fs::create_dir_all(env.path("config/tpu")).unwrap();
        let settings = json!({ "ssh_options": hosts.options(), "ssh_key": hosts.path("client") });
        write_file(&env.path("config/tpu/settings.json"), &settings.to_string());
        write_file(&env.path("config/tpu/recipes.toml"), recipes);
        let addresses = hosts.addresses().join(",");
        drop(env.tpu(&format!("register {TARGET} --address {addresses}")).exits(0));
        Some(Self { env, hosts })
    }

    /// Worker, step and result of everything that a recipe did.
    #[track_caller]
    fn follow(&self, line: &str, code: i32) -> Vec<(u64, String, String)> {
        let json = self.env.tpu(&format!("{line} {TARGET} --json")).exits(code).json();
        assert_described("solve", &json);
        let steps = json["steps"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let step = |step: Value| {
            (step["worker"].as_u64().unwrap(), text(&step["step"]), text(&step["result"]))
        };
        steps.into_iter().map(step).collect()
    }

    /// What the set-ups of a host have noted.
    fn noted(&self, index: usize) -> String {
        std::fs::read_to_string(self.hosts.home(index).join("noted")).unwrap_or_default()
    }
}

const THREE: &str = r#"
[[recipe]]
name = "solve"

[[recipe.step]]
name = "one"
check = "test -e ~/one"
setup = "touch ~/one; echo one >>~/noted"

[[recipe.step]]
name = "two"
check = "test -e ~/two"
setup = "touch ~/two; echo two >>~/noted"

[[recipe.step]]
name = "three"
check = "test -e ~/three"
setup = "touch ~/three; echo three >>~/noted"
"#;

#[test]
fn exactly_what_is_broken_is_set_up_where_it_is_broken() {
    let Some(lab) = Lab::new(3, THREE) else { return };
    lab.follow("solve", 0);
    for index in 0..3 {
        assert_eq!(lab.noted(index), "one\ntwo\nthree\n");
        std::fs::remove_file(lab.hosts.home(index).join("noted")).unwrap();
    }
    std::fs::remove_file(lab.hosts.home(1).join("two")).unwrap();
    let done = lab.follow("solve", 0);
    let set_up: Vec<_> = done.iter().filter(|(_, _, result)| result == "set-up").collect();
    assert_eq!(set_up, [&(1, "two".to_owned(), "set-up".to_owned())]);
    assert_eq!(done.len(), 9);
    assert_eq!([lab.noted(0), lab.noted(1), lab.noted(2)], ["", "two\n", ""]);
    let again = lab.follow("solve", 0);
    assert!(again.iter().all(|(_, _, result)| result == "well"), "{again:?}");
    assert_eq!(lab.noted(1), "two\n", "nothing ran");
    let forced = lab.follow("solve --force", 0);
    assert!(forced.iter().all(|(_, _, result)| result == "set-up"), "{forced:?}");
}

#[test]
fn a_worker_stops_at_its_first_failure_and_the_others_go_on() {
    let recipes = THREE.replace("touch ~/two;", "[ $TPU_WORKER = 0 ] && touch ~/two;");
    let Some(mut lab) = Lab::new(3, &recipes) else { return };
    lab.hosts.shut(2);
    let done = lab.follow("solve", 1);
    let of = |worker: u64| -> Vec<&str> {
        done.iter().filter(|(w, ..)| *w == worker).map(|(_, _, r)| r.as_str()).collect()
    };
    assert_eq!(of(0), ["set-up", "set-up", "set-up"]);
    assert_eq!(of(1), ["set-up", "failed"]);
    assert_eq!(of(2), ["lost"]);
    let output = lab.env.tpu(&format!("solve {TARGET}")).exits(1);
    drop(
        output.says(&["[worker 1] two: failed: set up, and the check still ended with 1", ".log"]),
    );
    let logs = lab.env.path("tpu-state/recipes/lab-hosts/solve");
    let log = std::fs::read_to_string(logs.join("worker-1.02-two.log")).unwrap();
    assert!(log.contains("$ setup: ") && log.contains("$ check: test -e ~/two"), "{log}");
}

#[test]
fn a_mistake_is_found_before_anything_runs() {
    let recipes = format!("{THREE}\n[[recipe.step]]\nname = \"four\"\nsetpu = \"x\"\n");
    let Some(lab) = Lab::new(1, &recipes) else { return };
    let line = 1 + recipes.lines().position(|line| line.starts_with("setpu")).unwrap();
    let wrong = lab.env.tpu(&format!("solve {TARGET}")).exits(2);
    drop(wrong.says(&[&format!("recipes.toml:{line}: unknown field `setpu`")]));
    assert_eq!(lab.noted(0), "");
    let missing = lab.env.tpu(&format!("mount-disk {TARGET}")).exits(2);
    drop(missing.says(&["recipes.toml:"]));
    write_file(&lab.env.path("config/tpu/recipes.toml"), THREE);
    let none = lab.env.tpu(&format!("mount-disk {TARGET}")).exits(4);
    drop(none.says(&["no recipe 'mount-disk' fits lab-hosts: nobody has written", "solve"]));
}

#[test]
fn files_are_copied_with_their_rights_before_the_set_up() {
    let recipes = r#"
[[recipe]]
name = "mount-disk"
[[recipe.step]]
name = "key"
check = "test -e ~/done"
files = [{ from = "the key", to = "~/.lab/key", mode = "640" }]
setup = "[ $(stat -c %a ~/.lab/key) = 640 ] && grep -q text ~/.lab/key && touch ~/done"
"#;
    let Some(lab) = Lab::new(2, recipes) else { return };
    let absent = lab.env.tpu(&format!("mount-disk {TARGET}")).exits(1);
    drop(absent.says(&["the key: No such file"]));
    write_file(&lab.env.path("the key"), "text");
    let done = lab.follow("mount-disk", 0);
    assert!(done.iter().all(|(_, _, result)| result == "set-up"), "{done:?}");
}

#[test]
fn the_machines_of_a_target_are_described_on_demand() {
    let Some(lab) = Lab::new(2, "") else { return };
    let described = lab.env.tpu(&format!("describe {TARGET} --machines")).exits(0);
    drop(described.says(&["NOT_WATCHED", "[worker 0] ", "[worker 1] ", "describe on lab-hosts"]));
    let json = lab.env.tpu(&format!("describe {TARGET} --machines --json")).exits(0).json();
    assert_described("describe", &json);
    assert_eq!(json["machines"].as_array().unwrap().len(), 2);
    assert_eq!(json["target"]["addresses"].as_array().unwrap().len(), 2);
}

/// Whether a text is in any file below a directory.
fn is_below(dir: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let is_dir = path.is_dir() && !path.is_symlink();
        let bytes = std::fs::read(&path).unwrap_or_default();
        is_dir && is_below(&path, text) || String::from_utf8_lossy(&bytes).contains(text)
    })
}

#[test]
fn the_key_of_weights_and_biases_is_on_no_command_line_in_no_log_and_no_answer() {
    let Some(mut lab) = Lab::new(2, "") else { return };
    drop(lab.env.tpu(&format!("set-wandb {TARGET}")).exits(1).says(&["$WANDB_API_KEY"]));
    lab.env.set("WANDB_API_KEY", SECRET);
    let over = AtomicBool::new(false);
    let (output, looks) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                    let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                    assert!(!String::from_utf8_lossy(&line).contains(SECRET));
                }
                looks += 1;
            }
            looks
        });
        let output = lab.env.tpu(&format!("set-wandb {TARGET} --json")).exits(0);
        over.store(true, Ordering::Relaxed);
        (output, watch.join().unwrap())
    });
    assert!(looks > 3, "{looks}");
    assert!(!output.to_string().contains(SECRET));
    for index in 0..2 {
        let netrc = lab.hosts.home(index).join(".netrc");
        assert!(std::fs::read_to_string(&netrc).unwrap().contains(SECRET));
        assert_eq!(netrc.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(!is_below(&lab.env.path("tpu-state"), SECRET));
    let again = lab.follow("set-wandb", 0);
    assert!(again.iter().all(|(_, _, result)| result == "well"), "{again:?}");
}
