//! P9 and P4: launches one after the other, then a look at all of their windows by a command that knows
//! nothing of them yet.

use std::io;
use std::time::Duration;

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, TPU, data, median, pairs, timed, tmux};
use crate::store::rewrite;

const ROUNDS: usize = 20;

/// The fields that the barest list has which still tells as much.
const LIST: &str = "list-panes -a -F '#{pane_id} #{window_activity} #{history_size} #{cursor_y} \
     #{session_name} #{window_index} #{pane_dead} #{pane_pid} #{pane_current_command} #{pane_title}'\n";

/// By the number of windows, as far as was asked.
pub(crate) fn launches(table: &mut Table, plan: &Plan) -> io::Result<()> {
    for count in [10, 100, 1_000] {
        if count <= plan.windows {
            windows_of(table, count)?;
        }
    }
    Ok(())
}

fn windows_of(table: &mut Table, count: usize) -> io::Result<()> {
    let lab = Lab::new()?;
    lab.write(&data(lab.dir(), &[]))?;
    let prints =
        "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"step $i loss 0.5\"; done; sleep 9999";
    let launch = ["run", "local", "alice", "-q", "--", "sh", "-c", prints];
    let (mut launches, mut windows, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for n in 1..=count {
        launches.push(lab.run(TPU, &launch)?.0);
        if n % 5 == 0 {
            windows.push(tmux(&lab, "new-window -d -t alice: -n floor 'exit 0'\n")?.0);
            changes.push(timed(|| rewrite(&lab)).1);
        }
    }
    let size = u32::try_from(count).unwrap_or(u32::MAX);
    let start = lab.run("true", &[""; 0])?.0;
    let floor = start + median(&windows) + 2 * median(&changes);
    let launches = Sample::from(launches);
    let row = Row::time(format!("P9 a launch, {count} of them"), &launches);
    let most = Amount::Time(floor + Duration::from_millis(10));
    let row = row.floor(Amount::Time(floor));
    table.push(&row.bound(most, "≤ start + new-window + 2 changes + 10 ms"))?;
    table.point("a launch beside all earlier ones", "windows", size, launches.median());

    let panes = tmux(&lab, "list-panes -a -F '#{pane_id}'\n")?.1.text();
    let look = panes.lines().fold(LIST.to_owned(), |mut look, pane| {
        look += &format!("capture-pane -p -J -S -200 -t {pane}\n");
        look
    });
    let rounds = if count > 100 { 7 } else { ROUNDS };
    let (ours, least) = pairs(rounds, || lab.tpu("check --json"), || Ok(tmux(&lab, &look)?.0))?;
    let name = format!("P4 `check --json`, {count} live windows, cold");
    let row = Row::time(name, &ours).floor(Amount::Time(least.median()));
    let most = Amount::Time(least.median() * 13 / 10 + Duration::from_millis(5));
    table.push(&row.bound(most, "≤ 1.3 × (list + captures) + 5 ms"))?;
    table.point("`check --json` of live windows", "windows", size, ours.median());
    Ok(())
}
