//! The examples of docs/api.md, as they stand there, with the programs for which they are written and a real server.

use std::path::{Path, PathBuf};

use tpu_core::model::token::TokenRole;

use super::Api;
use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;

const PAGE: &str = include_str!("../../docs/api.md");

/// The blocks of a kind in the section about notebooks.
fn blocks(kind: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once("\n## From a notebook\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let fence = format!("```{kind}\n");
    let blocks = section.split(fence.as_str()).skip(1);
    blocks.map(|block| block.split_once("```").unwrap().0).collect()
}

/// Where a program is; says that its example is skipped where there is none.
#[expect(clippy::print_stderr, reason = "what is skipped says so")]
fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"];
    let found = places.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no {name} to run the example of docs/api.md with");
    }
    found
}

/// A server with code to run, and the only example of a kind run against it.
fn run(kind: &str, name: &str, program: &Path) -> (Api, CommandOutput) {
    let mut api = Api::new(|_| Vec::new());
    api.env.code("alice", "staging.sh", "true\n");
    let token = api.token("notebook", TokenRole::Operator, &["alice"]);
    let address = format!("http://{}", api.address);
    api.env.set("TPU_API", address);
    api.env.set("TPU_TOKEN", token);
    let path = api.env.path(name);
    let [block] = blocks(kind)[..] else { panic!("one example of {kind}") };
    write_file(&path, block);
    let said = api.env.output(&api.env.spawn_program(program.to_str().unwrap(), &[path]));
    (api, said)
}

/// Insists that two jobs were submitted by the token: one has ended well, and one was killed.
fn has_done_it(api: &Api) {
    let statuses: Vec<_> = api
        .env
        .jobs("alice")
        .iter()
        .map(|job| job["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(statuses, ["finished", "killed"]);
    let events = api.env.journal();
    let queued = events.iter().filter(|event| event.kind == "queued");
    let actors: Vec<&str> = queued.map(|event| event.actor.as_str()).collect();
    assert_eq!(actors, ["api token notebook"; 2]);
}

#[test]
fn the_example_with_curl_does_what_it_says() {
    let (Some(bash), Some(_)) = (program("bash"), program("curl")) else { return };
    let (api, said) = run("bash", "notebook.sh", &bash);
    let said = said.exits(0);
    assert_eq!(said.stdout, "step 1\nloss 0.5\nalice/2 is over\n", "{}", said.report());
    has_done_it(&api);
}

#[test]
fn the_example_with_python_does_what_it_says() {
    let Some(python) = program("python3") else { return };
    let (api, said) = run("python", "notebook.py", &python);
    let said = said.exits(0);
    let printed = "finished\nstep 1\nloss 0.5\n/api/v1/jobs/alice/2 is over\n";
    assert_eq!(said.stdout, printed, "{}", said.report());
    has_done_it(&api);
}
