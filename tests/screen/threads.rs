//! The threads around the screen: looks, actions, and what becomes of errors in them. Real threads, a
//! backend in memory, and waits with a deadline.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Snapshot;
use tpu_screen::Backend;
use tpu_screen::effect::Effects;
use tpu_screen::feed::{Event, Looks, Rhythm, coalesce};
use tpu_screen::message::{
    Act, Answer, Ask, Did, Door, Effect, Message, Mouse, MouseDid, Problem, Scope, Ticket,
};

use crate::common::samples;
use crate::common::wait::wait_until;

/// Long enough for a loaded machine; no test waits for it unless it fails.
const DEADLINE: Duration = Duration::from_secs(20);
/// A time that no test lives to see.
const NEVER: Duration = Duration::from_secs(100_000);

/// A backend whose state the test turns.
struct Turned {
    origin: Instant,
    wake: AtomicU64,
    broken: AtomicBool,
    looks: AtomicUsize,
    /// Actions that are being carried out.
    busy: AtomicUsize,
    /// The most that ever were at the same time.
    busiest: AtomicUsize,
    /// The lines that were to be remembered.
    remembered: Mutex<Vec<String>>,
    /// A kill waits for the test to allow it.
    kill_allowed: Mutex<Receiver<()>>,
}

impl Turned {
    #[expect(clippy::disallowed_methods, reason = "a test with real threads needs a real clock")]
    fn new() -> (Arc<Self>, Sender<()>) {
        let (allow, kill_allowed) = channel();
        let turned = Self {
            origin: Instant::now(),
            wake: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            looks: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
            remembered: Mutex::default(),
            kill_allowed: Mutex::new(kill_allowed),
        };
        (Arc::new(turned), allow)
    }

    fn check(&self) -> Result<(), Problem> {
        let broken = self.broken.load(Ordering::SeqCst);
        if broken { Err(Problem::new("data.json cannot be read", "restore it")) } else { Ok(()) }
    }
}

impl Backend for Turned {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(samples::NOW)
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wake_mark(&self, _: &Scope) -> Result<u64, Problem> {
        self.check().map(|()| self.wake.load(Ordering::SeqCst))
    }

    fn snapshot(&self, _: &Scope) -> Result<Snapshot, Problem> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.check().map(|()| samples::snapshot())
    }

    fn pane(&self, job: &JobId, _: Option<u32>, _: bool) -> Result<Option<Vec<u8>>, Problem> {
        assert!(job.window.0 != 13, "an error inside");
        Ok(Some(format!("output of {job}").into_bytes()))
    }

    fn ask(&self, ask: &Ask) -> Result<Answer, Problem> {
        match ask {
            Ask::Say(words) => Ok(Answer::Text(words.join(" "))),
            Ask::Events => panic!("an error inside"),
            _ => Ok(Answer::Events(Vec::new())),
        }
    }

    fn remember(&self, _: Option<&UserName>, line: &str) -> Result<(), Problem> {
        assert!(line != "13", "an error inside");
        self.remembered.lock().unwrap().push(line.to_owned());
        Ok(())
    }

    fn act(&self, act: &Act) -> Result<Did, Problem> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        let result = self.carry_out(act).map(Did::from);
        self.busy.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn door(&self, _: &Door) -> Result<Vec<String>, Problem> {
        Ok(vec!["true".to_owned()])
    }

    fn to_tmux_buffer(&self, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn foreground(&self, _: &[String]) -> Result<(), Problem> {
        Ok(())
    }
}

impl Turned {
    fn carry_out(&self, act: &Act) -> Result<String, Problem> {
        match act {
            Act::Resume(job) => {
                assert!(job.window.0 != 13, "an error inside");
                Err(Problem::new(format!("{job} is running"), "kill it first"))
            }
            Act::Rerun(job) => Ok(format!("Started {job} again.")),
            Act::Kill(_) => {
                let allowed = self.kill_allowed.lock().unwrap();
                allowed.recv_timeout(DEADLINE).expect("the test allows it");
                Ok("Stopped it.".to_owned())
            }
            other => Ok(other.progressive()),
        }
    }
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(DEADLINE).expect("something happens")
}

fn looks(backend: &Arc<Turned>, rhythm: Rhythm) -> (Looks, Receiver<Event>, Sender<Event>) {
    let (sender, events) = channel();
    let backend: Arc<dyn Backend> = backend.clone();
    let looks = Looks::start(backend, Scope::default(), rhythm, sender.clone()).unwrap();
    (looks, events, sender)
}

const QUICK_PULSE: Rhythm = Rhythm { refresh: NEVER, wake: Duration::from_millis(2) };

#[test]
fn a_change_is_noticed_long_before_the_next_look_is_due() {
    let (backend, _allow) = Turned::new();
    let (_looks, events, _) = looks(&backend, QUICK_PULSE);
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    backend.wake.store(1, Ordering::SeqCst);
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    backend.broken.store(true, Ordering::SeqCst);
    assert!(matches!(next(&events), Event::Message(Message::LookFailed(_))));
    // While it is broken every pulse is a new try, so that the end is noticed too.
    backend.broken.store(false, Ordering::SeqCst);
    loop {
        match next(&events) {
            Event::Message(Message::LookFailed(_)) => {}
            Event::Message(Message::Looked(_)) => break,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_look_can_be_asked_for_and_nothing_changed_means_no_look() {
    let (backend, _allow) = Turned::new();
    let (looks, events, _) = looks(&backend, Rhythm { refresh: NEVER, wake: NEVER });
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    looks.now();
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    assert_eq!(backend.looks.load(Ordering::SeqCst), 2);
    // The thread ends with the value that stands for it: the channel closes.
    drop(looks);
    let (_, again, sender) = self::looks(&backend, QUICK_PULSE);
    drop(sender);
    let deadline = backend.monotonic() + DEADLINE;
    while again.recv().is_ok() {
        assert!(backend.monotonic() < deadline, "the thread goes on without its owner");
    }
}

fn effects(backend: &Arc<Turned>) -> (Effects, Receiver<Event>) {
    let (looks, events, sender) = looks(backend, Rhythm { refresh: NEVER, wake: NEVER });
    let backend: Arc<dyn Backend> = backend.clone();
    let effects = Effects::new(backend, looks, sender, true).unwrap();
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    (effects, events)
}

fn act(effects: &Effects, ticket: u64, act: Act) {
    effects.begin(Effect::Act(vec![(Ticket(ticket), act)]));
}

#[test]
fn a_slow_action_holds_nothing_up() {
    let (backend, allow) = Turned::new();
    let (effects, events) = effects(&backend);
    act(&effects, 1, Act::Kill(vec![samples::id(7)]));
    act(&effects, 2, Act::Rerun(samples::id(8)));
    let Event::Message(Message::Done { ticket, toast, .. }) = next(&events) else {
        panic!("no result")
    };
    assert_eq!((ticket, toast.as_str()), (Ticket(2), "Started alice/8 again."));
    effects.begin(Effect::Look);
    assert!(matches!(next(&events), Event::Message(Message::Looked(_))));
    effects.begin(Effect::Log { job: samples::id(7) });
    assert!(matches!(next(&events), Event::Message(Message::Log(_, Ok(Some(_))))));
    allow.send(()).unwrap();
    assert!(matches!(next(&events), Event::Message(Message::Done { ticket: Ticket(1), .. })));
}

/// However many jobs are marked: so many are taken at a time, the others as soon as one is done, and each is
/// answered once.
#[test]
fn many_actions_take_turns() {
    const MANY: u64 = 40;
    let (backend, allow) = Turned::new();
    let (effects, events) = effects(&backend);
    let kill = |n: u64| (Ticket(n), Act::Kill(vec![samples::id(u32::try_from(n).unwrap())]));
    effects.begin(Effect::Act((0..MANY).map(kill).collect()));
    wait_until("as many as may be have begun", || backend.busy.load(Ordering::SeqCst) >= 16);
    (0..MANY).for_each(|_| allow.send(()).unwrap());
    let mut done: Vec<u64> = (0..MANY)
        .map(|_| match next(&events) {
            Event::Message(Message::Done { ticket, .. }) => ticket.0,
            other => panic!("{other:?}"),
        })
        .collect();
    done.sort_unstable();
    assert_eq!(done, (0..MANY).collect::<Vec<_>>());
    assert_eq!(backend.busiest.load(Ordering::SeqCst), 16);
}

/// Lines that follow each other closely are remembered in their order; an error inside loses one of them.
#[test]
fn lines_are_remembered_in_the_order_in_which_they_were_typed() {
    let (backend, _allow) = Turned::new();
    let (effects, _events) = effects(&backend);
    for n in 0..200 {
        effects.begin(Effect::Remember(None, n.to_string()));
    }
    wait_until("all are remembered", || backend.remembered.lock().unwrap().len() == 199);
    let wanted: Vec<String> = (0..200).filter(|n| *n != 13).map(|n| n.to_string()).collect();
    assert_eq!(*backend.remembered.lock().unwrap(), wanted);
}

#[test]
fn failures_come_back_with_their_remedy() {
    let (backend, _allow) = Turned::new();
    let (effects, events) = effects(&backend);
    act(&effects, 3, Act::Resume(samples::id(7)));
    let Event::Message(Message::Failed { ticket, problem }) = next(&events) else { panic!() };
    assert_eq!(ticket, Ticket(3));
    assert_eq!(problem, Problem::new("alice/7 is running", "kill it first"));
}

#[test]
fn an_error_inside_is_a_message_and_not_the_end() {
    let (backend, _allow) = Turned::new();
    let (effects, events) = effects(&backend);
    act(&effects, 4, Act::Resume(samples::id(13)));
    assert!(matches!(next(&events), Event::Message(Message::Failed { ticket: Ticket(4), .. })));
    effects.begin(Effect::Pane { job: samples::id(13), lines: 10 });
    assert!(matches!(next(&events), Event::Message(Message::Pane(_, Err(_)))));
    effects.begin(Effect::Pane { job: samples::id(7), lines: 10 });
    assert!(matches!(next(&events), Event::Message(Message::Pane(_, Ok(Some(_))))));
    effects.begin(Effect::Log { job: samples::id(13) });
    assert!(matches!(next(&events), Event::Message(Message::Log(_, Err(_)))));
}

#[test]
fn a_question_is_answered_and_an_error_inside_is_its_answer() {
    let (backend, _allow) = Turned::new();
    let (effects, events) = effects(&backend);
    effects.begin(Effect::Ask(Ask::Say(vec!["explain".to_owned(), "7".to_owned()])));
    let Event::Message(Message::Answer(ask, Ok(answer))) = next(&events) else { panic!() };
    assert!(matches!((&ask, &*answer), (Ask::Say(_), Answer::Text(text)) if text == "explain 7"));
    effects.begin(Effect::Ask(Ask::Events));
    assert!(matches!(next(&events), Event::Message(Message::Answer(Ask::Events, Err(_)))));
}

#[test]
fn turns_of_the_wheel_that_come_together_are_one() {
    let mouse = |what| Event::Message(Message::Mouse(Mouse { x: 1, y: 2, what }));
    let wheel = |n| mouse(MouseDid::Wheel(n));
    let together = coalesce(vec![
        wheel(1),
        wheel(1),
        wheel(-1),
        mouse(MouseDid::Press),
        mouse(MouseDid::Drag),
        mouse(MouseDid::Drag),
        mouse(MouseDid::Release),
        wheel(1),
    ]);
    let did: Vec<MouseDid> = together
        .iter()
        .map(|event| match event {
            Event::Message(Message::Mouse(mouse)) => mouse.what,
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        MouseDid::Wheel(1),
        MouseDid::Press,
        MouseDid::Drag,
        MouseDid::Release,
        MouseDid::Wheel(1),
    ];
    assert_eq!(did, expected);
}
