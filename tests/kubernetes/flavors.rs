//! `tpu flavors`: what is built in, and over it the settings of a user.

use serde_json::json;

use super::lab::{Lab, settings};

#[test]
fn flavors_are_listed_with_the_default_and_errors_have_their_place() {
    let lab = Lab::bare(1);
    let built_in = lab.tpu("flavors").exits(0);
    drop(built_in.says(&["NAME", "MEMORY LIM", "no-gpu", "small-gpu", "1000m", "no default"]));
    settings(
        &lab,
        r#"{"job": {"resources": {"default": "no-gpu", "predefined": [
            {"name": "large-gpu", "description": "for those who wait",
             "resources": {"requests": {"cpu": 8, "memory": "64G", "amd.com/gpu": 2}}}]}}}"#,
    );
    let own = lab.tpu("flavors").exits(0);
    drop(own.says(&["no-gpu *", "large-gpu", "64G", "for those who wait", "* is the default"]));
    let told = lab.tpu("flavors --json").exits(0).json();
    assert_eq!(told["answer"]["default"], json!("no-gpu"));
    let names: Vec<_> = told["answer"]["flavors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flavor| &flavor["name"])
        .collect();
    assert_eq!(names, ["no-gpu", "small-gpu", "large-gpu"]);
    crate::cli::json_schema::assert_described("of-kind", &told);

    settings(&lab, "{\n  \"job\": {\"resources\": 3}\n}");
    let broken = lab.tpu("flavors");
    assert_eq!(broken.code, 2, "{}", broken.report());
    assert!(broken.stderr.contains("kubernetes.json: line 2, column "), "{}", broken.stderr);
    drop(lab.tpu("flavors x").exits(2));
    drop(lab.tpu("help --all").exits(0).says(&["flavors"]));
}
