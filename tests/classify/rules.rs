//! Every rule does what it says, is needed, and can be switched off; broken pattern files are refused
//! with the place of the mistake.

use std::collections::BTreeMap;

use serde::Deserialize;

use tpu_core::classify::{Classifier, Input, Rule, Scope, Weight};
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{Class, Verdict};

/// Texts that a rule decides, and texts that it must not decide.
#[derive(Deserialize)]
struct Tried {
    id: String,
    examples: Vec<String>,
    #[serde(default)]
    counterexamples: Vec<String>,
}

/// What is to be tried of each rule, by its id.
fn tried() -> BTreeMap<String, Tried> {
    #[derive(Deserialize)]
    struct File {
        rule: Vec<Tried>,
    }
    let file: File = toml::from_str(include_str!("../../assets/patterns.toml")).unwrap();
    file.rule.into_iter().map(|tried| (tried.id.clone(), tried)).collect()
}

/// What the classifier says about an example, and by which rule: the way a reader of the rule would try
/// it, on its own where the rule allows that.
fn say(classifier: &Classifier, rule: &Rule, example: &str) -> (Class, Option<String>) {
    if rule.scope == Scope::Line && rule.needs.is_empty() && !example.contains('\n') {
        let verdicts = classifier.classify_lines(example.as_bytes());
        let verdict = verdicts.into_iter().next().expect("one verdict a line");
        return (verdict.class, verdict.rule);
    }
    // What counts only once a job has stopped is shown to one that has.
    let exit_code = (rule.weight == Weight::Retry).then_some(1);
    let text = example.as_bytes();
    let Verdict { class, evidence, .. } = classifier.classify(&Input {
        text,
        exit: exit_code.map(Exit::Program),
        ..Input::default()
    });
    (class, evidence.map(|evidence| evidence.rule))
}

#[test]
fn examples_are_decided_by_their_rule() {
    let (classifier, tried) = (Classifier::builtin(), tried());
    for rule in classifier.rules() {
        let tried = &tried[&rule.id];
        assert!(!rule.note.is_empty(), "{}: a rule says why", rule.id);
        assert!(!tried.examples.is_empty(), "{}: a rule has examples", rule.id);
        for example in &tried.examples {
            let (class, id) = say(classifier, rule, example);
            // A rule without a class has nothing to show as evidence in a block.
            assert_eq!((class, id.as_deref()), (rule.class, Some(rule.id.as_str())), "{example}");
        }
        for text in &tried.counterexamples {
            let (class, id) = say(classifier, rule, text);
            assert_ne!(id.as_deref(), Some(rule.id.as_str()), "{text}");
            assert!(class.failure().is_none() || class != rule.class, "{}: {text}", rule.id);
        }
    }
}

#[test]
fn every_rule_is_needed() {
    let (classifier, tried) = (Classifier::builtin(), tried());
    let mut idle = Vec::new();
    for rule in classifier.rules() {
        let (without, errors) =
            Classifier::with_overlay(&format!("disable = ['{}']", rule.id), "lab.toml");
        assert_eq!(errors, []);
        // Where another rule would give the same class, it is the phase that this one adds.
        let phase = |c: &Classifier, text: &str| {
            c.classify(&Input { text: text.as_bytes(), ..Input::default() }).phase
        };
        let differs = |example: &String| {
            say(&without, rule, example).0 != rule.class
                || (rule.phase.is_some() && phase(&without, example) != phase(classifier, example))
        };
        if !tried[&rule.id].examples.iter().any(differs) {
            idle.push(&rule.id);
        }
    }
    assert!(idle.is_empty(), "switched off, nothing changes: {idle:?}");
}

#[test]
fn a_lab_overrides_adds_and_disables() {
    let overlay = r#"
disable = ["signal.shell"]

[[rule]]
id = "lab.disk"
class = "file-error"
regex = 'DISK (?:GONE|LOST)'

[[rule]]
id = "locked.log-file"
class = "none"
regex = 'Could not open any log file'
"#;
    let (classifier, errors) = Classifier::with_overlay(overlay, "lab.toml");
    assert_eq!(errors, []);
    let class = |text: &str| classifier.classify_lines(text.as_bytes())[0].class.as_str();
    assert_eq!(class("[worker 2] DISK LOST"), "file-error");
    assert_eq!(class("Could not open any log file"), "none");
    assert_eq!(class("Killed"), "none");
    assert_eq!(class("ValueError: still built in"), "python-error");
}

#[test]
fn a_lab_may_name_a_rule_by_its_earlier_id() {
    let line = b"Watchdog caught collective operation timeout";
    let class = |overlay: &str| {
        let (classifier, errors) = Classifier::with_overlay(overlay, "lab.toml");
        assert_eq!(errors, []);
        classifier.classify_lines(line)[0].class.as_str()
    };
    assert_eq!(class(""), "network");
    assert_eq!(class("disable = ['grpc.collective', 'network.topic', 'grpc.topic']"), "none");
    let replaced = "[[rule]]\nid = 'grpc.collective'\nclass = 'grpc'\nregex = 'Watchdog caught'\n";
    assert_eq!(class(replaced), "grpc");
}

#[test]
fn a_need_must_be_met_in_the_block() {
    let overlay = r#"
[[rule]]
id = "lab.cause"
class = "file-error"
regex = 'shard server gone'

[[rule]]
id = "lab.effect"
class = "grpc"
regex = 'the loader gave up'
needs = ["lab.cause"]
"#;
    let (classifier, errors) = Classifier::with_overlay(overlay, "lab.toml");
    assert_eq!(errors, []);
    let class = |text: &str| {
        let text = text.as_bytes();
        classifier
            .classify(&Input { text, exit: Some(Exit::Program(1)), ..Input::default() })
            .class
            .as_str()
    };
    assert_eq!(class("the loader gave up"), "none");
    assert_eq!(class("the loader gave up\nshard server gone"), "grpc");
    assert_eq!(classifier.classify_lines(b"the loader gave up")[0].class.as_str(), "none");
}

/// A broken file is refused as a whole: file, line, rule and reason are said, the built-in rules go on.
#[test]
fn mistakes_are_named_with_their_place() {
    let rule = |id: &str, more: &str| format!("[[rule]]\nid = '{id}'\nclass = 'oom'\n{more}\n");
    let cases = [
        (rule("lab.a", "regex = '('"), 4, Some("lab.a"), "bad regex '('"),
        (rule("lab.a", "regex = '(a{1000}){1000}'"), 4, Some("lab.a"), "bad regex"),
        (rule("lab.a", "regex = 'x'\nunless = '['"), 5, Some("lab.a"), "bad regex '['"),
        (
            rule("lab.a", "regex = 'x'").replace("oom", "ooom"),
            3,
            Some("lab.a"),
            "unknown class 'ooom'",
        ),
        (
            rule("lab.a", "regex = 'x'") + &rule("lab.a", "regex = 'y'"),
            6,
            Some("lab.a"),
            "used twice",
        ),
        (
            rule("lab.a", "regex = 'x'\nneeds = ['lab.b']")
                + &rule("lab.b", "regex = 'y'\nneeds = ['lab.a']"),
            5,
            Some("lab.a"),
            "which needs it in turn",
        ),
        (rule("lab.a", "regex = 'x'\nneeds = ['lab.a']"), 5, Some("lab.a"), "needs it in turn"),
        (rule("lab.a", "regex = 'x'\nneeds = ['lab.z']"), 5, Some("lab.a"), "which is no rule"),
        (rule("lab.a", "regexp = 'x'"), 4, Some("lab.a"), "unknown field"),
        (rule("lab.a", "regex = 'x'\nunless_lists = ['talk']"), 5, Some("lab.a"), "no list 'talk'"),
        (
            "[unless]\nown = '['\n".to_owned()
                + &rule("lab.a", "regex = 'x'\nunless_lists = ['own']"),
            2,
            Some("lab.a"),
            "bad regex '['",
        ),
        (rule("lab.a", "regex = []"), 4, Some("lab.a"), "empty"),
        (rule("lab.a", "regex = 'x'\nscope = 'page'"), 5, Some("lab.a"), "unknown variant"),
        ("disable = ['no.such']".to_owned(), 1, Some("no.such"), "cannot be disabled"),
        ("a = = b".to_owned(), 1, None, ""),
        (rule("lab.a", "regex = 'unclosed"), 4, Some("lab.a"), ""),
    ];
    for (text, line, rule, message) in cases {
        let (classifier, errors) = Classifier::with_overlay(&text, "lab.toml");
        let first = errors.first().unwrap_or_else(|| panic!("no error for {text}"));
        assert_eq!((first.line, first.rule.as_deref()), (line, rule), "{first}\n{text}");
        assert!(first.message.contains(message), "{first}");
        assert!(first.to_string().starts_with(&format!("lab.toml:{line}: ")), "{first}");
        assert_eq!(classifier.classify_lines(b"Killed")[0].class.as_str(), "killed-by-signal");
        assert_eq!(classifier.rules().len(), Classifier::builtin().rules().len());
    }
}

#[test]
fn all_mistakes_of_a_file_are_named_at_once() {
    let text = "[[rule]]\nid='a'\nclass='x'\nregex='('\n[[rule]]\nid='b'\nclass='oom'\nregex='['\n";
    let (_, errors) = Classifier::with_overlay(text, "lab.toml");
    assert_eq!(errors.iter().map(|e| e.line).collect::<Vec<_>>(), [3, 4, 8]);
}
