//! What broke is counted in the head and one key away; the line at the bottom is the selected job's.

use crate::common::samples;
use crate::common::screen::Screen;
use tpu_core::model::facts::Phase;
use tpu_core::model::groups;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Snapshot};

fn selected(screen: &Screen) -> u32 {
    screen.model.list.selected.as_ref().map_or(0, |id| id.window.0)
}

/// Whatever the filter hides, the header counts it, and a key leads there; the line at the bottom stays the selected job's.
#[test]
fn a_filter_never_hides_that_something_failed() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("/");
    screen.typed("status:finished");
    screen.press("enter");
    for size in crate::common::screen::SIZES {
        let frame = screen.frame(size);
        assert!(frame.contains("▲ 2 error"), "{frame}");
        assert!(!frame.contains("▲ 9 oom"), "{frame}");
    }
    for tab in ["1", "2", "3", "4", "5", "6"] {
        screen.press(&format!("{tab} E"));
        assert_eq!(selected(&screen), 9);
        for size in crate::common::screen::SIZES {
            let frame = screen.frame(size);
            assert!(frame.contains("▲ 9 oom: \"Ran out"), "{frame}");
        }
    }
}

/// What started first may break last.
#[test]
fn the_key_leads_to_what_broke_last_whenever_it_began() {
    let at = |ago: i64| Some(Timestamp::from_second(samples::NOW - ago));
    let failed = |window: u32, started: i64, ended: i64| {
        let job = samples::oom(window);
        JobView { started_at: at(started), ended_at: at(ended), ..job }
    };
    let all = samples::snapshot();
    let jobs = vec![failed(1, 9_000, 60), failed(2, 3_600, 3_000), samples::job(3)];
    let mut screen = Screen::showing(Snapshot { jobs, ..all });
    screen.press("E");
    assert_eq!(selected(&screen), 1);
}

/// What is at work and amiss, and what a person has to help, have a count of their own in the head, and the key leads there
/// where nothing has failed.
#[test]
fn what_is_amiss_is_counted_and_one_key_away() {
    let amiss = |window: u32, phase: Phase| {
        let mut job = samples::job(window);
        job.shown.phase = Some(phase);
        job
    };
    let jobs = vec![
        samples::job(1),
        amiss(2, Phase::Diverged),
        amiss(3, Phase::Stalled),
        amiss(4, Phase::StartedOver),
        amiss(5, Phase::IdlePrompt),
    ];
    let mut screen = Screen::showing(Snapshot { jobs: jobs.clone(), ..samples::snapshot() });
    let frame = screen.frame((200, 50));
    for count in ["● 1 running", "▲ 1 diverged", "▲ 1 stalled", "▲ 1 idle-prompt (E)"] {
        assert!(frame.contains(count), "{count}: {frame}");
    }
    let words = groups::counts(&jobs);
    assert!(words.ends_with("1 stalled, 1 started-over, 1 running"), "{words}");
    screen.press("E");
    assert_eq!(selected(&screen), 5);
    let mut job = samples::oom(6);
    job.needs_person = true;
    let frame =
        Screen::showing(Snapshot { jobs: vec![job], ..samples::snapshot() }).frame((120, 40));
    assert!(frame.contains("▲ 1 needs-you (E)"), "{frame}");
}

/// Where nothing is broken the key says so.
#[test]
fn of_jobs_that_are_well_the_line_says_how_they_are() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("/");
    screen.typed("status:running");
    screen.press("enter");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("● 7 running"), "{frame}");
    let well = samples::snapshot();
    let mut well = Screen::showing(Snapshot {
        jobs: well.jobs.into_iter().filter(|job| groups::urgency(job) > 2).collect(),
        ..well
    });
    well.press("E");
    assert!(well.frame((120, 40)).contains("Nothing is broken."));
}
