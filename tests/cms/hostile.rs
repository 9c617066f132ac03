//! A file that means harm costs little, says where it is wrong, and changes nothing.

use super::with;
use crate::common::tmux::write_file;

/// Texts, and the code with which each is refused.
fn texts() -> Vec<(&'static str, String)> {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    let hosts = "cloudmesh:\n  jobset:\n    hosts:\n";
    let deep: Vec<String> = (0..500).map(|depth| " ".repeat(depth) + "k:\n").collect();
    let deep = deep.concat();
    vec![
        ("aliases of aliases", format!("{bomb}cloudmesh: *a11\n")),
        ("an alias of itself", "cloudmesh: &a\n  jobset: *a\n".to_owned()),
        ("tabs", "cloudmesh:\n\tjobset:\n\t\thosts:\n".to_owned()),
        ("the same key twice", format!("{hosts}      a: {{ip: x}}\n      a: {{ip: y}}\n")),
        ("a field twice", format!("{hosts}      a:\n        ip: x\n        ip: y\n")),
        ("depth", deep),
        ("brackets", "[".repeat(100_000)),
        ("an escape in a name", format!("{hosts}      \"a\\e[31m\": {{ip: x}}\n")),
        ("a bell in a value", format!("{hosts}      a: {{ip: \"x\\a\"}}\n")),
        (
            "an escape in the name of a job",
            "cloudmesh:\n  jobset:\n    jobs:\n      \"a\\e[31m\": {}\n".to_owned(),
        ),
        (
            "a bell in a command",
            "cloudmesh:\n  jobset:\n    jobs:\n      a: {executable: \"x\\a\"}\n".to_owned(),
        ),
        (
            "a list as a command",
            "cloudmesh:\n  jobset:\n    jobs:\n      a: {executable: [x, y]}\n".to_owned(),
        ),
        ("an object", "cloudmesh: !!python/object/apply:os.system [id]\n".to_owned()),
        ("two documents", "cloudmesh: {}\n---\ncloudmesh: {}\n".to_owned()),
        ("a long name", format!("{hosts}      ? {}\n      : {{ip: x}}\n", "a b".repeat(5000))),
        ("no YAML", "%!PS\n@@@ {{{ : - \n".to_owned()),
        ("a list", format!("{hosts}      - a\n      - b\n")),
    ]
}

#[test]
fn hostile_files_are_refused_with_their_place_and_change_nothing() {
    for (what, text) in texts() {
        let env = with("evil.yaml", &text);
        let before = env.data_bytes();
        let said = env.tpu("import cloudmesh evil.yaml --no-probe").exits(2);
        assert!(said.stderr.contains("evil.yaml") && said.stderr.contains("hint:"), "{what}");
        assert!(said.stdout.is_empty(), "{what}: {}", said.report());
        let is_safe = |c: char| !c.is_control() || c == '\n';
        assert!(said.stderr.chars().all(is_safe), "{what}: {:?}", said.stderr);
        assert!(said.stderr.len() < 40_000, "{what}: {} bytes", said.stderr.len());
        assert_eq!(env.data_bytes(), before, "{what}");
    }
}

#[test]
fn bytes_that_are_no_text_are_said_with_their_line() {
    let env = with("evil.yaml", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(env.path("evil.yaml"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"cloudmesh:\n  \xff\xfe: 1\n"))
        .unwrap();
    let said = env.tpu("import cloudmesh evil.yaml").exits(2).stderr;
    assert!(said.contains("evil.yaml:2: it is no text in UTF-8"), "{said}");
    write_file(&env.path("large.yaml"), &"# x\n".repeat((4 << 20) / 4 + 1));
    let said = env.tpu("import cloudmesh large.yaml").exits(2).stderr;
    assert!(said.contains("bytes; at most"), "{said}");
    for no_file in ["/dev/zero", "."] {
        let said = env.tpu(&format!("import cloudmesh {no_file}")).exits(5).stderr;
        assert!(said.contains("cannot read"), "{said}");
    }
}

#[test]
fn anchors_and_merged_keys_are_what_they_stand_for() {
    let env = with(
        "anchors.yaml",
        "common: &common\n  max_jobs_allowed: 3\n  cpus: '8'\ncloudmesh:\n  jobset:\n    hosts:\n      a:\n        \
         <<: *common\n        ip: a.lab\n",
    );
    drop(env.tpu("import cloudmesh anchors.yaml --no-probe").exits(0));
    let known = super::host(&env, "a");
    assert_eq!(
        (known["capacity"]["jobs"].as_u64(), known["capacity"]["cpus"].as_u64()),
        (Some(3), Some(8))
    );
}
