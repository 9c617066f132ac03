//! Quoted numbers, plain ones and blanks are read alike; what is not understood is listed as such and harms nothing.

use serde_json::json;

use super::{becomes, host, with};

#[test]
fn quoted_plain_and_blank_values_are_understood() {
    let env = with(
        "odd.yaml",
        "cloudmesh:\n  default:\n    user: \n  jobset:\n    hosts:\n      a:\n        name: ' '\n        ip: ~\n        \
         cpus: ' 4 '\n        max_jobs_allowed: ''\n      b:\n        ip: \"b.lab\"\n        cpu_count: 16\n        \
         max_jobs_allowed: 007\n        status: busy\n        gpu: 3,5\n        pyenv: ~/v/bin/activate\n        \
         rack: 7\n        tags: [x, y]\n      c:\n    scheduler:\n    jobs:\n",
    );
    let said = env.tpu("import cloudmesh odd.yaml --no-probe --json").exits(0).json();
    let file = &said["files"][0];
    let (a, b, c) = (host(&env, "a"), host(&env, "b"), host(&env, "c"));
    assert_eq!((&a["addresses"], &a["capacity"]["cpus"]), (&json!(["a"]), &json!(4)));
    assert_eq!(a["capacity"]["jobs"], 1, "one job where nothing is said");
    assert_eq!((&b["capacity"]["cpus"], &b["capacity"]["jobs"]), (&json!(16), &json!(7)));
    assert_eq!((&b["capacity"]["gpus"], &b["drained"]), (&json!(null), &json!(null)));
    assert_eq!(c["addresses"], json!(["c"]));
    let b = &file["hosts"][1];
    assert!(becomes(b, "gpu").contains("tpu hosts set"), "{b}");
    assert!(becomes(b, "status").contains("takes jobs"), "{b}");
    assert_eq!(host(&env, "b")["pyenv"], "~/v/bin/activate");
    for unknown in ["rack", "tags"] {
        assert!(becomes(b, unknown).contains("no field that tpu knows"), "{b}");
    }
    assert_eq!(file["policy"], json!(null));
}

#[test]
fn an_empty_file_and_an_empty_jobset_take_nothing_over() {
    let env = with("none.yaml", "cloudmesh:\n");
    let said = env.tpu("import cloudmesh none.yaml").exits(0).stdout;
    assert!(said.contains("Nothing is other than before."), "{said}");
    let env = with("none.yaml", "");
    let said = env.tpu("import cloudmesh none.yaml").exits(2).stderr;
    assert!(said.contains("it is no file of Cloudmesh"), "{said}");
}
