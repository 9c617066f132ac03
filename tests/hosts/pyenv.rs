//! A machine's Python environment is read before a job begins there, and changes nothing about the job's own words.

use crate::common::tmux::write_file;

use super::Lab;

#[test]
fn it_is_read_before_a_job_begins_and_a_missing_one_is_told() {
    let Some(lab) = Lab::new(1) else { return };
    let file = lab.hosts.home(0).join("v/bin/activate");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    // As real ones do: it looks at words, sets, and takes away.
    let activate = "[ \"$#\" = 0 ] || echo \"words: $*\"\nexport VIRTUAL_ENV=v\nunset PYTHONHOME\nset -- gone\n";
    write_file(&file, activate);
    drop(lab.add("h1 --max-jobs 2 --pyenv ~/v/bin/activate").exits(0));
    let says = |window: u64, status: &str| {
        lab.env.wait_status(window, status);
        lab.env.tpu(&format!("logs {window}")).exits(0).stdout
    };
    let job = [
        "run",
        "h1",
        "-q",
        "--",
        "sh",
        "-c",
        "echo \"$VIRTUAL_ENV:$*\"; exit 0",
        "x",
        "it's a",
        "*",
    ];
    drop(lab.env.tpu_words(&job).exits(0));
    let said = says(1, "finished");
    assert!(said.contains("v:it's a *") && !said.contains("words"), "{said}");

    std::fs::remove_file(&file).unwrap();
    drop(lab.env.tpu_words(&job).exits(0));
    let said = says(2, "error");
    assert!(said.contains("v/bin/activate, which is read before a job starts here"), "{said}");
    assert!(said.contains("tpu hosts set HOST --pyenv FILE"), "{said}");
    drop(lab.env.tpu("hosts set h1 --pyenv none").exits(0));
    drop(lab.env.tpu_words(&job).exits(0));
    assert!(says(3, "finished").contains(":it's a *"));

    let here = lab.env.tpu("hosts set local --pyenv ~/v/bin/activate").exits(2);
    drop(here.says(&["local is this machine"]));
}
