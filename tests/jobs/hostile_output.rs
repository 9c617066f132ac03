//! A job, a worker or another user prints what a terminal would act on: whatever shows it lets colours (SGR)
//! through and nothing else. Proved on a terminal that records every byte (`script`, of util-linux), over texts
//! that are made up: `./x prove output` makes up more of them.

#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a skipped test says so, and a job's output is no file of ours to replace whole"
)]

use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use serde_json::json;
use tpu_system::sys::random::{Random, SeededRandom};

use crate::common::env::TestEnv;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

/// What a terminal acts on: clipboard, titles, links, notifications, colour queries, device queries, the
/// alternate screen, modes, keys, windows, resets, character sets, strings of every kind.
const SEQUENCES: [&str; 44] = [
    "\u{1b}]52;c;UFdORUQ=\u{7}",
    "\u{1b}]52;c;?\u{1b}\\",
    "\u{1b}]0;PWNED\u{7}",
    "\u{1b}]2;PWNED\u{1b}\\",
    "\u{1b}]8;;http://PWNED\u{1b}\\x\u{1b}]8;;\u{1b}\\",
    "\u{1b}]9;PWNED\u{7}",
    "\u{1b}]777;notify;PWNED\u{7}",
    "\u{1b}]1337;File=inline=1:UFdORUQ=\u{7}",
    "\u{1b}]4;1;?\u{7}",
    "\u{1b}]10;?\u{7}",
    "\u{1b}]11;?\u{1b}\\",
    "\u{1b}]7;file:///PWNED\u{7}",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}Pq#0;2;0;0;0\u{1b}\\",
    "\u{1b}_GPWNED\u{1b}\\",
    "\u{1b}^PWNED\u{1b}\\",
    "\u{1b}XPWNED\u{1b}\\",
    "\u{1b}[c",
    "\u{1b}[>c",
    "\u{1b}[=c",
    "\u{1b}[6n",
    "\u{1b}[?6n",
    "\u{1b}[21t",
    "\u{1b}[8;9;9t",
    "\u{1b}[?1049h",
    "\u{1b}[?1049l",
    "\u{1b}[?1000h",
    "\u{1b}[?2004l",
    "\u{1b}[>4;1m",
    "\u{1b}[?4m",
    "\u{1b}[2J",
    "\u{1b}[3J",
    "\u{1b}[1;1H",
    "\u{1b}[5 q",
    "\u{1b}[!p",
    "\u{1b}c",
    "\u{1b}(0",
    "\u{1b}=",
    "\u{1b}#8",
    "\u{1b}[20h",
    "\u{1b}[4i",
    "\u{1b}[1$}",
    "\u{1b}[0;59;\"PWNED\"p",
];

/// Single characters, C1 also as raw bytes, and what turns a line around.
const ODD: [&[u8]; 22] = [
    b"\x07",
    b"\x05",
    b"\x08",
    b"\x0e",
    b"\x0f",
    b"\x0c",
    b"\x0b",
    b"\x7f",
    b"\x00",
    b"\x1b",
    b"\x1b[",
    b"\x1b]",
    b"\x9b",
    b"\x9d",
    b"\x90",
    "\u{9b}6n".as_bytes(),
    "\u{9d}0;PWNED\u{9c}".as_bytes(),
    "\u{90}q\u{9c}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{2066}".as_bytes(),
    "\u{200f}".as_bytes(),
    "\u{2028}".as_bytes(),
];

/// A text that nobody thought of: hostile sequences whole, cut, one in another, inside characters of several
/// bytes, with the ordinary lines of a training between them.
fn made_up(draw: &dyn Random) -> Vec<u8> {
    let mut text = b"\x1b[32mstep 1\x1b[0m loss 0.5\n".to_vec();
    let pick = |n: usize| usize::try_from(draw.below(u64::try_from(n).unwrap())).unwrap();
    for _ in 0..60 {
        let sequence = SEQUENCES[pick(SEQUENCES.len())].as_bytes();
        match draw.below(9) {
            0 | 1 => text.extend_from_slice(sequence),
            2 => text.extend_from_slice(&sequence[..pick(sequence.len())]),
            3 => text.extend_from_slice(&sequence[pick(sequence.len())..]),
            4 => text.extend_from_slice(ODD[pick(ODD.len())]),
            5 => {
                let other = SEQUENCES[pick(SEQUENCES.len())].as_bytes();
                let at = pick(sequence.len());
                text.extend_from_slice(&sequence[..at]);
                text.extend_from_slice(other);
                text.extend_from_slice(&sequence[at..]);
            }
            6 => {
                let letter = "日é👩".as_bytes();
                let at = pick(letter.len());
                text.extend_from_slice(&letter[..at]);
                text.extend_from_slice(sequence);
                text.extend_from_slice(&letter[at..]);
            }
            7 => text.extend_from_slice(b"\n"),
            _ => text.extend_from_slice(b"\r  7%|=    | 7/100 [00:01<00:10, 9.1it/s]"),
        }
    }
    text.extend_from_slice(b"\nRuntimeError: last words\n");
    text
}

/// What a text holds that a terminal acts on, beside colours and what `own` knows.
fn acted_on(bytes: &[u8], own: &Regex) -> Vec<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return vec![format!("no UTF-8: {error}")],
    };
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| is_odd(c)) {
        let tail = &rest[at..];
        let known = own.find(tail).filter(|known| known.start() == 0);
        let step =
            known.map_or_else(|| tail.chars().next().unwrap().len_utf8(), |known| known.end());
        if known.is_none() {
            found.push(tail.chars().take(24).collect::<String>().escape_debug().to_string());
        }
        rest = &tail[step..];
    }
    found
}

/// Not asked of the program: what this test knows by itself.
fn is_odd(c: char) -> bool {
    let is_plain = matches!(c, '\n' | '\r' | '\t');
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && !is_plain || turns
}

fn colours() -> Regex {
    Regex::new("^\u{1b}\\[[0-9;:]*m").unwrap()
}

/// What the screen draws with: places, colours, clearing, and the modes that it sets and takes back.
fn drawing() -> Regex {
    Regex::new(
        "^\u{1b}\\[([0-9;:]*m|[0-9]+(;[0-9]+)?H|[0-9]*[ABCDGdJK]|\
        \\?(25|1000|1002|1003|1006|1015|1049|2004|2026)[hl])",
    )
    .unwrap()
}

fn is_recording() -> bool {
    let there = Path::new("/usr/bin/script").exists();
    if !there {
        eprintln!("skipped: there is no `script` to record a terminal with");
    }
    there
}

/// How many texts are made up.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn rounds(usual: u64) -> u64 {
    std::env::var("TPU_PROVE_OUTPUT").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// alice/1 has failed and printed something.
fn lab() -> (TestEnv, String) {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TERM", "xterm-256color");
    let window = env.start::<&str>("echo begins; exit 3", &[]);
    let job = env.wait_status(window, "error");
    let log = format!("{}/output.log", job["log_dir"].as_str().unwrap());
    (env, log)
}

/// Every way out that is a command.
const COMMANDS: [&str; 25] = [
    "check",
    "check -v",
    "check-simp",
    "logs 1",
    "logs -f 1",
    "logs 1 --grep step",
    "explain 1",
    "history",
    "history 1",
    "ls",
    "-sa",
    "-lta",
    "list-users",
    "get-settings",
    "check --json",
    "logs 1 --json",
    "classify 1",
    "check-status",
    "doctor",
    "targets",
    "daemon plan",
    "kill w=77",
    "-Ml",
    "board export csv",
    "notify",
];

/// What others may have written into the file, which everybody reads.
fn poisoned(env: &TestEnv, draw: &dyn Random) {
    let mut data = env.data();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', "");
    let short = || text(made_up(draw)).chars().take(200).collect::<String>();
    let alice = &mut data["users"]["alice"];
    alice["job_data"][0]["job_tags"] = json!(short());
    alice["working_dir"]["3"] = json!(format!("/tmp/{}", short()));
    alice["config_aliases"][format!("k{}", short())] = json!(short());
    data["tpu_aliases"][format!("t{}", short())] = json!(short());
    data["all_tpus"][format!("z{}", short())] = json!([short()]);
    env.write_data(&data);
}

#[test]
fn commands_let_colours_through_and_nothing_else() {
    if !is_recording() {
        return;
    }
    let (env, log) = lab();
    let clean = env.data();
    let record = env.path("record");
    let mut bytes = 0;
    for round in 0..rounds(3) {
        let draw = SeededRandom::new(round);
        std::fs::write(&log, made_up(&draw)).unwrap();
        env.write_data(&clean);
        if round % 3 != 0 {
            poisoned(&env, &draw);
        }
        let mut script = String::new();
        for command in COMMANDS {
            write!(script, "\"$TPU\" {command}; ").unwrap();
        }
        write_file(&env.path("all.sh"), &script);
        let run = format!("TPU={} sh {}", crate::common::env::TPU, env.path("all.sh").display());
        let words = ["-qefc", &run, record.to_str().unwrap()];
        let _output = env.output(&env.spawn_program("/usr/bin/script", &words));
        let recorded = std::fs::read(&record).unwrap();
        let found = acted_on(&recorded, &colours());
        assert!(found.is_empty(), "round {round}: {found:#?}");
        assert!(recorded.windows(10).any(|piece| piece == b"last words"), "it was shown");
        assert!(recorded.windows(11).any(|piece| piece == b"\x1b[32mstep 1"), "colours pass");
        bytes += recorded.len();
    }
    eprintln!("{bytes} bytes recorded, and only colours in them");
}

#[test]
fn what_is_piped_holds_nothing_to_act_on() {
    let (env, log) = lab();
    for round in 100..100 + rounds(2) {
        let draw = SeededRandom::new(round);
        std::fs::write(&log, made_up(&draw)).unwrap();
        poisoned(&env, &draw);
        for command in COMMANDS {
            let output = env.tpu(command);
            for said in [&output.stdout, &output.stderr] {
                let found = acted_on(said.as_bytes(), &colours());
                assert!(found.is_empty(), "round {round}: {command}: {found:#?}");
            }
        }
    }
}

#[test]
fn the_screen_draws_and_does_nothing_that_a_job_says() {
    if !is_recording() {
        return;
    }
    for round in 0..rounds(1).div_ceil(20) {
        let (env, log) = lab();
        let draw = SeededRandom::new(1_000 + round);
        let text = env.path("text");
        std::fs::write(&text, made_up(&draw)).unwrap();
        std::fs::write(&log, made_up(&draw)).unwrap();
        poisoned(&env, &draw);
        let words = [text.as_os_str().to_owned()];
        // Whatever the text has left of the screen (margins, a screen full of E), the last line is the last one.
        let _live = env.start("cat \"$1\"; printf '\\033\\\\\\a\\033(B\\017\\033[?1049l\\033[r\\033[999;1H\\nstep 2 loss 0.25\\n'; exec sleep 1000", &words);
        let terminal = Terminal::new(&env);
        let record = env.path("record");
        let tpu = crate::common::env::TPU;
        terminal.command(&format!("script -qefc '{tpu} monitor alice' {}", record.display()));
        terminal.shows("2 jobs");
        for job in ["begins", "step 2 loss 0.25"] {
            terminal.keys("Enter");
            terminal.shows(job);
            terminal.keys("l G");
            terminal.shows(job);
            terminal.keys("g e Escape Escape Escape j");
        }
        for tab in ["2", "3", "4", "1", "?", "Escape"] {
            terminal.keys(tab);
        }
        terminal.keys("q");
        terminal.prompts();
        let recorded = std::fs::read(&record).unwrap();
        let found = acted_on(&recorded, &drawing());
        assert!(found.is_empty(), "round {round}: {found:#?}");
        assert!(recorded.len() > 2_000, "{} bytes were drawn", recorded.len());
    }
}

#[test]
fn a_line_without_end_is_cut_where_it_is_shown() {
    let (env, log) = lab();
    let mut text = "x".repeat(400_000);
    text.push_str("the end");
    std::fs::write(&log, &text).unwrap();
    let window =
        env.start("head -c 400000 /dev/zero | tr '\\0' y; echo 'the end'; exec sleep 1000", &[""]);
    crate::common::wait::wait_until("it is read", || env.tpu("check -v").stdout.contains("yyy"));
    assert_eq!(window, 2);
    for command in ["check", "check -v", "explain 1", "explain 2", "check-simp"] {
        let output = env.tpu(command).exits(0);
        assert!(output.stdout.len() < 6_000, "{command}: {} bytes", output.stdout.len());
    }
    let whole = env.tpu("logs 1").exits(0);
    assert!(whole.stdout.contains("the end") && whole.stdout.len() > 400_000);
}
