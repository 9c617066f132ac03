//! A run like another one: the form filled in as that was started, what is changed is marked, the rest stays as it was.

use std::ffi::OsString;

use tpu_core::model::capacity::Ask as Resources;
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::{JobNumber, QueueName};
use tpu_core::model::member::Array;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_ops::front::precedent::{self, Precedent};
use tpu_screen::message::{Act, Answer, Ask, Choices, Effect, Message, Problem, Proposal};
use tpu_screen::model::{FieldId, Form, Overlay};
use tpu_system::sys::env::Env;

use crate::common::boards::answer;
use crate::common::env::{TPU, TestEnv};
use crate::common::samples;
use crate::common::screen::Screen;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

/// A run of the sample with more to it than the form has fields for.
fn precedent() -> Precedent {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let spec = JobSpec {
        dir: Some(2),
        configs: vec![pair("lr", "0.01"), pair("name", "two words")],
        words: vec!["--verbose".to_owned()],
        command: Some(vec![OsString::from("python3"), OsString::from("train it.py")]),
        tag: Some("baseline".to_owned()),
        notes: Some("nobody sees them here".to_owned()),
        rules: Some("pre".to_owned()),
        monitor: false,
        ask: Resources { cpus: Some(2), ..Resources::default() },
        ..JobSpec::on(TargetRequest::Named("lab-tpuvm-v2-32-preemptible-2".to_owned()))
    };
    of(spec)
}

/// What was started so, with all of its configs said as such.
fn of(spec: JobSpec) -> Precedent {
    let (configs, words) = (spec.configs.clone(), spec.words.clone());
    let target = "v2-32-p2".to_owned();
    Precedent { target, spec, configs, words, sweep: None, waits: None }
}

/// The form as job 7 of the sample was started.
fn like(precedent: Precedent) -> Screen {
    let mut screen = Screen::showing(samples::snapshot());
    screen.model.list.selected = Some(samples::id(7));
    let asked = screen.press("N");
    assert!(asked.contains(&Effect::Ask(Ask::Precedent(samples::id(7)))), "{asked:?}");
    answer(&mut screen, Ask::Precedent(samples::id(7)), Answer::Precedent(Box::new(precedent)));
    answer(&mut screen, Ask::Choices("alice".into()), Answer::Choices(Choices::default()));
    screen
}

fn form(screen: &Screen) -> &Form {
    let Some(Overlay::Form(form)) = &screen.model.overlay else { panic!("no form") };
    form
}

#[test]
fn a_name_that_is_free_is_kept_in_its_field() {
    let screen = like(of(JobSpec { name: Some("llama".to_owned()), ..precedent().spec }));
    assert_eq!(form(&screen).text(FieldId::Name), "llama");
    let Ok(Act::Run(request)) = form(&screen).act() else { panic!("no run") };
    assert_eq!(request.spec.name.as_deref(), Some("llama"));
}

#[test]
fn what_is_not_changed_stays_whatever_the_form_knows_of_it() {
    let screen = like(precedent());
    let form = form(&screen);
    assert_eq!(form.field(), FieldId::Configs, "what people change");
    assert_eq!(form.text(FieldId::Target), "v2-32-p2", "as people call it");
    assert_eq!(form.text(FieldId::Configs), "lr=0.01 'name=two words'");
    assert_eq!(form.text(FieldId::Command), "python3 'train it.py'");
    let Act::Run(request) = form.act().unwrap() else { panic!("no run") };
    assert_eq!(request.spec, precedent().spec);
    assert!(!request.force);
}

#[test]
fn what_is_changed_is_marked_and_goes_back() {
    let mut screen = like(precedent());
    assert!(!screen.frame((100, 30)).contains('≠'));
    screen.press("ctrl-u");
    screen.typed("lr=0.02");
    let frame = screen.frame((100, 30));
    let marked: Vec<&str> = frame.lines().filter(|line| line.contains('≠')).collect();
    assert_eq!(marked.len(), 1, "{frame}");
    assert!(marked[0].contains("lr=0.02") && marked[0].contains("was lr=0.01"), "{frame}");
    assert!(frame.contains("New run of alice, like alice/7"), "{frame}");
    let Act::Run(request) = form(&screen).act().unwrap() else { panic!("no run") };
    let changed =
        JobSpec { configs: vec![("lr".to_owned(), "0.02".to_owned())], ..precedent().spec };
    assert_eq!(request.spec, changed);
    screen.press("ctrl-u");
    screen.typed("lr=0.01 'name=two words'");
    assert!(!screen.frame((100, 30)).contains('≠'), "as it was");
}

#[test]
fn whatever_one_of_several_it_was_it_is_again_unless_another_is_named() {
    let any = TargetRequest::Any(AnyOf { types: vec!["v4-8".to_owned()], ..AnyOf::default() });
    let base = JobSpec { target: any.clone(), ..precedent().spec };
    let mut screen = like(of(base));
    let target = |screen: &Screen| match form(screen).act().unwrap() {
        // One of several is found when its turn comes.
        Act::Run(request) | Act::Submit { request, .. } => request.spec.target,
        other => panic!("{other:?}"),
    };
    assert_eq!(target(&screen), any);
    screen.press("backtab backtab ctrl-u");
    screen.typed("local");
    assert_eq!(target(&screen), TargetRequest::Named("local".to_owned()));
}

#[test]
fn a_sweep_waits_in_its_queue_as_it_did() {
    let mut configs = vec![("lr".to_owned(), "0.1,0.2".to_owned())];
    let sweep = Sweep::take(&mut configs, false).unwrap();
    let array = Array::parse("0-1%1").ok();
    let spec = JobSpec { configs, array, ..precedent().spec };
    let waits = Some((QueueName::from("night"), Priority::parse("70").unwrap()));
    let mut screen = like(Precedent { sweep: Some(sweep), waits, ..of(spec) });
    assert_eq!(form(&screen).text(FieldId::Configs), "lr=0.1,0.2");
    screen.press("end");
    screen.typed(" seed=0-2");
    let Act::Submit { request, queue, priority, sweep } = form(&screen).act().unwrap() else {
        panic!("no place in a queue")
    };
    assert_eq!((queue.as_str(), priority.number()), ("night", 70));
    assert_eq!(sweep.unwrap().members(), 6);
    let array = request.spec.array.unwrap();
    assert_eq!((array.indexes().len(), array.at_once()), (6, Some(1)), "one at once, as before");
    assert_eq!(request.spec.configs, []);
    // Without its word it is one job.
    screen.press("tab tab tab tab ctrl-u backtab backtab backtab backtab ctrl-u");
    screen.typed("lr=0.1");
    let Act::Submit { request, sweep, .. } = form(&screen).act().unwrap() else { panic!("none") };
    assert_eq!((request.spec.array, sweep), (None, None));
}

#[test]
fn a_field_that_is_kept_is_not_completed_to_something_else() {
    let any = TargetRequest::Any(AnyOf { types: vec!["v4-8".to_owned()], ..AnyOf::default() });
    let mut screen = like(of(JobSpec { target: any.clone(), ..precedent().spec }));
    let only = Proposal { value: "v4-8-b".to_owned(), note: String::new() };
    let Some(Overlay::Form(form)) = &mut screen.model.overlay else { panic!("no form") };
    form.choices = Some(Choices { targets: vec![only], ..Choices::default() });
    let effects = screen.press("enter");
    let [Effect::Ask(Ask::Would(act))] = effects.as_slice() else { panic!("{effects:?}") };
    let Act::Submit { request, .. } = &**act else { panic!("{act:?}") };
    assert_eq!(request.spec.target, any);
}

#[test]
fn what_was_begun_is_selected_unless_somebody_has_gone_on() {
    for (keys, selects) in
        [("", true), ("j", false), ("enter", false), ("/ b a s e l i n e enter", false)]
    {
        let mut screen = like(of(JobSpec {
            target: TargetRequest::Named("local".to_owned()),
            ..precedent().spec
        }));
        screen.press("enter");
        let act = form(&screen).act().unwrap();
        answer(&mut screen, Ask::Would(Box::new(act)), Answer::Text("runs".to_owned()));
        let effects = screen.press("enter");
        let ticket = effects.iter().find_map(|effect| match effect {
            Effect::Act(acts) => acts.first().map(|(ticket, _)| *ticket),
            _ => None,
        });
        screen.press(keys);
        let before = screen.model.list.selected.clone();
        let toast = "Started alice/40.".to_owned();
        let began = Some(samples::id(40));
        screen.send(Message::Done { ticket: ticket.unwrap(), toast, began });
        let mut snapshot = samples::snapshot();
        snapshot.jobs.push(samples::job(40));
        screen.send(Message::Looked(Box::new(snapshot)));
        let wanted = if selects { Some(samples::id(40)) } else { before };
        assert_eq!(screen.model.list.selected, wanted, "{keys}");
    }
}

#[test]
fn what_is_no_sweep_is_said() {
    for (word, configs, said) in [
        ("each", "lr=0.1", "no config has several values"),
        ("zip", "lr=0.1,0.2 bs=1,2,3", "2 values"),
        ("all", "lr=0.1,0.2", "each or zip"),
        ("each", "seed=0-500 bs=0-500", "at most"),
    ] {
        let mut screen = like(precedent());
        screen.press("ctrl-u");
        screen.typed(configs);
        screen.press("tab tab tab tab");
        assert_eq!(form(&screen).field(), FieldId::Sweep);
        screen.typed(word);
        let error = form(&screen).act().unwrap_err();
        assert!(error.message.contains(said), "{word} {configs}: {error:?}");
    }
}

#[test]
fn what_cannot_be_copied_is_said_and_opens_nothing() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("N");
    let refused = Problem::new("alice/7 has its code from a repository", "tpu submit FILE");
    screen.send(Message::Answer(Ask::Precedent(samples::id(7)), Err(refused)));
    assert!(screen.model.overlay.is_none());
    assert!(screen.frame((100, 30)).contains("from a repository"));
    // Whoever has gone on to something else is not interrupted.
    screen.press("esc N ?");
    let told = Answer::Precedent(Box::new(precedent()));
    screen.press("esc :");
    answer(&mut screen, Ask::Precedent(samples::id(7)), told);
    assert!(matches!(screen.model.overlay, Some(Overlay::CommandLine(_))));
}

/// What a record holds of a run that was started by hand is what its program got.
#[test]
fn arguments_are_configs_again_and_nothing_of_a_lineage_is() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let run = "run local alice lr=0.5 config.a.b=x tag=one -q -- sleep 1000";
    drop(env.tpu(run).exits(0));
    env.change(|data| {
        let job = data.job_mut(&samples::id(1)).unwrap();
        job.extra_configs += " --fast --config.late=1 --config.load_from=/old";
        job.father = Some(JobNumber(9));
    });
    let precedent = precedent::of(&ctx, &samples::id(1)).unwrap();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let configs = [pair("lr", "0.5"), pair("config.a.b", "x"), pair("config.late", "1")];
    assert_eq!(precedent.configs, configs);
    assert_eq!(precedent.words, ["--fast"]);
    assert_eq!(precedent.spec.tag.as_deref(), Some("one"));
    assert_eq!((&precedent.sweep, &precedent.waits), (&None, &None));
    // Unchanged they arrive as they did; changed, none arrives twice.
    let words = |form: &Form| {
        let Act::Run(request) = form.act().unwrap() else { panic!("no run") };
        let configs = request.spec.configs.iter().map(|(key, value)| format!("{key}={value}"));
        (configs.collect::<Vec<_>>(), request.spec.words)
    };
    let mut form = Form::like("alice".into(), "alice/1".to_owned(), precedent);
    let (configs, rest) = words(&form);
    assert_eq!(configs, [""; 0]);
    assert_eq!(rest[2..], ["--fast", "--config.late=1"], "{rest:?}");
    form.inputs[2] = tui_input::Input::new("config.late=2".to_owned());
    assert_eq!(words(&form), (vec!["config.late=2".to_owned()], vec!["--fast".to_owned()]));
    // A quote that is never closed hides nothing.
    env.change(|data| {
        data.job_mut(&samples::id(1)).unwrap().extra_configs = "--config.note=it's".to_owned();
    });
    let precedent = precedent::of(&ctx, &samples::id(1)).unwrap();
    assert_eq!(precedent.configs, [pair("config.note", "it's")]);
}

#[test]
fn values_that_cannot_be_typed_again_are_refused() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    drop(env.tpu("submit local alice config.x=1,2 --sweep --hold -- sleep 1000").exits(0));
    let known = precedent::of(&ctx, &samples::id(1)).unwrap();
    assert_eq!(known.sweep.unwrap().in_words(), "config.x=1,2");
    env.change(|data| {
        let entry = data.queues_mut().entry_mut(&samples::id(1)).unwrap();
        entry.spec.configs.push(("config.data".to_owned(), "a,b".to_owned()));
    });
    let refused = precedent::of(&ctx, &samples::id(1)).unwrap_err();
    assert!(refused.message.contains("hold commas"), "{refused:?}");
}

/// In a real terminal: copied, changed, started, and selected.
#[test]
fn by_hand() {
    let env = TestEnv::new();
    drop(env.tpu("run local alice lr=0.5 tag=first -q -- sleep 1000").exits(0));
    drop(env.tpu("run local alice lr=0.7 tag=second -q --force -- sleep 1000").exits(0));
    let terminal = Terminal::new(&env);
    terminal.command(&format!("clear; {TPU} monitor alice"));
    terminal.shows("▸ 1");
    terminal.press("N");
    terminal.shows("New run of alice, like alice/1");
    terminal.keys("C-u");
    terminal.types("lr=0.25");
    terminal.shows("was lr=0.5");
    terminal.keys("Tab Tab Tab Tab");
    terminal.types("each");
    terminal.press("Enter");
    terminal.shows("no config has several values");
    terminal.keys("C-u BTab BTab BTab BTab End");
    terminal.types(",0.125");
    terminal.keys("Tab Tab Tab Tab");
    terminal.types("each");
    terminal.press("Enter");
    terminal.shows("2 jobs: lr=0.25,0.125");
    terminal.press("Enter");
    terminal.until("both wait or run", || {
        let data: serde_json::Value = serde_json::from_slice(&env.data_bytes()).unwrap();
        data.to_string().contains("0.125")
    });
    terminal.until("the group is selected", || {
        terminal.screen().lines().any(|line| line.contains('▸') && !line.contains("▸ 1 "))
    });
}

/// A job file in the place of a target fills the form in; what the form does not show stays as the file says.
#[test]
fn from_a_file() {
    let env = TestEnv::new();
    drop(env.tpu("queue create night").exits(0));
    write_file(
        &env.path("train.yaml"),
        "target: local\ncommand: [bash, -c, exec sleep 1000]\nconfigs: {lr: 0.5}\ntag: first\nname: small\n\
         timeout: 2h\nqueue: night\npriority: 70\n",
    );
    let terminal = Terminal::new(&env);
    terminal.command(&format!("cd {}; clear; {TPU} monitor alice", env.path("").display()));
    terminal.shows("has no jobs");
    terminal.press("n");
    terminal.shows("New run of alice");
    terminal.keys("C-u");
    terminal.types("gone.yaml");
    terminal.press("Enter");
    terminal.shows("cannot read gone.yaml");
    terminal.keys("C-u");
    terminal.types("train.yaml");
    terminal.press("Enter");
    terminal.shows("New run of alice, like train.yaml");
    terminal.shows("exec sleep 1000");
    terminal.keys("C-u");
    terminal.types("lr=0.25");
    terminal.shows("was lr=0.5");
    terminal.press("Enter");
    // What it would be started with on the only machine that there is: which of several is chosen, is said.
    terminal.shows("logs       below");
    assert!(
        terminal.screen().contains("--config.training.learning_rate=0.25"),
        "{}",
        terminal.screen()
    );
    terminal.press("Enter");
    terminal.shows("1 running");
    let job = env.job("alice", 1);
    let spec = &job["extra_msgs"]["spec"];
    assert_eq!(job["extra_configs"], "--config.training.learning_rate=0.25", "{job}");
    assert_eq!((&spec["name"], &spec["queue"]), (&"small".into(), &"night".into()), "{spec}");
    assert!(spec.to_string().contains("\"timeout"), "what no field shows: {spec}");
}

/// Without a word about a queue it waits in the usual one, as `tpu submit` would have it: any of several targets may be meant.
#[test]
fn a_file_that_names_no_queue_waits_in_the_usual_one() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let file = env.path("plain.yaml");
    write_file(&file, "target: local\ncommand: [sleep, \"1000\"]\ntag: said\nconfigs: {lr: 0.5}\n");
    let said = precedent::of_file(&ctx, &"alice".into(), &file.display().to_string()).unwrap();
    let mut form = Form::new("alice".into(), &["plain.yaml", "1"]);
    // What somebody has typed already is not taken from him.
    form.inputs[4] = tui_input::Input::new("typed".to_owned());
    form.fill_in("plain.yaml", said);
    assert_eq!((form.text(FieldId::Tag), form.text(FieldId::Configs)), ("typed", "lr=0.5"));
    let Act::Submit { request, queue, .. } = form.act().unwrap() else { panic!("it waits") };
    assert_eq!((queue, request.spec.tag.as_deref()), (QueueName::usual(), Some("typed")));
    // Without the queue it is the same: which of several it is, is found out there.
    let queue = tpu_screen::model::FIELDS.iter().position(|(id, ..)| *id == FieldId::Queue);
    form.inputs[queue.unwrap()] = tui_input::Input::default();
    let is_any = matches!(request.spec.target, TargetRequest::Any(_));
    assert_eq!(is_any, matches!(form.act().unwrap(), Act::Submit { .. }));
}

/// What no field shows is not left out: such a file is started as it is, or not at all.
#[test]
fn a_file_that_the_form_cannot_show_is_refused() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let head = "target: local\ncommand: sleep 1\n";
    for (text, why) in [
        (format!("{head}---\n{head}"), "holds 2 jobs"),
        (format!("{head}hold: true\n"), "holds its job"),
        (format!("{head}after: 1\n"), "which jobs its own comes after"),
        (format!("{head}code: {{repo: /nowhere}}\n"), "in a repository"),
        ("target: [\n".to_owned(), "wrong.yaml:"),
        (format!("{head}wrong: 1\n"), "wrong"),
    ] {
        write_file(&env.path("wrong.yaml"), &text);
        let file = env.path("wrong.yaml").display().to_string();
        let refused = precedent::of_file(&ctx, &"alice".into(), &file).unwrap_err();
        assert!(refused.message.contains(why), "{text}\n{refused:?}");
        assert!(!refused.hint.as_deref().unwrap_or_default().is_empty(), "{refused:?}");
    }
}
