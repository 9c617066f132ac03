//! What broke is counted in the head and one key away; the line at the bottom is the selected job's.

use crate::common::samples;
use crate::common::screen::Screen;
use tpu_core::model::view::Snapshot;

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
        jobs: well.jobs.into_iter().filter(|job| job.failure().is_none()).collect(),
        ..well
    });
    well.press("E");
    assert!(well.frame((120, 40)).contains("Nothing is broken."));
}
