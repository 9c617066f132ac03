//! A directory that real accounts of a group share: each writes what all write, and what is wrong there is said with what
//! to type. Only root can make accounts: elsewhere these tests are skipped, and say so.
//!
//! slow: each account has a tmux server and runs jobs.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use crate::common::accounts::{Account, Accounts, mode};
use crate::common::readme::Page;

/// The directory of the page, made as root makes it there.
fn made_by_root(accounts: &Accounts) -> PathBuf {
    let lab = accounts.place().join("lab");
    std::fs::create_dir(&lab).unwrap();
    chown(&lab, Some(0), Some(accounts.gid())).unwrap();
    mode(&lab, 0o2770);
    lab
}

/// Accounts of one group, who share the directory `lab`, which the first has made; the last account is not in the group.
fn sharing(accounts: &Accounts) -> PathBuf {
    let [first, others @ .., _] = accounts.all() else { panic!("two at least") };
    let place = accounts.place();
    chown(&place, Some(first.uid()), Some(first.uid())).unwrap();
    let lab = place.join("lab");
    let line = format!("init --no-input --shared {} --group {}", lab.display(), accounts.group());
    drop(accounts.types(first, &line).exits(0).says(&[
        &format!("is shared with the accounts of group {}", accounts.group()),
        &accounts.shown(&format!("Each of the others types: tpu init --shared {}", lab.display())),
    ]));
    for other in others {
        let line = format!("init --no-input --shared {}", lab.display());
        drop(accounts.types(other, &line).exits(0));
    }
    lab
}

/// What lies in a directory, at any depth.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(below(&path));
        }
        all.push(path);
    }
    all
}

/// The lines of the journal that name a job of an account.
fn journal(lab: &Path, account: &Account) -> usize {
    let text = std::fs::read_to_string(lab.join("tpu-state/events.jsonl")).unwrap();
    text.lines().filter(|line| line.contains(&format!("\"user\":\"{}\"", account.name))).count()
}

#[test]
fn the_page_is_what_accounts_type_and_read() {
    let Some(accounts) = Accounts::new(2) else { return };
    let lab = made_by_root(&accounts);
    let [alice, bob, _] = accounts.all() else { unreachable!() };
    let meant = |text: &str| {
        let words =
            [("alice", &*alice.name), ("bob", &*bob.name), ("/srv/lab", lab.to_str().unwrap())];
        let text = text.replace("group lab", &format!("group {}", accounts.group()));
        words.iter().fold(text, |text, (word, meant)| text.replace(word, meant))
    };
    for example in Page::with(6, "docs/shared.md").examples() {
        let account = if example.remark == "bob" { bob } else { alice };
        let line = meant(example.command.strip_prefix("tpu ").unwrap());
        let output = accounts.types(account, &line).exits(0);
        let printed: Vec<String> =
            example.printed.iter().map(|line| accounts.shown(&meant(line))).collect();
        let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
        drop(output.says(&printed));
    }
}

#[test]
fn accounts_of_a_group_share_a_directory() {
    let Some(accounts) = Accounts::new(2) else { return };
    let lab = sharing(&accounts);
    let [alice, bob, carol] = accounts.all() else { unreachable!() };
    let refused = accounts.types(carol, &format!("init --no-input --shared {}", lab.display()));
    drop(refused.exits(4).says(&["usermod -aG", accounts.group()]));

    for account in [alice, bob, alice, bob] {
        let ran = accounts.job(account, "echo it is done");
        assert_eq!(ran.stderr, "", "nothing is to be warned of\n{}", ran.report());
    }
    for (reader, owner) in [(alice, bob), (bob, alice)] {
        let line = format!("logs w=1 {}", owner.name);
        drop(accounts.types(reader, &line).exits(0).says(&["it is done"]));
        drop(accounts.types(reader, "doctor").exits(0).says(&["is shared with the accounts"]));
        assert!(journal(&lab, owner) >= 2, "the journal has what {} did", owner.name);
    }
    let group = std::fs::metadata(&lab).unwrap().gid();
    for path in below(&lab) {
        let about = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(about.gid(), group, "{}", path.display());
        if about.is_dir() {
            assert_eq!(about.mode() & 0o2000, 0o2000, "the group goes on below {}", path.display());
        }
    }
    for log in below(&lab).iter().filter(|path| path.ends_with("output.log")) {
        let rights = std::fs::metadata(log).unwrap().mode() & 0o060;
        assert_eq!(rights, 0o060, "the group reads and writes {}", log.display());
    }
}

#[test]
fn a_directory_that_an_account_cannot_write_is_said_and_mended() {
    let Some(accounts) = Accounts::new(2) else { return };
    let lab = sharing(&accounts);
    let [alice, bob, _] = accounts.all() else { unreachable!() };
    for account in [alice, bob] {
        drop(accounts.job(account, "true"));
    }
    // As an earlier version left it: the first account made it for itself.
    let logs = lab.join(format!("tpu-state/logs/{}", bob.name));
    chown(&logs, Some(alice.uid()), Some(alice.uid())).unwrap();
    mode(&logs, 0o755);
    let refused = accounts.types(bob, "run local -q -- true").exits(5);
    drop(refused.says(&["cannot write", "permission denied", &alice.name, "tpu doctor"]));
    drop(accounts.types(bob, "wait w=2").exits(3));
    drop(accounts.types(bob, "submit local -- true").exits(0));
    drop(accounts.types(bob, "queue").exits(0).says(&["held by tpu: cannot write in"]));
    let data = lab.join("data.json");
    let repair =
        format!("as {}, or as root: tpu doctor --fix --data {}", alice.name, data.display());
    let repair = accounts.shown(&repair);
    drop(accounts.types(bob, "doctor").exits(1).says(&["cannot write", &repair]));
    drop(
        accounts
            .types(alice, "doctor")
            .exits(0)
            .says(&["not shared with group", "tpu doctor --fix"]),
    );
    drop(accounts.types(alice, "doctor --fix").exits(0).says(&["fixed the rights of 1 file"]));
    drop(accounts.types(bob, "doctor").exits(0));
    drop(accounts.types(bob, "unhold 2").exits(0).says(&["Started"]));
    drop(accounts.types(bob, "wait status:running status:starting"));
    // The journal of one account alone is no journal of the others.
    let journal = lab.join("tpu-state/events.jsonl");
    chown(&journal, Some(alice.uid()), Some(alice.uid())).unwrap();
    mode(&journal, 0o600);
    drop(accounts.types(bob, "doctor").exits(1).says(&["cannot write", "events.jsonl", &repair]));
    // A link leads to nobody's own files.
    let own = alice.home().join("diary");
    drop(std::fs::File::create(&own).unwrap());
    chown(&own, Some(alice.uid()), Some(alice.uid())).unwrap();
    mode(&own, 0o600);
    std::os::unix::fs::symlink(&own, lab.join("tpu-state/figures.json")).unwrap();
    drop(accounts.types(alice, "doctor --fix").exits(0));
    assert_eq!(std::fs::metadata(&own).unwrap().mode() & 0o777, 0o600);
    std::fs::remove_file(lab.join("tpu-state/figures.json")).unwrap();
    chown(&journal, Some(alice.uid()), Some(alice.uid())).unwrap();
    mode(&journal, 0o600);
    let again = format!("init --no-input --shared {}", lab.display());
    drop(accounts.types(bob, &again).exits(0).says(&["not shared", "events.jsonl", &repair]));
    drop(accounts.types(alice, &again).exits(0).says(&["Shared 1 file"]));
    drop(accounts.types(bob, "doctor").exits(0));
}

#[test]
fn the_daemon_of_its_account_starts_a_job_and_others_are_told_whose_it_is() {
    let Some(accounts) = Accounts::new(2) else { return };
    drop(sharing(&accounts));
    let [alice, bob, _] = accounts.all() else { unreachable!() };
    drop(accounts.types(alice, "hosts set local --max-jobs 1").exits(0));
    let waits = "read -r -t 60 <> <(:)";
    drop(accounts.tpu(alice, &["run", "local", "-q", "--", "bash", "-c", waits]).exits(0));
    drop(accounts.types(bob, "submit local -- true").exits(0));
    let said = format!("waits for {}'s daemon, which does not run", bob.name);
    drop(accounts.types(alice, "queue").exits(0).says(&[&said]));
    drop(accounts.types(alice, "kill w=1 -y").exits(0));
    // A pass of another account leaves it where it is.
    drop(accounts.types(alice, "queue").exits(0).says(&[&said]));
    drop(accounts.types(bob, "queue run").exits(0).says(&["Started"]));
    drop(accounts.types(bob, "wait w=1").exits(0));
}
