//! `demo` and `demo-train`: the tour, told as text, shown on the screen or written down, and taken down again.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::demo::caption::captions;
use crate::demo::cluster;
use crate::demo::lab;
use crate::demo::report;
use crate::demo::story::{Sabotage, Story};
use crate::demo::tale::DemoTale;
use crate::demo::witness::Witness;
use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_ops::front::open::{Opening, open};
use tpu_ops::{Ctx, Error};
use tpu_wire::pages::DemoDocument;

use super::Outcome;
use super::app::{App, asked_to_end};
use super::args::{Demo, kinds};
use super::print::Output;
use super::screen::of_demo::{Recording, plain_options, record};
use super::screen::{self, Captioner, Options, TellNature};

/// The tour. `nature` tells the screen what a command that is typed into it asks for.
pub(super) fn demo(app: &App, args: &Demo, nature: TellNature) -> Outcome {
    let sabotage = args.sabotage.as_deref().map(|word| {
        Sabotage::parse(word).ok_or_else(|| {
            Error::usage(format!("--sabotage {word}: nothing to break"))
                .hint(Sabotage::WORDS.map(|(word, _)| word).join(", "))
        })
    });
    let sabotage = sabotage.transpose()?;
    // A file that cannot be written is said before anything begins.
    let file = args.record.as_deref().map(create).transpose()?;
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let root = tempfile::Builder::new()
        .prefix("tpu-demo-")
        .tempdir()
        .map_err(|e| Error::state(format!("cannot make a temporary directory: {e}")))?;
    let mut ctx = apart(app, root.path())?;
    if sabotage == Some(Sabotage::Classify) {
        lab::blind_to_oom(&ctx)?;
        ctx = apart(app, root.path())?;
    }
    let mut out = std::io::stdout();
    let mut story = Story::new(&ctx, &mut out, &stop, sabotage);
    let mut behind = None;
    let watched = file.is_some() || !args.headless && screen::can_draw(app);
    let told = if watched {
        let set = cluster::start()
            .and_then(|started| story.set_the_stage(root.path(), behind.insert(started)));
        set.and_then(|job| plain_options(app, job, nature))
            .and_then(|it| watch(app, root.path(), it, file.map(|file| (file, args.size))))
            .map(Some)
    } else {
        story.tell(root.path()).map(|()| None)
    };
    let taken_down = lab::take_down(&ctx);
    // What still ran in it ends with it.
    drop(behind);
    let gone =
        root.close().map_err(|e| Error::state(format!("cannot remove the demo's directory: {e}")));
    let told = told?;
    taken_down?;
    gone?;
    let Some(tale) = told else {
        let last = "The story came true, and nothing is left behind.";
        return Ok(Output::new(last, &DemoDocument { demo: "ok" }));
    };
    let text = format!(
        "{}{}",
        tale.as_ref().map(report::report).unwrap_or_default(),
        report::begin_for_real()
    );
    let is_cut_off = args.record.is_some() && !tale.is_some_and(|tale| tale.is_complete());
    let output = Output::new(text.trim_end(), &DemoDocument { demo: "ok" });
    // What was written down up to there can be played, but it is not the whole story.
    Ok(if is_cut_off { output.code(1) } else { output })
}

/// Effects that share nothing with the person's own: data, state, settings and tmux server below `root`,
/// and a simulated cloud.
fn apart(app: &App, root: &Path) -> Result<Ctx, Error> {
    let mut env = app.env.clone();
    env.vars.retain(|name, _| name.to_str().is_none_or(|name| !name.starts_with("TPU_")));
    let config = root.join("config");
    env.vars.insert("TMUX_TMPDIR".into(), root.as_os_str().to_owned());
    env.vars.insert("XDG_CONFIG_HOME".into(), config.as_os_str().to_owned());
    env.vars.insert("TPU_CLOUD".into(), "sim".into());
    root.clone_into(&mut env.cwd);
    let origin = SettingOrigin::Environment("TPU_CLOUD".to_owned());
    let mut layer = Layer::default();
    layer.set("cloud", "sim", &origin)?;
    Ok(open(Opening {
        data: root.join("data.json"),
        tmux_socket: Some("demo".to_owned()),
        env,
        actor: app.name.clone(),
        tpu: App::program(),
        layers: vec![(origin, layer)],
        patterns: Some(config.join("tpu").join("patterns.toml")),
        secrets: Some(config.join("tpu").join("secrets")),
        kinds: kinds().clone(),
    }))
}

/// Shows the lab on the screen or writes it down; returns what has become of the jobs by then, if that can be read.
fn watch(
    app: &App,
    root: &Path,
    options: Options,
    recorded: Option<(File, (u16, u16))>,
) -> Result<Option<DemoTale>, Error> {
    let witness = Arc::new(Witness::new(apart(app, root)?));
    let seen = Arc::clone(&witness);
    match recorded {
        None => {
            let caption: Captioner =
                Box::new(move || seen.tale().map(|tale| captions(&tale)).unwrap_or_default());
            screen::open(apart(app, root)?, options, Some(caption))?;
        }
        Some((file, size)) => {
            let over = Arc::new(AtomicBool::new(false));
            let ends = Arc::clone(&over);
            let caption: Captioner = Box::new(move || {
                let tale = seen.tale().ok();
                if seen.is_over(tale.as_ref()) {
                    ends.store(true, Ordering::Relaxed);
                }
                tale.as_ref().map(captions).unwrap_or_default()
            });
            let (out, title) = (Box::new(BufWriter::new(file)), "tpu demo".to_owned());
            let recording = Recording { size, out, title, over };
            record(apart(app, root)?, options, caption, recording)?;
        }
    }
    Ok(witness.tale().ok())
}

/// Makes the file that the screen is written to.
fn create(path: &Path) -> Result<File, Error> {
    File::create(path).map_err(|e| {
        Error::state(format!("cannot write {}: {e}", path.display()))
            .hint("name a file in a directory that is there: tpu demo --record demo.cast")
    })
}

/// The training that the demo runs.
pub(super) fn train(words: &[String]) -> Outcome {
    use crate::demo::train::{TrainError, World, run};
    use tpu_system::sys::clock::{Clock as _, SystemClock};
    let clock = SystemClock::new();
    let world = World {
        started: clock.now(),
        elapsed: &|| clock.monotonic(),
        pace: &|duration| clock.sleep(duration),
    };
    match run(words, &mut std::io::stdout().lock(), &world) {
        Ok(code) => Ok(Output::default().code(u8::try_from(code).unwrap_or(1))),
        Err(TrainError::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(Output::default())
        }
        Err(error) => Err(Error::failed(error.to_string())),
    }
}
