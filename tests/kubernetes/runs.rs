//! A namespace is a target as any other: what runs there is started, watched, stopped, brought back and cleared away by
//! the commands that do so with windows.

use serde_json::json;

use super::lab::{Lab, settings};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

#[test]
fn it_trains_with_progress_and_loss_in_the_list_and_finishes() {
    let lab = Lab::new();
    let window = lab.train("a", "lr=0.1");
    lab.wait_starts("a", 1);
    assert_eq!(lab.starts("a"), ["--config.training.learning_rate=0.1"]);
    assert!(!lab.env.has_window("alice", window), "no window of ours");
    wait_until("its loss", || lab.shown(window)["progress"]["loss"] == 0.5);
    let shown = lab.shown(window);
    assert_eq!((&shown["status"], &shown["target"]), (&json!("running"), &json!("lab")));
    assert_eq!(shown["progress"]["total"], 1000);
    drop(lab.tpu("check").exits(0).says(&["running", "loss 0.5", "lab"]));
    drop(lab.tpu(&format!("explain {window}")).exits(0).says(&["running", "loss 0.5"]));
    let raw = lab.tpu(&format!("show {window} --raw")).exits(0);
    drop(raw.says(&["Running", "\"kind\": \"Job\"", &lab.name(window)]));

    // Whoever follows it hears all of it, and is let go at its end, which the daemon writes down.
    let _monitor = lab.daemon(&[]);
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| lab.tpu(&format!("logs {window} -f")).exits(0));
        lab.end("a", "echo the last line; exit 0");
        follower.join().unwrap()
    });
    drop(followed.says(&["step 1/1000", "the last line"]));
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    let shown = lab.shown(window);
    assert_eq!((&shown["status"], &shown["exit_code"]), (&json!("finished"), &json!(0)));
    assert_eq!(lab.jobs(), [lab.name(window)]);
}

#[test]
fn code_and_words_arrive_as_they_are() {
    let lab = Lab::new();
    lab.env.code("alice", "show.sh", "printf '<%s>' \"$@\"; echo; pwd\n");
    let words = ["sh", "show.sh", "a  b", "$HOME $(PATH) $$", "it's", "line\ntwo", "", "*"];
    let window = lab.run_words(&words, "");
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    let printed = lab.logs(window);
    assert_eq!(printed, "<a  b><$HOME $(PATH) $$><it's><line\ntwo><><*>\n/tpu/code\n");
    let script = lab.tpu(&format!("script {window}")).exits(0);
    drop(script.says(&["\"kind\": \"Job\"", "show.sh"]));
}

#[test]
fn what_would_be_submitted_is_shown_and_checked_by_the_server() {
    let lab = Lab::new();
    let would = lab.tpu("run lab --dry-run -- python3 train.py").exits(0);
    drop(would.says(&["would take it", "\"kind\": \"Job\"", "train:1", "\"cpu\": \"1000m\""]));
    assert!(lab.jobs().is_empty() && lab.env.jobs("alice").is_empty());
    let refused = lab.tpu("run lab --dry-run -r {\"name\":\"x\",\"resources\":{\"requests\":{\"cpu\":\"lots\"}}} -- true");
    assert_eq!(refused.code, 2, "{}", refused.report());
    for (words, code, says) in [
        ("-r none", 2, "no flavor none"),
        ("-v odd", 2, "no volume"),
        ("-j Not_A_Name", 2, "no name of a Job"),
        ("--annotations nothing", 2, "column"),
    ] {
        let said = lab.tpu(&format!("run lab -q {words} -- true"));
        assert_eq!(said.code, code, "{words}: {}", said.report());
        assert!(said.stderr.contains(says), "{words}: {}", said.stderr);
    }
    assert!(lab.jobs().is_empty());
}

#[test]
fn a_kill_stops_exactly_it_and_clean_archives_it() {
    let lab = Lab::new();
    let (one, other) = (lab.train("a", ""), lab.train("b", ""));
    lab.wait_starts("a", 1);
    lab.wait_starts("b", 1);
    let (one_name, other_name) = (lab.name(one), lab.name(other));
    drop(lab.tpu(&format!("kill {one} -y")).exits(0));
    assert_eq!(lab.env.job("alice", one)["status"], "killed");
    assert_eq!(lab.jobs(), [other_name]);
    assert!(lab.cluster.pods(&one_name).is_empty());
    assert_eq!(lab.shown(other)["status"], "running");
    assert!(lab.logs(one).contains("step 1/1000"), "what it printed is here");
    drop(lab.tpu("clean alice -y").exits(0));
    let left = lab.env.jobs("alice");
    assert_eq!(left.iter().map(|job| &job["windows_id"]).collect::<Vec<_>>(), [other]);
}

#[test]
fn a_name_that_is_taken_is_refused_and_nothing_is_left() {
    let lab = Lab::new();
    lab.cluster.run("mine", "sleep 1000");
    let refused = lab.tpu("run lab -q -j mine -- true");
    assert_eq!(refused.code, 4, "{}", refused.report());
    assert!(refused.stderr.contains("mine"), "{}", refused.stderr);
    assert_eq!(lab.jobs(), ["mine"]);
    let left = lab.cluster.get("/api/v1/namespaces/lab/configmaps?labelSelector=tpu.launch");
    assert_eq!(left["items"], json!([]));
    let window = lab.run("exit 0", "-j its-own");
    assert_eq!(lab.name(window), "its-own");
}

#[test]
fn a_secret_is_in_its_environment_and_goes_with_it() {
    let mut lab = Lab::new();
    let value = "v4lue-of-a-secret";
    lab.env.set("WANDB_API_KEY", value);
    let file = lab.env.path("code-alice/job.yaml");
    write_file(
        &file,
        "target: lab\nsecrets: [WANDB_API_KEY]\ncommand: [sh, -c, 'echo ${#WANDB_API_KEY}; sleep 1000']\n",
    );
    let run = lab.tpu(&format!("run {} -q --json", file.display())).exits(0);
    let window = run.json()["launched"]["window"].as_u64().unwrap();
    wait_until("it has begun", || lab.printed(window).contains(&value.len().to_string()));
    let name = lab.name(window);
    let job = lab.cluster.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{name}"));
    assert!(!job.to_string().contains(value));
    let path = "/api/v1/namespaces/lab/secrets?labelSelector=tpu.launch";
    let secrets = lab.cluster.get(path);
    assert_eq!(secrets["items"][0]["metadata"]["ownerReferences"][0]["name"], json!(name));
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.get(path)["items"], json!([]));
    assert!(!String::from_utf8_lossy(&lab.env.data_bytes()).contains(value));
}

#[test]
fn a_variable_that_is_named_goes_with_its_secret() {
    let mut lab = Lab::new();
    let value = "c4nary-of-a-shell";
    lab.env.set("A_VALUE", value);
    lab.env.set("FOO", value);
    let says = "echo \"${#A_VALUE} ${FOO:-none}\"; sleep 1000";
    let words = ["run", "lab", "-q", "--json", "--env", "A_VALUE", "--", "sh", "-c", says];
    let run = lab.env.tpu_words(&words).exits(0);
    let window = run.json()["launched"]["window"].as_u64().unwrap();
    let seen = format!("{} none", value.len());
    wait_until("it has begun", || lab.printed(window).contains(&seen));
    let name = lab.name(window);
    let job = lab.cluster.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{name}"));
    assert!(!job.to_string().contains(value));
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    let left = lab.cluster.get("/api/v1/namespaces/lab/secrets?labelSelector=tpu.launch");
    assert_eq!(left["items"], json!([]));
    assert!(!String::from_utf8_lossy(&lab.env.data_bytes()).contains(value));
}

#[test]
fn namespaces_in_which_one_may_create_jobs_are_imported() {
    let lab = Lab::bare(1);
    let all = lab.tpu("targets import --kind kubernetes -y").exits(0);
    drop(all.says(&["admin", "lab"]));
    let targets = lab.env.data()["targets"].clone();
    assert_eq!(targets["lab"]["options"]["namespace"], "lab");
    assert_eq!(targets["admin"]["kind"], "kubernetes");
}

#[test]
fn resume_goes_on_from_the_checkpoint_on_its_volume() {
    let lab = Lab::bare(2);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    lab.cluster.make("persistentvolumeclaims", &claim);
    drop(
        lab.tpu("register lab --kind kubernetes --context lab -i train:1 -r no-gpu --log-volume data:/data")
            .exits(0),
    );
    let first = lab.train("a", "");
    lab.wait_starts("a", 1);
    wait_until("a checkpoint", || lab.printed(first).contains("step 3/"));
    drop(lab.tpu(&format!("kill {first} -y")).exits(0));
    let log = lab.env.job("alice", first)["log_dir"].as_str().unwrap().to_owned();
    assert!(log.starts_with("/data/tpu-logs/"), "{log}");
    // What it wrote in its pod went with that; what it logged is listed where it lies, and comes back.
    let listed = lab.tpu(&format!("files {first} --json")).exits(0).json();
    assert_eq!(listed["dir"], log.as_str(), "{listed}");
    let path = listed["files"][0]["path"].as_str().unwrap();
    assert!(path.contains("checkpoint"), "{listed}");
    let to = lab.env.path("back");
    let get = ["files", &first.to_string(), "--get", path, "--to", to.to_str().unwrap()];
    drop(lab.env.tpu_words(&get).exits(0));
    assert!(to.join(path).is_file());
    drop(lab.tpu(&format!("resume w={first} --force")).exits(0));
    lab.wait_starts("a", 2);
    assert!(lab.starts("a")[1].contains(&format!("load_from={log}")), "{:?}", lab.starts("a"));
    assert!(
        !std::path::Path::new("/data/tpu-logs").exists(),
        "nothing is written here in its place"
    );
    let left = lab.cluster.get("/apis/batch/v1/namespaces/lab/jobs?labelSelector=tpu.look");
    assert_eq!(left["items"], json!([]), "what looked is gone");
}

#[test]
fn who_names_an_image_and_no_target_means_the_only_namespace_or_the_usual_one() {
    let lab = Lab::bare(1);
    let none = lab.tpu("run -q -i train:1 -r no-gpu -- true");
    assert_eq!(none.code, 3, "{}", none.report());
    drop(none.says(&["tpu register lab --kind kubernetes"]));
    drop(lab.tpu("register lab --kind kubernetes --context lab --namespace lab").exits(0));
    let run = lab.tpu("run alice -q -i train:1 -r no-gpu --json -- true").exits(0).json();
    assert_eq!(run["launched"]["target"], "lab", "{run}");
    drop(lab.tpu("submit alice --hold -i train:1 -r no-gpu -- true").exits(0));
    let waits = lab.env.data()["queue"]["entries"][0].to_string();
    assert!(waits.contains("\"lab\""), "{waits}");
    drop(lab.tpu("dequeue 2 -y").exits(0));
    // Of several it is that of the current context, or what the settings say.
    drop(lab.tpu("register other --kind kubernetes --context lab --namespace other").exits(0));
    let several = lab.tpu("run -q -i train:1 -r no-gpu -- true");
    assert_eq!(several.code, 2, "{}", several.report());
    drop(several.says(&["lab, other", "\"target\": NAME", "kubernetes.json"]));
    settings(&lab, r#"{"target": "lab"}"#);
    let run = lab.tpu("run alice -q -i train:1 -r no-gpu --json -- true").exits(0).json();
    assert_eq!(run["launched"]["target"], "lab", "{run}");
    // Without an image nothing is said of a cluster.
    assert_eq!(lab.tpu("run -q -- true").code, 2);
}

#[test]
fn a_volume_claim_that_is_not_there_is_said_when_the_target_is_made_known() {
    let lab = Lab::bare(1);
    let line = "register lab --kind kubernetes --context lab -i a -r no-gpu -v data:/data \
        --log-volume logs:/logs -v nfs/filer:/e:/e";
    let told = lab.tpu(line).exits(0);
    for says in ["no volume claim data", "no volume claim logs"] {
        assert!(told.stderr.contains(says), "{}", told.stderr);
    }
    let claim = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }})
    };
    lab.cluster.make("persistentvolumeclaims", &claim("data"));
    let told = lab.tpu(line).exits(0);
    assert_eq!(told.stderr.matches("volume claim").count(), 1, "{}", told.stderr);
    lab.cluster.make("persistentvolumeclaims", &claim("logs"));
    assert_eq!(lab.tpu(line).exits(0).stderr, "");
}
