//! What `./x dist` makes: packages that are whole, that start in a new home, and on old systems. `./x prove packages` tries
//! the packages themselves; how they are made and checked is tried always.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

use tpu_system::sys::proc;

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::write_script;

/// Says why a test does nothing.
fn skip(why: &str) {
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// A version of glibc.
type Glibc = (u32, u32);

/// Reads a file of the sources.
fn source(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The path of a tool of the sources.
fn tool(name: &str) -> String {
    format!("{}/tools/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Finds the first place where a pattern matches; returns its group.
#[track_caller]
fn find(pattern: &str, text: &str) -> String {
    let found = Regex::new(pattern).unwrap().captures(text);
    found.unwrap_or_else(|| panic!("no {pattern} in:\n{text}"))[1].to_owned()
}

fn glibc(text: &str) -> Glibc {
    let mut parts = text.trim().split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap())
}

/// The oldest glibc on which the program of a package has to start.
fn oldest() -> Glibc {
    glibc(&find(r"(?m)^glibc=(.*)$", &source("tools/dist.sh")))
}

/// The newest glibc that a program needs, by the tool that `./x dist` asks. None without `readelf`.
fn needed(env: &TestEnv, program: &Path) -> Option<Glibc> {
    let found = run(env, &tool("glibc.sh"), &[program]);
    if found.stderr.contains("readelf: command not found") {
        skip("there is no readelf");
        return None;
    }
    Some(glibc(&found.exits(0).stdout))
}

fn run<W: AsRef<std::ffi::OsStr>>(env: &TestEnv, program: &str, words: &[W]) -> CommandOutput {
    env.output(&env.spawn_program(program, words))
}

// -- how they are made

#[test]
fn the_page_and_the_packages_name_the_glibc_that_is_linked_for() {
    let (major, minor) = oldest();
    assert!((major, minor) <= (2, 28), "login nodes are old");
    let page = source("docs/install.md");
    assert!(page.contains(&format!("glibc {major}.{minor} or later")), "{page}");
    let depends = find(r#"depends = "libc6 \(>= (.*)\)""#, &source("Cargo.toml"));
    assert_eq!(glibc(&depends), (major, minor));
    assert!(source("Cargo.toml").contains("recommends = \"tmux (>= 3.2)"));
}

/// The names of versions in a program lie between zeros, one behind the other.
#[test]
fn the_newest_glibc_that_a_program_needs_is_found() {
    let env = TestEnv::new();
    let Some(needed) = needed(&env, Path::new(TPU)) else { return };
    let name = regex::bytes::Regex::new(r"\x00GLIBC_(\d+\.\d+)(?:\.\d+)?\x00").unwrap();
    let bytes = std::fs::read(TPU).unwrap();
    // A name shares its zero with the next one.
    let mut at = 0;
    let mut newest = (0, 0);
    while let Some(found) = name.captures_at(&bytes, at) {
        newest = newest.max(glibc(std::str::from_utf8(&found[1]).unwrap()));
        at = found.get(0).unwrap().end() - 1;
    }
    assert_eq!(needed, newest);
    assert!(newest > (2, 0), "a program that needs none shows nothing");
}

#[test]
fn equal_functions_are_folded_by_the_linker_inside_zig() {
    let mut env = TestEnv::new();
    let (compiler, zig) = (env.path("zig-cc"), env.path("zig"));
    let calls = env.path("calls");
    let note = |name: &str| format!("echo \"{name} $*\" >>'{}'", calls.display());
    let call = "echo 'ld.lld -o out a.o libc.so.6' >&2";
    write_script(&compiler, &format!("{}; {call}; [ \"$1\" != bad ]", note("cc")));
    write_script(&zig, &note("zig"));
    let arch = std::env::consts::ARCH;
    env.set(&format!("CC_{arch}_unknown_linux_gnu"), compiler.as_os_str());
    env.set("CARGO_ZIGBUILD_ZIG_PATH", zig.as_os_str());
    let link = tool("zig-cc.sh");
    drop(run(&env, &link, &["-o", "out", "a.o", "-Wl,--icf=all"]).exits(0));
    drop(run(&env, &link, &["-o", "out", "a.o"]).exits(0));
    // What the compiler says of a link that fails is passed on.
    drop(run(&env, &link, &["bad", "-Wl,--icf=all"]).exits(1).says(&["ld.lld -o out"]));
    let calls = std::fs::read_to_string(&calls).unwrap();
    let expected = "cc -o out a.o -v\nzig ld.lld -o out a.o libc.so.6 --icf=all\n\
                    cc -o out a.o\ncc bad -v\n";
    assert_eq!(calls, expected);
}

// -- the packages

/// The packages that were made.
struct Packages {
    dir: PathBuf,
    env: TestEnv,
}

impl Packages {
    /// The packages of the directory that `./x prove packages` names, and a new home.
    #[expect(clippy::disallowed_methods, reason = "what is tried is asked of the test itself")]
    fn asked() -> Option<Self> {
        let dir = std::env::var_os("TPU_PROVE_PACKAGES").map(PathBuf::from);
        if dir.is_none() {
            skip("`./x prove packages` tries the packages of `./x dist`");
        }
        let mut env = TestEnv::new();
        env.set("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        Some(Self { dir: dir?, env })
    }

    /// The one package whose name ends so.
    fn one(&self, end: &str) -> String {
        let all = std::fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().path());
        let mut all = all.map(|path| path.to_str().unwrap().to_owned());
        all.find(|path| path.ends_with(end)).unwrap_or_else(|| panic!("no package *{end}"))
    }

    fn run(&self, program: &str, words: &[&str]) -> CommandOutput {
        run(&self.env, program, words)
    }

    /// Says whether a program is there; a test without it is skipped.
    fn has(&self, program: &str) -> bool {
        let is_there = proc::run(&self.env.spawn_program(program, &["--version"])).is_ok();
        if !is_there {
            skip(&format!("there is no {program}"));
        }
        is_there
    }

    /// Makes a directory of the home.
    fn place(&self, name: &str) -> String {
        let path = self.env.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Checks that everything is below a prefix, and starts a job with the program there.
    fn is_whole(&self, prefix: &str) {
        let at = |below: &str| Path::new(prefix).join(below);
        for below in ["tpu.1", "tpu-run.1", "tpu-daemon.1"] {
            let page = format!("share/man/man1/{below}");
            assert!(at(&page).exists() || at(&format!("{page}.gz")).exists(), "no {page}");
        }
        for below in [
            "share/bash-completion/completions/tpu",
            "share/fish/vendor_completions.d/tpu.fish",
            "share/doc/tpu/README.md",
            "share/doc/tpu/docs/install.md",
            "share/doc/tpu/assets/pictures/demo.svg",
        ] {
            assert!(at(below).exists(), "no {below}");
        }
        let program = at("bin/tpu");
        assert!(std::fs::metadata(&program).unwrap().len() <= 22_000_000);
        assert!(needed(&self.env, &program).is_none_or(|needed| needed <= oldest()));
        let program = program.to_str().unwrap();
        let version = self.run(program, &["--version"]).exits(0).stdout;
        assert_ne!(find(r"(?m)^commit: (.*)$", &version), "unknown");
        let features = find(r"(?m)^features: (.*)$", &version);
        assert_eq!(features, "kubernetes, lab, mail, page, slurm");
        let words = ["run", "local", "alice", "-q", "--", "sh", "-c", "echo it runs"];
        drop(self.run(program, &words).exits(0).says(&["Started alice/1"]));
        drop(self.run(program, &["wait", "1", "alice"]).exits(0));
        drop(self.run(program, &["logs", "1", "alice"]).exits(0).says(&["it runs"]));
    }
}

#[test]
fn each_package_has_its_checksum() {
    let Some(packages) = Packages::asked() else { return };
    let dir = packages.dir.to_str().unwrap().to_owned();
    let check = "cd \"$0\" && cat *-linux.tar.gz.sha256 *.whl.sha256 *.deb.sha256 | sha256sum -c";
    let said = packages.run("bash", &["-c", check, &dir]).exits(0).stdout;
    assert_eq!(said.matches(": OK").count(), 3, "{said}");
}

#[test]
fn an_archive_is_unpacked_where_programs_look() {
    let Some(packages) = Packages::asked() else { return };
    let local = packages.place(".local");
    let archive = packages.one("-linux.tar.gz");
    let words = ["-xzf", &archive, "--strip-components=1", "-C", &local];
    drop(packages.run("tar", &words).exits(0));
    packages.is_whole(&local);
}

#[test]
fn a_wheel_is_installed_without_an_index() {
    let Some(packages) = Packages::asked() else { return };
    if !packages.has("python3") {
        return;
    }
    let venv = packages.place("venv");
    if packages.run("python3", &["-m", "venv", &venv]).code != 0 {
        skip("there is no python3 with venv");
        return;
    }
    let wheel = packages.one(".whl");
    assert!(std::fs::metadata(&wheel).unwrap().len() <= 15_000_000);
    let words = ["install", "--no-index", "--disable-pip-version-check", &wheel];
    drop(packages.run(&format!("{venv}/bin/pip"), &words).exits(0));
    packages.is_whole(&venv);
}

#[test]
fn a_deb_has_everything_below_usr() {
    let Some(packages) = Packages::asked() else { return };
    if !packages.has("dpkg-deb") {
        return;
    }
    let tree = packages.place("tree");
    drop(packages.run("dpkg-deb", &["-x", &packages.one(".deb"), &tree]).exits(0));
    packages.is_whole(&format!("{tree}/usr"));
}

/// Debian 11 has glibc 2.31, and a tmux that is too old.
#[test]
#[expect(clippy::disallowed_methods, reason = "where the tree is, is asked of the test itself")]
fn debian_11_installs_it_starts_it_and_removes_it() {
    let Some(packages) = Packages::asked() else { return };
    let tree = std::env::var("TPU_PROVE_OLD_ROOT").unwrap_or_default();
    if !Path::new(&tree).join("usr/bin/dpkg").exists() {
        skip("`./x prove --install packages` as root makes a tree of Debian 11");
        return;
    }
    let deb = packages.one(".deb");
    let copy = Path::new(&tree).join("tpu.deb");
    std::fs::copy(&deb, &copy).unwrap();
    let inside = |line: &str| packages.run("chroot", &[&tree, "/bin/sh", "-c", line]);
    drop(inside("dpkg --purge tpu; dpkg --install /tpu.deb").exits(0));
    std::fs::remove_file(copy).unwrap();
    drop(inside("tpu --version").exits(0).says(&["tpu ", "commit: ", "features: "]));
    let home =
        "mkdir /tmp/home && cd /tmp/home && env -i HOME=/tmp/home USER=new PATH=/usr/bin:/bin";
    let job = inside(&format!("{home} tpu run local -q -- true"));
    drop(inside("rm -r /tmp/home").exits(0));
    drop(job.exits(6).says(&["tmux is not installed", "conda install -c conda-forge tmux"]));
    drop(inside("dpkg --purge tpu").exits(0));
    // ncurses has a program of a similar name.
    let left = inside("find / -xdev -name 'tpu*' -not -name 'tput*'").exits(0);
    assert_eq!(left.stdout, "");
}
