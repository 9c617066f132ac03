//! `cms job template` writes a jobset that is read again, and never over another file.

use super::{becomes, lab};
use crate::common::tmux::write_file;

#[test]
fn a_template_is_read_again_with_its_jobs() {
    let env = lab();
    drop(env.tpu_words(&["cms", "job", "template", "a.yaml", "--name=b[0-1]"]).exits(0));
    let said = env.tpu("import cloudmesh a.yaml --dry-run --json").exits(0).json();
    let jobs = said["files"][0]["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b0", "b1"]);
    assert!(becomes(&jobs[0], "output").contains("output"));
    assert_eq!(jobs[0]["becomes"], "held");
    let hosts = said["files"][0]["hosts"].as_array().unwrap();
    assert_eq!(hosts[0]["name"], "localhost");
}

#[test]
fn words_that_mean_something_to_yaml_are_read_back_as_they_were() {
    let env = lab();
    for (place, value) in [
        "true",
        "12",
        "it's: here",
        "- x",
        "#5",
        "a b ",
        "{x}",
        "*a",
        "&b",
        "!c",
        "%d",
        "@e",
        "1e9",
        "~",
    ]
    .iter()
    .enumerate()
    {
        let (file, said) = (format!("t{place}.yaml"), format!("--executable={value}"));
        drop(env.tpu_words(&["cms", "job", "template", &file, "--name=007", &said]).exits(0));
        let read = env.tpu(&format!("import cloudmesh {file} --dry-run --json")).exits(0).json();
        let job = &read["files"][0]["jobs"][0];
        assert_eq!(job["name"], "007");
        let fields = job["fields"].as_array().unwrap();
        let field = fields.iter().find(|field| field["name"] == "executable").unwrap();
        assert_eq!(field["value"], value.trim(), "{file}");
    }
    let evil = ["cms", "job", "template", "e.yaml", "--executable=a\u{1b}[31m"];
    drop(env.tpu_words(&evil).exits(2));
    assert!(!env.path("e.yaml").exists());
}

#[test]
fn no_file_is_written_over_without_force() {
    let env = lab();
    write_file(&env.path("mine.yaml"), "precious\n");
    let said = env.tpu("cms job template mine.yaml").exits(4).stderr;
    assert!(said.contains("is there already") && said.contains("--force"), "{said}");
    assert_eq!(std::fs::read_to_string(env.path("mine.yaml")).unwrap(), "precious\n");
    drop(env.tpu("cms job template new.yaml --dry-run").exits(0));
    assert!(!env.path("new.yaml").exists());
    drop(env.tpu("cms job template mine.yaml --force").exits(0));
    drop(env.tpu("cms set jobset=mine.yaml").exits(0));
    // Where no file is named it is the jobset, else Cloudmesh's own place.
    drop(env.tpu("cms job template").exits(4));
    drop(env.tpu("cms job template --user bob").exits(4));
    let usual = ".cloudmesh/job/spec.yaml";
    let home = env.variables()[std::ffi::OsStr::new("HOME")].clone();
    let usual = std::path::Path::new(&home).join(usual);
    assert!(!usual.exists());
    let mut env = env;
    env.set("TPU_USER", "bob");
    drop(env.tpu("cms job template").exits(0));
    assert!(usual.exists());
    let shown = env.tpu("cms set jobset").exits(0).stdout;
    assert!(
        shown.contains("/.cloudmesh/job/spec.yaml"),
        "what is there in the usual place: {shown}"
    );
}
