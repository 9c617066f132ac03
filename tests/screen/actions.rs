//! What keys and typed lines do to jobs and targets: the form, questions, plans, and the command line.

use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::view::Whose;
use tpu_ops::act::launch::RunRequest;
use tpu_screen::message::{
    Act, Answer, Ask, Choices, Door, Effect, Message, Problem, Proposal, Scope,
};
use tpu_screen::model::Overlay;
use tpu_screen::theme::Theme;

use crate::common::boards::{answer, screen};
use crate::common::samples;
use crate::common::screen::Screen;

fn acts(effects: &[Effect]) -> Vec<Act> {
    let begun = effects.iter().filter_map(|effect| match effect {
        Effect::Act(begun) => Some(begun),
        _ => None,
    });
    begun.flatten().map(|(_, act)| act.clone()).collect()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn run(line: &str) -> Act {
    Act::Command(words(line))
}

fn confirmed(line: &str) -> Act {
    Act::Confirmed(words(line))
}

fn would(act: Act) -> Ask {
    Ask::Would(Box::new(act))
}

const TARGET: &str = "lab-tpuvm-v2-32-preemptible-2";

fn reapply(then_resume: Option<u32>) -> Act {
    Act::Reapply { target: TargetName::from(TARGET), then_resume: then_resume.map(samples::id) }
}

fn solve() -> Act {
    Act::Solve(TargetName::from(TARGET))
}

/// What a typed line asks for, beside being remembered.
fn type_command(screen: &mut Screen, line: &str) -> Vec<Effect> {
    let mut effects = type_and_remember(screen, line);
    effects.retain(|effect| !matches!(effect, Effect::Remember(..)));
    effects
}

fn type_and_remember(screen: &mut Screen, line: &str) -> Vec<Effect> {
    screen.press(":");
    screen.typed(line);
    screen.press("enter")
}

#[test]
fn plan_choice() {
    let mut screen = screen();
    screen.press("j j j p");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn rule_choice() {
    let mut screen = screen();
    screen.press("j j u j");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn command_line() {
    let mut screen = screen();
    screen.press(":");
    screen.typed("ki");
    let proposals = screen.frames();
    screen.press("tab");
    screen.typed(" 7");
    screen.press("enter");
    insta::assert_snapshot!(format!("{proposals}\n{}", screen.frames()));
}

#[test]
fn page_of_words() {
    let mut screen = screen();
    screen.press("j j p enter");
    let text = "Would kill alice/7.\n\nuser       alice\ntarget     lab-tpuvm-v2-32-preemptible-2\n\
                runs       source staging.sh --config.training.learning_rate=0.01 \
                --config.load_from=/data/logs/alice/20261120_115811 --config.stage=2\n";
    let question = would(Act::Kill(vec![samples::id(7)]));
    answer(&mut screen, question, Answer::Text(text.to_owned()));
    insta::assert_snapshot!(screen.frames());
}

fn form_with_choices() -> Screen {
    let mut screen = screen();
    screen.press("j j n");
    let proposal =
        |value: &str, note: &str| Proposal { value: value.to_owned(), note: note.to_owned() };
    let choices = Choices {
        dirs: vec![proposal("1", "/home/alice/imagenet"), proposal("2", "/home/alice/sweep")],
        aliases: vec![
            proposal("lr", "config.training.learning_rate"),
            proposal("bs", "config.training.batch_size"),
        ],
        ..Choices::default()
    };
    answer(&mut screen, Ask::Choices(UserName::from("alice")), Answer::Choices(choices));
    screen
}

#[test]
fn form() {
    let mut screen = form_with_choices();
    screen.press("ctrl-u");
    screen.typed("v");
    screen.press("down");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn the_form_fills_in_plans_and_starts_only_what_was_shown() {
    let mut screen = form_with_choices();
    screen.press("ctrl-u");
    screen.typed("v4128");
    screen.press("down enter");
    screen.press("ctrl-u");
    screen.typed("sweep");
    screen.press("tab");
    screen.typed("lr");
    screen.press("down enter");
    screen.typed("0.1 seed=3");
    screen.press("tab tab");
    screen.typed("try");
    let effects = screen.press("enter");
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let spec = JobSpec {
        dir: Some(2),
        configs: vec![pair("lr", "0.1"), pair("seed", "3")],
        tag: Some("try".to_owned()),
        ..JobSpec::on(TargetRequest::Named("v4-128".to_owned()))
    };
    let request = RunRequest::new(UserName::from("alice"), spec);
    let wanted = Act::Run(Box::new(request));
    assert_eq!(effects, [Effect::Ask(would(wanted.clone()))]);
    assert_eq!(acts(&screen.press("enter")), [], "the plan has not been seen");
    let plan = || Answer::Text("runs  source staging.sh".to_owned());
    answer(&mut screen, would(wanted.clone()), plan());
    insta::assert_snapshot!(screen.frames());
    screen.typed("2");
    assert_eq!(acts(&screen.press("enter")), [], "the plan is another one now");
    screen.press("backspace");
    screen.press("enter");
    answer(&mut screen, would(wanted.clone()), plan());
    assert_eq!(acts(&screen.press("enter")), [wanted]);
    assert!(screen.model.overlay.is_none());
}

#[test]
fn a_plan_that_fails_says_why_and_starts_nothing() {
    let mut screen = form_with_choices();
    let effects = screen.press("enter");
    let [Effect::Ask(ask)] = effects.as_slice() else { panic!("{effects:?}") };
    let problem = Problem::new("v2-32-p2 is in use by alice/7", "add --force");
    screen.send(Message::Answer(ask.clone(), Err(problem)));
    assert!(screen.frame((80, 24)).contains("▲ v2-32-p2 is in use by alice/7"));
    let effects = screen.press("enter");
    assert_eq!(acts(&effects), []);
    assert!(matches!(effects.as_slice(), [Effect::Ask(Ask::Would(_))]), "it is asked again");
    screen.press("esc");
    assert!(screen.model.overlay.is_none());
}

#[test]
fn a_run_is_started_on_the_selected_target() {
    let mut screen = screen();
    screen.press("2 /");
    screen.typed("status:reserved");
    screen.press("enter n");
    let Some(Overlay::Form(form)) = &screen.model.overlay else { panic!("no form") };
    assert_eq!(form.text(tpu_screen::model::FieldId::Target), "v2-32-p4");
}

/// What the form cannot describe is said before anything is asked.
#[test]
fn what_a_form_cannot_mean_is_said() {
    for (field, text, said) in [
        ("tab", "two", "no slot, and no path"),
        ("tab tab", "lr", "'lr' has no value"),
        ("tab tab", "'lr=1", "a quote is not closed"),
    ] {
        let mut screen = form_with_choices();
        screen.press(field);
        screen.press("ctrl-u");
        screen.typed(text);
        assert_eq!(screen.press("enter"), [], "{text}");
        let frame = screen.frame((80, 24));
        assert!(frame.contains(said), "{text}\n{frame}");
    }
}

#[test]
fn keys_call_use_cases_by_values() {
    let mut screen = screen();
    screen.press("j j");
    let rule = Act::SetRule(samples::id(7), "pass".to_owned());
    assert_eq!(acts(&screen.press("u j enter")), [rule]);
    assert_eq!(acts(&screen.press("i")), [], "7 shows no error");
    screen.press("j");
    assert_eq!(acts(&screen.press("i y")), [Act::IgnoreError(samples::id(8))]);
    assert_eq!(screen.press("e"), [Effect::Ask(Ask::Explain(samples::id(8)))]);
    screen.press("esc");
    assert_eq!(acts(&screen.press("A n")), []);
    assert_eq!(acts(&screen.press("A y")), [reapply(Some(8))]);
    assert_eq!(acts(&screen.press("S n")), []);
    assert_eq!(acts(&screen.press("S y")), [solve()]);
    assert_eq!(acts(&screen.press("D n")), []);
    assert_eq!(acts(&screen.press("D y")), [Act::StopDaemon]);
}

/// Every action says first what it would do.
#[test]
fn any_action_is_planned_without_being_done() {
    let plan = |act: Act| Effect::Ask(would(act));
    let id = samples::id;
    let mut screen = screen();
    screen.press("j j j");
    assert_eq!(screen.press("p enter"), [plan(Act::Resume(id(8)))], "the next one");
    for (key, act) in [
        ("r", Act::Resume(id(8))),
        ("R", Act::Rerun(id(8))),
        ("x", Act::Kill(vec![id(8)])),
        ("c", Act::Clean(UserName::from("alice"))),
        ("i", Act::IgnoreError(id(8))),
        ("A", reapply(None)),
        ("S", solve()),
    ] {
        assert_eq!(screen.press(&format!("esc p {key}")), [plan(act)], "{key}");
    }
    screen.press("esc k space space");
    assert_eq!(screen.press("p x"), [plan(Act::Kill(vec![id(7), id(8)]))], "what is marked");
    screen.press("esc 2 g j");
    assert_eq!(screen.press("p S"), [plan(solve())]);
    assert_eq!(screen.press("esc p t"), [], "a tag says itself what it does");
    assert!(matches!(screen.model.overlay, Some(Overlay::Choice(_))));
    screen.press("esc g p");
    assert!(screen.model.overlay.is_none(), "this machine has no plan");
    assert_eq!(acts(&screen.effects), []);
}

/// What destroys is asked about with what it would do; where it would fail, there is nothing to confirm.
#[test]
fn a_question_about_a_target_holds_its_plan() {
    let mut screen = screen();
    screen.press("j j");
    let asked = screen.press("A");
    let question = would(reapply(None));
    assert_eq!(asked, [Effect::Ask(question.clone())]);
    assert!(screen.frame((80, 24)).contains("asking what it would do"));
    let text = "target     lab-tpuvm-v2-32-preemptible-2\nstate      READY for 2h 04\n\
                would      delete it with all that is on it, then create it\n";
    answer(&mut screen, question, Answer::Text(text.to_owned()));
    insta::assert_snapshot!(screen.frames());
    screen.press("esc");
    let asked = screen.press("S");
    let Some(Effect::Ask(ask)) = asked.first() else { panic!("{asked:?}") };
    let problem = Problem::new("no recipe 'solve' fits it", "write one");
    screen.send(Message::Answer(ask.clone(), Err(problem)));
    assert!(screen.model.overlay.is_none());
    assert!(screen.frame((80, 24)).contains("no recipe 'solve' fits it"));
}

#[test]
fn what_destroys_is_asked_about_first_with_its_own_words() {
    let mut screen = screen();
    let effects = type_command(&mut screen, "kill tag:baseline");
    let question = words("kill tag:baseline --dry-run");
    assert_eq!(effects, [Effect::Ask(Ask::Say(question.clone()))]);
    answer(&mut screen, Ask::Say(question.clone()), Answer::Text("Would kill alice/7.".to_owned()));
    assert!(screen.frame((80, 24)).contains("Would kill alice/7."));
    assert_eq!(acts(&screen.press("y")), [confirmed("kill tag:baseline")]);
    // What would fail is said, and there is nothing to confirm.
    type_command(&mut screen, "kill tag:baseline");
    screen.send(Message::Answer(Ask::Say(question), Err(Problem::new("no such job", "tpu check"))));
    assert!(screen.model.overlay.is_none());
    assert_eq!(acts(&type_command(&mut screen, "delete v4-8-2")), []);
    assert_eq!(acts(&screen.press("n")), []);
}

/// A yes that is typed with the command is no answer to the question, wherever it stands: the plan comes, what
/// would fail is said, and the command is run once.
#[test]
fn a_yes_that_is_typed_changes_no_question() {
    for line in ["kill 7 --yes --user bob", "kill -y 7 --user bob", "kill 7 --user bob"] {
        let question = Ask::Say(words("kill 7 --user bob --dry-run"));
        let mut screen = screen();
        assert_eq!(type_command(&mut screen, line), [Effect::Ask(question.clone())], "{line}");
        answer(&mut screen, question.clone(), Answer::Text("Would kill bob/7.".to_owned()));
        let frame = screen.frame((80, 24));
        assert!(frame.contains("tpu kill 7 --user bob?"), "{line}:\n{frame}");
        assert!(frame.contains("Would kill bob/7."), "{line}:\n{frame}");
        assert_eq!(acts(&screen.press("y")), [confirmed("kill 7 --user bob")], "{line}");
        type_command(&mut screen, line);
        let problem = Problem::new("no such job", "tpu check bob");
        screen.send(Message::Answer(question, Err(problem)));
        assert!(screen.model.overlay.is_none(), "{line}");
        assert!(screen.frame((80, 24)).contains("no such job"), "{line}");
    }
}

#[test]
fn the_command_line_remembers_completes_and_runs() {
    let mut screen = screen();
    assert_eq!(acts(&type_command(&mut screen, "check -wd")), [run("check -wd")]);
    let leave = type_command(&mut screen, "attach 7");
    let [Effect::Leave { door, .. }] = leave.as_slice() else { panic!("{leave:?}") };
    assert_eq!(*door, Door::Command(words("attach 7")));
    screen.press(": up up");
    let Some(Overlay::CommandLine(line)) = &screen.model.overlay else { panic!("no line") };
    assert_eq!(line.input.value(), "check -wd");
    screen.press("down down");
    let Some(Overlay::CommandLine(line)) = &screen.model.overlay else { panic!("no line") };
    assert_eq!(line.input.value(), "");
    screen.typed("ch");
    screen.press("tab");
    let Some(Overlay::CommandLine(line)) = &screen.model.overlay else { panic!("no line") };
    assert_eq!(line.input.value(), "check ");
    screen.press("esc");
    type_command(&mut screen, "theme light");
    assert_eq!(screen.model.setup.theme, Theme::named("light").unwrap());
    let effects = type_command(&mut screen, "user all");
    assert_eq!(effects, [Effect::Scope(Scope { whose: Whose::default() })]);
    type_command(&mut screen, "q");
    assert!(!screen.model.quit, "a command is under way");
    type_command(&mut screen, "q");
    assert!(screen.model.quit);
}

/// What was typed in other sessions comes before what was typed in this one; secrets are not remembered.
#[test]
fn lines_outlive_their_session_but_for_secrets() {
    let mut screen = screen();
    let alice = Some(UserName::from("alice"));
    let asked = screen.press(":");
    assert_eq!(asked, [Effect::Ask(Ask::Remembered(alice.clone()))]);
    screen.typed("check");
    let done = screen.press("enter");
    assert!(done.contains(&Effect::Remember(alice.clone(), "check".to_owned())), "{done:?}");
    let done = type_and_remember(&mut screen, "data set wandb_api_key 0123");
    assert!(!done.iter().any(|effect| matches!(effect, Effect::Remember(..))), "{done:?}");
    let kept = ["kill 7", "check", "theme light"].map(str::to_owned).to_vec();
    screen.press(":");
    answer(&mut screen, Ask::Remembered(alice), Answer::Remembered(kept));
    let mut seen = Vec::new();
    for _ in 0..4 {
        screen.press("up");
        let Some(Overlay::CommandLine(line)) = &screen.model.overlay else { panic!("no line") };
        seen.push(line.input.value().to_owned());
    }
    assert_eq!(seen, ["check", "theme light", "kill 7", "kill 7"]);
}
