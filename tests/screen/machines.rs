//! Machines of somebody's own on the tab of targets: a cell for each place, bars with their age, a key that drains and
//! one that takes it back; and what a job has of its machine.

use tpu_core::model::capacity::{Capacity, Memory, Share};
use tpu_core::model::facts::{GpuFact, GpuProcess, MachineFact, TargetFact, TargetState};
use tpu_core::model::figures::{HostFigures, JobFigures, SeenFigures};
use tpu_core::model::host::{Drained, HostRecord};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::prices::Prices;
use tpu_core::model::target::{Machines, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::Standing;
use tpu_ops::act::board::Board;
use tpu_ops::act::hosts::Host;
use tpu_ops::act::hosts::figures::Figures;
use tpu_screen::message::{Act, Answer, Ask, Effect, Message};
use tpu_screen::tabs::Tab;

use crate::common::boards::{answer, row};
use crate::common::samples::{self, NOW};
use crate::common::screen::Screen;

fn gpu(index: u32, percent: u32, user: Option<&str>) -> GpuFact {
    let process = |user: &str| GpuProcess { pid: 1, user: user.to_owned(), used: None };
    GpuFact {
        index,
        id: format!("GPU-{index}"),
        model: Some("A100\u{1b}[31m".to_owned()),
        use_percent: Some(percent),
        used: Some(Memory(40_960)),
        memory: Some(Memory(81_920)),
        celsius: Some(60 + index),
        processes: user.map(process).into_iter().collect(),
    }
}

fn seen(ago: i64, gpus: Vec<GpuFact>, jobs: Vec<(JobId, JobFigures)>) -> HostFigures {
    let at = Timestamp::from_second(NOW - ago);
    let machine = MachineFact {
        cpus: Some(8),
        load: Some(3.2),
        memory: Some(Memory(262_144)),
        available: Some(Memory(196_608)),
        gpus,
        ..MachineFact::default()
    };
    let seen = SeenFigures { at, machine, jobs: Some(jobs) };
    HostFigures { asked_at: at, addresses: Vec::new(), seen: Some(seen), silent: None }
}

fn host(name: &str, gpus: Option<u32>, jobs: &[(u32, &[u32])]) -> Host {
    let share = |gpus: &[u32]| Share { gpus: Some(gpus.to_vec()), ..Share::default() };
    Host {
        name: TargetName::from(name),
        addresses: vec![name.to_owned()],
        capacity: Capacity { jobs: Some(2), gpus, ..Capacity::default() },
        record: HostRecord::default(),
        jobs: jobs.iter().map(|(job, gpus)| (samples::id(*job), Some(share(gpus)))).collect(),
        figures: None,
    }
}

/// One with a job and a stranger, one with jobs and no GPUs, one that is drained, one that is silent, one that nobody
/// has asked for long.
fn lab() -> (Board, Figures) {
    let mut drained = host("gpu3", Some(2), &[]);
    let by = "bob\u{1b}[2J".to_owned();
    let since = Timestamp::from_second(NOW - 60);
    drained.record.drained = Some(Drained { by, since, why: Some("new disk".to_owned()) });
    let hosts = vec![
        host("gpu1", Some(4), &[(7, &[0, 1])]),
        host("gpu2", None, &[(8, &[])]),
        drained,
        host("gpu4", Some(2), &[]),
        host("gpu5", Some(2), &[]),
    ];
    let rows = hosts.iter().map(|host| {
        let name = host.name.as_str();
        let mut row = row(name, name, TargetState::NotWatched, 0);
        (row.zone, row.accelerator) = (None, None);
        row.fact =
            TargetFact::new(host.name.clone(), TargetState::NotWatched, "", row.fact.observed_at);
        (row.fact.machines, row.kind) = (Machines::Fixed, TargetKind::SSH);
        row.jobs = host.jobs.iter().map(|(job, _)| job.clone()).collect();
        if !row.jobs.is_empty() {
            row.standing = Standing::Running;
        }
        row
    });
    let board = Board {
        at: Timestamp::from_second(NOW),
        targets: rows.collect(),
        silent: Vec::new(),
        prices: Prices::default(),
        hosts,
    };
    let of_job = JobFigures {
        processes: 3,
        cores: Some(0.98),
        interval_s: 1.0,
        cpu_s: 77.0,
        memory: Memory(312),
        gpus: [(0, Some(Memory(39_000))), (1, None)].into(),
    };
    let gpus = vec![
        gpu(0, 97, Some("alice")),
        gpu(1, 50, None),
        gpu(2, 0, None),
        gpu(3, 13, Some("eve\u{7}")),
    ];
    let mut silent = seen(300, vec![gpu(0, 0, None)], Vec::new());
    silent.silent = Some("no route\u{1b}[0m to host".to_owned());
    let figures = [
        ("gpu1", seen(12, gpus, vec![(samples::id(7), of_job)])),
        ("gpu2", seen(12, Vec::new(), Vec::new())),
        ("gpu3", seen(12, vec![gpu(0, 0, None), gpu(1, 0, None)], Vec::new())),
        ("gpu4", silent),
        ("gpu5", seen(900, vec![gpu(0, 5, None), gpu(1, 0, None)], Vec::new())),
    ];
    (board, figures.map(|(name, figures)| (TargetName::from(name), figures)).into())
}

pub(super) fn screen() -> Screen {
    let mut snapshot = samples::snapshot();
    for job in snapshot.jobs.iter_mut().filter(|job| job.id == samples::id(7)) {
        job.target = TargetName::from("gpu1");
    }
    let mut screen = Screen::showing(snapshot);
    let (board, figures) = lab();
    answer(&mut screen, Ask::Targets, Answer::Targets(board));
    answer(&mut screen, Ask::Figures, Answer::Figures(figures));
    screen
}

fn line<'a>(frame: &'a str, name: &str) -> &'a str {
    frame.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}:\n{frame}"))
}

#[test]
fn machines() {
    let mut screen = screen();
    screen.press("2");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn a_cell_stands_for_each_place_and_says_who_has_it() {
    let mut screen = screen();
    screen.press("2");
    let frame = screen.frame((100, 24));
    assert!(line(&frame, "gpu1 ").contains("■■·!"), "{frame}");
    assert!(line(&frame, "gpu2 ").contains("■·"), "{frame}");
    assert!(
        line(&frame, "gpu3 ").contains("x drained") && line(&frame, "gpu3 ").contains("xx"),
        "{frame}"
    );
    assert!(line(&frame, "gpu4 ").contains("? silent"), "{frame}");
    assert!(line(&frame, "gpu4 ").contains("??"), "{frame}");
    let wide = screen.frame((200, 50));
    assert!(line(&wide, "gpu1 ").contains("7 7 · !"), "{wide}");
    // Who that is stands below.
    assert!(wide.contains("0: alice/7 97 % 40.0/80.0 GiB 60 °C"), "{wide}");
    assert!(wide.contains("of no job"), "{wide}");
    screen.press("j j");
    let frame = screen.frame((100, 24));
    assert!(frame.contains("drained by bob") && frame.contains("new disk"), "{frame}");
    assert!(!frame.contains('\u{1b}') && !frame.contains('\u{7}'));
}

#[test]
fn figures_stand_with_their_age_and_what_is_silent_is_never_nought() {
    let mut screen = screen();
    screen.press("2");
    let frame = screen.frame((160, 24));
    let first = line(&frame, "gpu1 ");
    for word in ["3.2/8", "25 %", "40 %", "63 °C", "12s"] {
        assert!(first.contains(word), "{word}: {first}");
    }
    let silent = line(&frame, "gpu4 ");
    assert!(
        silent.contains("silent 5m") && !silent.contains('%') && !silent.contains("3.2"),
        "{silent}"
    );
    assert!(line(&frame, "gpu5 ").contains("15m"), "{frame}");
    // An hour later nothing that was said is worth anything.
    screen.wait(3600);
    let frame = screen.frame((160, 24));
    assert!(
        !line(&frame, "gpu1 ").contains("3.2/8") && line(&frame, "gpu1 ").contains("1h 00m"),
        "{frame}"
    );
}

#[test]
fn a_job_shows_what_it_has_of_its_machine() {
    let mut screen = screen();
    while screen.model.selected().is_none_or(|job| job.id != samples::id(7)) {
        screen.press("j");
    }
    let frame = screen.frame((200, 50));
    let uses = line(&frame, "uses ");
    assert!(frame.contains("GPU 0 97 % 40.0/80.0 GiB (own 38.1 GiB) 60 °C"), "{frame}");
    for word in ["0.98 cores over 1.0 s", "312 MiB", "3 processes", "12s ago"] {
        assert!(uses.contains(word), "{word}: {uses}");
    }
    let mut silent = lab().1;
    silent.get_mut(&TargetName::from("gpu1")).unwrap().silent = Some("no route".to_owned());
    answer(&mut screen, Ask::Figures, Answer::Figures(silent));
    let frame = screen.frame((200, 50));
    assert!(line(&frame, "uses ").contains("unknown: its machine is silent 12s"), "{frame}");
}

#[test]
fn d_drains_after_a_question_and_u_takes_it_back() {
    let mut screen = screen();
    screen.press("2");
    assert_eq!(screen.press("d"), [], "it is asked first");
    let frame = screen.frame((80, 24));
    assert!(frame.contains("Drain gpu1?") && frame.contains("left alone"), "{frame}");
    assert!(frame.contains("u lets jobs"), "{frame}");
    let acts = |effects: Vec<Effect>| -> Vec<Act> {
        let acts = effects.into_iter().filter_map(|effect| match effect {
            Effect::Act(acts) => Some(acts),
            _ => None,
        });
        acts.flatten().map(|(_, act)| act).collect()
    };
    assert_eq!(acts(screen.press("n")), []);
    screen.press("d");
    assert_eq!(acts(screen.press("y")), [Act::Drain(TargetName::from("gpu1"))]);
    let (ticket, _) = screen.model.running.first().cloned().unwrap();
    let effects = screen.send(Message::Done { ticket, toast: "done".to_owned(), began: None });
    assert!(effects.contains(&Effect::Ask(Ask::Targets)), "{effects:?}");
    // One that takes jobs has nothing to be taken back, and one that takes none is not asked about.
    assert_eq!(acts(screen.press("u")), []);
    assert!(screen.frame((100, 24)).contains("gpu1 is not drained"));
    screen.press("j j d");
    assert!(
        screen.frame((100, 24)).contains("gpu3 takes no new jobs already; u lets them begin again")
    );
    assert_eq!(acts(screen.press("u")), [Act::Undrain(TargetName::from("gpu3"))]);
    screen.press("?");
    let help = screen.frame((120, 60));
    assert!(
        help.contains("let nothing new begin on the machine")
            && help.contains("let jobs begin on the machine again")
    );
}

#[test]
fn what_is_no_machine_of_ones_own_is_not_drained() {
    let mut screen = crate::common::boards::screen();
    screen.press("2 j d");
    let frame = screen.frame((120, 24));
    assert!(frame.contains("is no machine of your own"), "{frame}");
}

#[test]
fn figures_are_asked_for_while_they_are_shown_and_not_else() {
    let asks = |effects: &[Effect]| effects.contains(&Effect::Ask(Ask::Figures));
    let mut screen = screen();
    assert!(!asks(&screen.wait(10)), "they are young");
    assert!(asks(&screen.wait(10)));
    assert!(!asks(&screen.wait(100)), "an answer is awaited");
    answer(&mut screen, Ask::Figures, Answer::Figures(lab().1));
    screen.press("4");
    assert_eq!(screen.model.tab, Tab::Events);
    assert!(!asks(&screen.wait(100)), "nobody sees them");
    assert!(asks(&screen.press("2")));
}

#[test]
fn thirty_machines_fit_and_nothing_depends_on_colours() {
    let (mut board, _) = lab();
    let (first, row) = (board.hosts[0].clone(), board.targets[0].clone());
    board.hosts.clear();
    board.targets.clear();
    let mut figures = Figures::new();
    for number in 1..=30 {
        let name = TargetName::from(format!("node{number:02}").as_str());
        board.hosts.push(Host { name: name.clone(), ..first.clone() });
        board.targets.push(tpu_core::plan::board::Row {
            target: name.clone(),
            label: name.as_str().to_owned(),
            ..row.clone()
        });
        figures.insert(name, lab().1[&TargetName::from("gpu1")].clone());
    }
    let mut screen = screen();
    answer(&mut screen, Ask::Targets, Answer::Targets(board));
    answer(&mut screen, Ask::Figures, Answer::Figures(figures));
    screen.press("2 G");
    for size in [(80, 24), (200, 50)] {
        let frame = screen.frame(size);
        assert!(frame.contains("node30") && line(&frame, "node30").contains("12s"), "{frame}");
    }
    screen.model.setup.ascii = true;
    let frame = screen.frame((80, 24));
    assert!(frame.is_ascii() && line(&frame, "node30").contains("##.!"), "{frame}");
}
