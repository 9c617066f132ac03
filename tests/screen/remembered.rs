//! What is typed behind `:` outlives the screen: in order, without secrets, never too much of it, and of two
//! screens at once neither loses what the other remembers.

use std::os::unix::fs::PermissionsExt as _;

use tpu_core::model::ids::UserName;
use tpu_ops::Ctx;
use tpu_ops::act::remembered::{MOST, lines, remember};
use tpu_system::sys::env::Env;

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;

#[test]
fn what_was_typed_is_there_in_the_next_session() {
    let env = TestEnv::new();
    let terminal = Terminal::new(&env);
    let open = format!("clear; {TPU} monitor alice; echo code-$?");
    terminal.command(&open);
    terminal.shows("alice has no jobs");
    for line in ["sort wandb_api_key", "theme light", "sort age"] {
        terminal.press(":");
        terminal.types(line);
        terminal.press("Enter");
        terminal.hides(&format!(":{line}"));
    }
    let file = env.path("tpu-state/typed-alice.txt");
    terminal.until("the lines are remembered", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text == "theme light\nsort age\n")
    });
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    terminal.press("q");
    terminal.shows("code-0");
    terminal.command(&open);
    terminal.shows("alice has no jobs");
    terminal.press(":");
    // The lines are read meanwhile; until they are there, Up has nothing to fetch.
    terminal.until("the newest line comes first", || {
        terminal.press("Up");
        let screen = terminal.screen();
        if screen.contains(":theme light") {
            terminal.press("Down");
        }
        screen.contains(":sort age")
    });
    terminal.press("Up");
    terminal.shows(":theme light");
}

/// What a screen of its own has.
fn screen(env: &TestEnv) -> Ctx {
    env.ctx(Env::fixed::<&str, &str>([]))
}

#[test]
fn two_screens_lose_nothing_of_each_other_and_remember_no_more_than_the_newest() {
    let env = TestEnv::new();
    let alice = UserName::from("alice");
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let (env, alice) = (&env, &alice);
            scope.spawn(move || {
                let ctx = screen(env);
                for n in 0..40 {
                    remember(&ctx, Some(alice), &format!("{name} {n}")).unwrap();
                }
            });
        }
    });
    let ctx = screen(&env);
    let found = lines(&ctx, Some(&alice)).unwrap();
    assert_eq!(found.len(), 80, "{found:?}");
    for name in ["a", "b"] {
        let own: Vec<_> = found.iter().filter(|line| line.starts_with(name)).cloned().collect();
        let in_order: Vec<_> = (0..40).map(|n| format!("{name} {n}")).collect();
        assert_eq!(own, in_order);
    }
    for n in 0..MOST {
        remember(&ctx, Some(&alice), &format!("c {n}")).unwrap();
    }
    remember(&ctx, Some(&alice), "c 0").unwrap();
    let found = lines(&ctx, Some(&alice)).unwrap();
    assert_eq!(
        (found.len(), found[0].as_str()),
        (MOST, "c 1"),
        "one line once, and no more of them"
    );
    assert_eq!(found.last().map(String::as_str), Some("c 0"));
    assert_eq!(lines(&ctx, None).unwrap(), [] as [&str; 0], "everybody's screen has its own");
}
