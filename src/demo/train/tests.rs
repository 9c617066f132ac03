//! The promise of the training: cut anywhere and resumed, it ends with the same bits.

use std::cell::Cell;
use std::fs::{self, File};

use super::*;

/// What a run printed, its exit code, and how long it was asked to wait.
struct Ran {
    text: String,
    code: Result<i32, TrainError>,
    waited: Duration,
}

impl Ran {
    fn last_line(&self) -> &str {
        self.text.lines().next_back().unwrap_or_default()
    }
}

/// Runs with the given flags after `--workdir`; the clock moves by 20 ms whenever it is read.
fn train(workdir: &Path, flags: &[&str]) -> Ran {
    let mut args = vec![format!("--workdir={}", workdir.display())];
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let elapsed = Cell::new(Duration::ZERO);
    let waited = Cell::new(Duration::ZERO);
    let mut out = Vec::new();
    let world = World {
        started: Timestamp::parse_rfc3339("2026-11-20T06:24:39Z").unwrap(),
        elapsed: &|| {
            elapsed.set(elapsed.get() + Duration::from_millis(20));
            elapsed.get()
        },
        pace: &|time| waited.set(waited.get() + time),
    };
    let code = run(&args, &mut out, &world);
    Ran { text: String::from_utf8(out).unwrap(), code, waited: waited.get() }
}

fn load_from(directory: &Path) -> String {
    format!("--config.load_from={}", directory.display())
}

fn checkpoint(workdir: &Path, step: u32) -> PathBuf {
    workdir.join("checkpoints").join(format!("checkpoint_{step}"))
}

fn names(workdir: &Path) -> Vec<String> {
    let entries = fs::read_dir(workdir.join("checkpoints")).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Overwrites a file by hand, as a bad disk would.
fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::remove_file(path).unwrap();
    File::create_new(path).unwrap().write_all(&bytes).unwrap();
}

const FLAGS: [&str; 2] = ["--config.steps=120", "--config.checkpoint_every=20"];

#[test]
fn a_run_that_was_cut_and_resumed_ends_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let whole = train(&dir.path().join("whole"), &FLAGS);
    assert_eq!(whole.code.unwrap(), 0);
    let wanted = whole.text.lines().next_back().unwrap().to_owned();
    assert!(wanted.starts_with("final loss ") && wanted.ends_with(" at step 120"), "{wanted}");

    // A step is all or nothing to what survives, so a kill after step `cut` is what stops there;
    // `oom_at` stops without a word to the checkpoints, as a kill does.
    for cut in [20, 21, 39, 40, 75, 119] {
        let first = dir.path().join(format!("cut-{cut}"));
        let stop = format!("--config.oom_at={cut}");
        assert_eq!(train(&first, &[FLAGS[0], FLAGS[1], &stop]).code.unwrap(), 1);
        let second = dir.path().join(format!("resumed-{cut}"));
        let resumed = train(&second, &[FLAGS[0], FLAGS[1], &load_from(&first)]);
        let at = cut / 20 * 20;
        assert!(resumed.text.contains(&format!("resumed at step {at} from ")), "{}", resumed.text);
        assert_eq!(resumed.last_line(), wanted, "cut at {cut}");
    }
}

#[test]
fn a_resumed_run_can_be_resumed_before_its_first_save() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let wanted = train(&path("whole"), &FLAGS);
    train(&path("a"), &[FLAGS[0], FLAGS[1], "--config.oom_at=50"]);
    train(&path("b"), &[FLAGS[0], FLAGS[1], "--config.oom_at=41", &load_from(&path("a"))]);
    let third = train(&path("c"), &[FLAGS[0], FLAGS[1], &load_from(&path("b"))]);
    assert_eq!(third.last_line(), wanted.last_line());
}

#[test]
fn the_same_directory_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = train(&dir.path().join("whole"), &FLAGS);
    let again = dir.path().join("again");
    train(&again, &[FLAGS[0], FLAGS[1], "--config.oom_at=70"]);
    let second = train(&again, &FLAGS);
    assert!(second.text.contains("resumed at step 60 from "), "{}", second.text);
    assert_eq!(second.last_line(), wanted.last_line());
}

#[test]
fn settings_change_the_result_and_training_lowers_the_loss() {
    let dir = tempfile::tempdir().unwrap();
    let final_loss = |name: &str, flags: &[&str]| -> f64 {
        let ran = train(&dir.path().join(name), flags);
        ran.last_line().split(' ').nth(2).unwrap().parse().unwrap()
    };
    let short = final_loss("short", &["--config.steps=1"]);
    let long = final_loss("long", &["--config.steps=600", "--config.training.learning_rate=0.02"]);
    assert!(short > 1.0 && long < 0.4 * short, "{short} -> {long}");
    let plain = final_loss("plain", &FLAGS);
    for flag in [
        "--config.training.learning_rate=0.02",
        "--config.training.batch_size=21",
        "--config.training.weight_decay=0.1",
        "--config.training.adam_b1=0.8",
        "--config.training.adam_b2=0.9",
        "--config.seed=1",
    ] {
        assert_ne!(final_loss(flag, &[FLAGS[0], flag]).to_bits(), plain.to_bits(), "{flag}");
    }
}

#[test]
fn only_the_last_three_checkpoints_stay() {
    let dir = tempfile::tempdir().unwrap();
    train(dir.path(), &["--config.steps=95", "--config.checkpoint_every=20"]);
    assert_eq!(names(dir.path()), ["checkpoint_60", "checkpoint_80", "checkpoint_95"]);
}

#[test]
fn a_half_written_checkpoint_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = train(&dir.path().join("whole"), &FLAGS);
    let first = dir.path().join("first");
    train(&first, &[FLAGS[0], FLAGS[1], "--config.oom_at=65"]);
    let half = first.join("checkpoints/checkpoint_80.tmp");
    let text = fs::read(checkpoint(&first, 60)).unwrap();
    File::create_new(&half).unwrap().write_all(&text[..text.len() / 2]).unwrap();
    let resumed = train(&dir.path().join("second"), &[FLAGS[0], FLAGS[1], &load_from(&first)]);
    assert!(resumed.text.contains("resumed at step 60 from "), "{}", resumed.text);
    assert!(!resumed.text.contains("skipped"), "{}", resumed.text);
    assert_eq!(resumed.last_line(), wanted.last_line());
    // Another run's directory is not ours to tidy; our own is.
    assert!(half.exists());
    assert_eq!(train(&first, &FLAGS).last_line(), wanted.last_line());
    assert!(!half.exists());
}

#[test]
fn a_damaged_checkpoint_is_skipped_for_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = train(&dir.path().join("whole"), &FLAGS);
    let cut = |name: &str| {
        let first = dir.path().join(name);
        train(&first, &[FLAGS[0], FLAGS[1], "--config.oom_at=65"]);
        first
    };
    let flip = |bytes: &mut Vec<u8>| bytes[100] ^= 1;
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.truncate(0),
        |bytes| bytes.extend(b"more\n"),
        |bytes| bytes[200] = 0xff,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let first = cut(&format!("first-{n}"));
        damage(&checkpoint(&first, 60), change);
        let second = dir.path().join(format!("second-{n}"));
        let resumed = train(&second, &[FLAGS[0], FLAGS[1], &load_from(&first)]);
        assert!(resumed.text.contains("skipped the damaged checkpoint "), "{}", resumed.text);
        assert!(resumed.text.contains("resumed at step 40 from "), "{}", resumed.text);
        assert_eq!(resumed.last_line(), wanted.last_line());
    }
    let first = cut("all");
    for step in [20, 40, 60] {
        damage(&checkpoint(&first, step), flip);
    }
    let error = train(&dir.path().join("none"), &[&load_from(&first)]).code.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("checkpoint_60 is damaged: its checksum does not fit"), "{text}");
}

#[test]
fn what_cannot_be_resumed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    let error = train(&dir.path().join("a"), &[&load_from(&empty)]).code.unwrap_err();
    assert!(error.to_string().starts_with("no checkpoint in "), "{error}");
    assert!(!empty.exists());
    train(&empty, &["--config.steps=1"]);
    let flags = [&load_from(&empty), "--config.seed=5"];
    let error = train(&dir.path().join("b"), &flags).code.unwrap_err();
    assert!(error.to_string().contains("was made with seed 0; this run has"), "{error}");
    let file = dir.path().join("file");
    File::create_new(&file).unwrap();
    let error = train(&file, &[]).code.unwrap_err();
    assert!(error.to_string().contains("cannot create "), "{error}");
}

#[test]
fn arguments_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    for (flag, reason) in [
        ("lr=0.1", "expected --name=value"),
        ("--config.training.lr=0.1", "this training has no such flag"),
        ("--config.training.learning_rate=fast", "expected a number above 0"),
        ("--config.training.learning_rate=nan", "expected a number above 0"),
        ("--config.training.adam_b1=1", "expected a number from 0 up, below 1"),
        ("--config.training.batch_size=0", "expected a number from 1 up"),
        ("--config.steps=-1", "expected a number from 1 up"),
        ("--config.load_from=", "expected a directory"),
    ] {
        let error = train(dir.path(), &[flag]).code.unwrap_err();
        assert_eq!(error.to_string(), format!("argument '{flag}': {reason}"));
    }
    let world =
        World { started: Timestamp::from_second(0), elapsed: &Default::default, pace: &|_| {} };
    let error = run(&[], &mut Vec::new(), &world).unwrap_err();
    assert!(error.to_string().contains("--workdir"), "{error}");
    // What users' scripts pass as well is taken.
    let flags =
        ["--mode=remote_run", "--config=configs/load_config.py:remote_run", "--config.steps=1"];
    assert_eq!(train(dir.path(), &flags).code.unwrap(), 0);
}

#[test]
fn progress_reads_as_that_of_absl() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--config.training.num_epochs=2", "--config.step_ms=20", "--config.stage=1"];
    let ran = train(dir.path(), &flags);
    let line = ran.text.lines().find(|line| line.contains("step 30/60")).unwrap();
    let (stamp, rest) = line.split_once(" train.py:88] ").unwrap();
    assert!(stamp.starts_with("I1120 06:24:39."), "{line}");
    assert!(rest.starts_with("step 30/60 epoch 1.00 loss "), "{line}");
    assert!(rest.contains(" lr 0.01 (") && rest.ends_with(" steps/s)"), "{line}");
    assert_eq!(ran.waited, Duration::from_millis(60 * 20));
}

#[test]
fn failures_on_request_end_as_real_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let oom = train(&dir.path().join("oom"), &["--config.oom_at=7"]);
    assert_eq!(oom.code.unwrap(), 1);
    assert!(
        oom.text.contains("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory")
    );
    assert!(!oom.text.contains("final loss"));
    let first = dir.path().join("grpc");
    let flags = ["--config.steps=60", "--config.grpc_at=55"];
    let grpc = train(&first, &flags);
    assert_eq!(grpc.code.unwrap(), 134);
    assert!(grpc.text.contains("absl::Status: DEADLINE_EXCEEDED: "), "{}", grpc.text);
    // The peer is back when the run is resumed.
    let resumed = train(&dir.path().join("resumed"), &[flags[0], flags[1], &load_from(&first)]);
    assert_eq!(resumed.code.unwrap(), 0);
}

#[test]
fn a_diverged_run_says_nan() {
    assert_eq!(Loss(f64::NAN).to_string(), "nan");
    assert_eq!(Loss(0.412_34).to_string(), "0.4123");
}

#[test]
fn a_reader_that_went_away_is_an_error() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let world =
        World { started: Timestamp::from_second(0), elapsed: &Default::default, pace: &|_| {} };
    let args = [format!("--workdir={}", dir.path().display())];
    assert!(matches!(run(&args, &mut Closed, &world), Err(TrainError::Output(_))));
}
