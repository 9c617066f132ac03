//! `/cloudmesh`: the routes of Cloudmesh's service, with its parameters in the query. Each says what the command of ours
//! says that does the same (`tpu cms …`), and like it never removes a directory of a job.

use axum::http::Method;
use serde_json::{Value, json};

use tpu_core::model::data::User;
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::queue::{Queue, QueueState};
use tpu_core::model::spec::StoredSpec;
use tpu_core::model::status_line::Tone;
use tpu_ops::act::hosts::edit::HostChange;
use tpu_ops::act::hosts::{self, Host, pools, refuse_no_pool, words};
use tpu_ops::act::kill;
use tpu_ops::base::named::named;
use tpu_ops::front::cloudmesh::changes::{self, CmsChanged};
use tpu_ops::front::cloudmesh::cluster::{self, CmsNewHosts};
use tpu_ops::front::cloudmesh::list::{CmsChoice, CmsList, list};
use tpu_ops::front::cloudmesh::queues::{self, CmsNewJobs, CmsSchedule};
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_ops::waiting::whose::{Requester, unnamed};
use tpu_ops::{Ctx, Error};
use tpu_wire::cloudmesh::CmsJobsDocument;
use tpu_wire::hosts::{HostsDocument, PoolsDocument};
use tpu_wire::pages::TextDocument;
use tpu_wire::queue::{QueueChangedDocument, QueuePart};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, any, shape};
use super::takes::{Needs, Parameter};

const TEXT: Gives = Gives::Text("text/plain; charset=utf-8");
const EXPERIMENT: Parameter = Parameter::text("experiment", "directory of the queue; none here");
const FOR_USER: Parameter =
    Parameter::text("for_user", "whose jobs; the token's only user without");
const QUEUE: Parameter = Parameter::text("queue", "its name");
const NAMES: Parameter = Parameter::text("name", "names of jobs, or patterns of names");
const TIMEOUT: Parameter = Parameter::text("timeout", "minutes; nothing here");
const CLUSTER: Parameter = Parameter::text("cluster", "its name, a pool here");
const NEW_QUEUE: [Parameter; 2] = [Parameter::text("name", "its name"), EXPERIMENT];
const NEW_CLUSTER: [Parameter; 2] = [Parameter::text("name", "its name"), EXPERIMENT];
const ONE_CLUSTER: [Parameter; 2] = [CLUSTER, EXPERIMENT];
const FIFO: [Parameter; 5] = [
    QUEUE,
    Parameter::number("max_parallel", "so many at a time", (1, 100_000)),
    TIMEOUT,
    EXPERIMENT,
    FOR_USER,
];
const RESET: [Parameter; 5] =
    [QUEUE, NAMES, Parameter::text("status", "those of this state"), EXPERIMENT, FOR_USER];
const ID: Parameter = Parameter::text("id", "name of a host, or a pattern of names");

/// What is said of jobs that are added, each one value for all or one for each name.
const ADDED: [Parameter; 14] = [
    QUEUE,
    NAMES,
    Parameter::text("command", "what they run"),
    Parameter::text("input", "nothing, as there"),
    Parameter::text("output", "files in which a copy of their output is kept"),
    Parameter::text("status", "their state; ready without"),
    Parameter::text("gpu", "the GPUs that they want"),
    Parameter::text("user", "nothing: an account is said where a host is added"),
    Parameter::text("host", "the hosts on which they run"),
    Parameter::text("shell", "the shell that reads their commands"),
    Parameter::text("log", "nothing: every job has one here"),
    Parameter::text("pyenv", "the activate of a Python environment"),
    EXPERIMENT,
    FOR_USER,
];
const HOST_ADDED: [Parameter; 9] = [
    CLUSTER,
    ID,
    Parameter::text("name", "where it is"),
    Parameter::text("user", "account there"),
    Parameter::text("ip", "where it is, which outranks the name"),
    Parameter::text("status", "active"),
    Parameter::text("gpu", "nothing here"),
    Parameter::text("pyenv", "the activate of a Python environment"),
    EXPERIMENT,
];

const JOB: [Parameter; 4] = [QUEUE, Parameter::text("job", "its name"), EXPERIMENT, FOR_USER];
const TAKEN: [Parameter; 5] =
    [QUEUE, Parameter::text("job", "its name"), NAMES, EXPERIMENT, FOR_USER];
const HOST: [Parameter; 3] = [CLUSTER, ID, EXPERIMENT];
const SET: [Parameter; 5] = [
    CLUSTER,
    ID,
    Parameter::text("key", "max_jobs_allowed, cpus, gpus, pyenv or status"),
    Parameter::text("value", "its value"),
    EXPERIMENT,
];

/// The routes of Cloudmesh.
pub(super) fn routes() -> Vec<Route> {
    [of_queues(), of_jobs(), of_clusters()].into_iter().flatten().collect()
}

fn of_queues() -> Vec<Route> {
    let listed = Gives::Json(any);
    vec![
        Route::get("/cloudmesh", "Says what this is", listed, |_| {
            Ok(json(&json!({"message": "Cloudmesh's routes on tpu; /docs says what there is"})))
        }),
        Route::get("/cloudmesh/queue", "Lists queues by their names", listed, all_queues)
            .with(&[EXPERIMENT]),
        put(Method::POST, "/cloudmesh/queue", "Makes a queue", |asked| {
            let made = queues::create(asked.ctx, asked.text("name"))?;
            let queue = Some(QueuePart::from(&made.queue));
            Ok(Answer::document(&QueueChangedDocument { queue }))
        })
        .gives(listed)
        .with(&NEW_QUEUE)
        .needs(Needs::Administering),
        Route::get(
            "/cloudmesh/queue/{queue}",
            "Lists the jobs of a queue",
            jobs_of_queue(),
            |asked| {
                Ok(Answer::document(&CmsJobsDocument::from(&listed_jobs(&seeing(asked)?, asked)?)))
            },
        )
        .with(&[QUEUE, EXPERIMENT, FOR_USER]),
        Route::get("/cloudmesh/queue/{queue}/info", "The same as a table", TEXT, table)
            .with(&[QUEUE, EXPERIMENT, FOR_USER]),
        put(Method::POST, "/cloudmesh/queue/{queue}", "Adds jobs, which are ready then", added)
            .with(&ADDED)
            .slow(),
        put(
            Method::DELETE,
            "/cloudmesh/queue/{queue}",
            "Takes out what waits in a queue, and removes it",
            remove,
        )
        .with(&[QUEUE, EXPERIMENT])
        .needs(Needs::Administering),
        put(Method::PUT, "/cloudmesh/queue/{queue}/refresh", "Looks at its jobs anew", table)
            .with(&[QUEUE, EXPERIMENT, FOR_USER])
            .needs(Needs::Seeing),
        put(
            Method::PUT,
            "/cloudmesh/queue/{queue}/run_fifo",
            "Lets its ready jobs begin where they say, so many at a time",
            |asked| {
                let most = asked.number("max_parallel").and_then(|most| u32::try_from(most).ok());
                scheduled(asked, CmsSchedule { max_parallel: most, ..CmsSchedule::default() })
            },
        )
        .gives(listed)
        .slow()
        .with(&FIFO)
        .needs(Needs::Administering),
        put(
            Method::PUT,
            "/cloudmesh/queue/{queue}/run_fifo_multi",
            "Lets all its jobs begin on any host of a cluster",
            |asked| {
                let cluster = asked.text("cluster");
                scheduled(asked, CmsSchedule { is_multi: true, cluster, ..CmsSchedule::default() })
            },
        )
        .gives(listed)
        .slow()
        .with(&[QUEUE, CLUSTER, TIMEOUT, EXPERIMENT, FOR_USER])
        .needs(Needs::Administering),
        put(
            Method::PUT,
            "/cloudmesh/queue/{queue}/stop",
            "Lets nothing of a queue begin, and stops its jobs",
            stop,
        )
        .slow()
        .with(&[QUEUE, EXPERIMENT, FOR_USER])
        .needs(Needs::Administering),
        put(Method::PUT, "/cloudmesh/queue/{queue}/reset", "Makes jobs ready again", |asked| {
            let ctx = acting(asked)?;
            let [queue, name, status] = ["queue", "name", "status"].map(|word| asked.text(word));
            let of = CmsChoice { queue, name, status };
            changed(&ctx, queues::reset(&requester(&ctx), &of)?)
        })
        .with(&RESET),
        put(Method::PUT, "/cloudmesh/queue/ran", "Says which queues let jobs begin", ran)
            .with(&[EXPERIMENT])
            .needs(Needs::Seeing),
        Route::get("/cloudmesh/queue/ran", "The same, read", TEXT, ran).with(&[EXPERIMENT]),
    ]
}

fn of_jobs() -> Vec<Route> {
    vec![
        Route::get("/cloudmesh/queue/{queue}/job/{job}", "Shows a job", jobs_of_queue(), |asked| {
            let mut list = listed_jobs(&seeing(asked)?, asked)?;
            let [queue, name] = ["queue", "job"].map(|word| asked.text(word).unwrap_or_default());
            // The list has those with this in their names as well.
            if !list.keep_called(name) {
                return Err(Error::not_found(format!("no job of queue {queue} is called {name}"))
                    .hint("GET /cloudmesh/queue/{queue} lists them")
                    .into());
            }
            Ok(Answer::document(&CmsJobsDocument::from(&list)))
        })
        .with(&JOB),
        put(
            Method::DELETE,
            "/cloudmesh/queue/{queue}/job/{job}",
            "Stops jobs that are at work, and takes them away",
            |asked| {
                let ctx = acting(asked)?;
                let name = asked.text("name").or(asked.text("job"));
                let of = CmsChoice { queue: asked.text("queue"), name, status: None };
                let doomed = queues::doomed(&requester(&ctx), &of)?;
                changed(&ctx, changes::take_away(&ctx, &doomed)?)
            },
        )
        .with(&TAKEN)
        .slow(),
    ]
}

fn of_clusters() -> Vec<Route> {
    let listed = Gives::Json(any);
    let change = |method, path, says, run| put(method, path, says, run).needs(Needs::Administering);
    let on_host = "/cloudmesh/cluster/{cluster}/id/{id}";
    vec![
        change(
            Method::POST,
            "/cloudmesh/cluster",
            "Nothing: a pool is there when a host is in it",
            |asked| {
                let text = cluster::create(asked.text("name"));
                Ok(Answer::document(&TextDocument { text: &text }))
            },
        )
        .gives(listed)
        .with(&NEW_CLUSTER),
        Route::get("/cloudmesh/cluster", "Lists clusters", listed, |asked| {
            asked.who.sees_everybody()?;
            let pools = pools(asked.ctx)?;
            Ok(Answer::document(&PoolsDocument::from(pools.as_slice())))
        })
        .with(&[EXPERIMENT]),
        Route::get(
            "/cloudmesh/cluster/{cluster}",
            "Lists the hosts of a cluster",
            listed,
            |asked| Ok(shown(asked, &hosts_of_cluster(asked)?)),
        )
        .with(&ONE_CLUSTER),
        Route::get("/cloudmesh/cluster/{cluster}/info", "The same as a table", TEXT, |asked| {
            let table = words::table(&hosts_of_cluster(asked)?, asked.ctx.clock.now());
            Ok(text(asked.ctx, table, Vec::new()))
        })
        .with(&ONE_CLUSTER),
        change(
            Method::DELETE,
            "/cloudmesh/cluster/{cluster}",
            "Forgets the hosts of a cluster on which nothing runs",
            delete_cluster,
        )
        .with(&ONE_CLUSTER),
        change(
            Method::POST,
            "/cloudmesh/cluster/{cluster}",
            "Puts hosts into a cluster",
            added_hosts,
        )
        .with(&HOST_ADDED),
        Route::get(on_host, "Shows a host", listed, |asked| {
            asked.who.sees_everybody()?;
            let id = in_cluster(asked)?.to_owned();
            Ok(shown(asked, &hosts::list(asked.ctx, &[id])?))
        })
        .with(&HOST),
        change(Method::DELETE, on_host, "Forgets a host on which nothing runs", |asked| {
            edited(asked, in_cluster(asked)?, HostChange::Remove)
        })
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/activate",
            "Lets jobs begin on a host again",
            |asked| edited(asked, in_cluster(asked)?, HostChange::Undrain),
        )
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/deactivate",
            "Lets nothing new begin on a host",
            |asked| edited(asked, in_cluster(asked)?, HostChange::Drain(None)),
        )
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/set",
            "Sets a value of a host",
            |asked| {
                let id = in_cluster(asked)?;
                let (key, value) = (needed(asked, "key")?, needed(asked, "value")?);
                edited(asked, id, cluster::change_of(id, key, value)?)
            },
        )
        .with(&SET),
    ]
}

/// The hosts of the cluster that is named, with who is there.
fn hosts_of_cluster(asked: &Asked<'_>) -> Result<Vec<Host>, Failure> {
    asked.who.sees_everybody()?;
    Ok(cluster::hosts(asked.ctx, asked.text("cluster").unwrap_or_default())?)
}

/// Hosts, as a document.
fn shown(asked: &Asked<'_>, hosts: &[Host]) -> Answer {
    Answer::document(&HostsDocument::at(hosts, asked.ctx.clock.now()))
}

/// The names of the hosts of the cluster that is named; what is no cluster is refused.
fn names_in_cluster(asked: &Asked<'_>) -> Result<Vec<TargetName>, Failure> {
    let cluster = asked.text("cluster").unwrap_or_default();
    refuse_no_pool(asked.ctx, &[cluster.to_owned()])?;
    let of = pools(asked.ctx)?.into_iter().filter(|pool| pool.name == cluster);
    Ok(of.flat_map(|pool| pool.hosts).collect())
}

/// What calls the hosts that are named. One that stands elsewhere than in the cluster is refused: it is not meant.
fn in_cluster<'a>(asked: &'a Asked<'_>) -> Result<&'a str, Failure> {
    let hosts = names_in_cluster(asked)?;
    let id = asked.text("id").unwrap_or_default();
    let meant = named(&*asked.ctx.data()?, &[id.to_owned()])?;
    match meant.iter().find(|target| !hosts.contains(&target.name)) {
        None => Ok(id),
        Some(target) => {
            let cluster = asked.text("cluster").unwrap_or_default();
            Err(Error::not_found(format!("{} is no host of {cluster}", target.name))
                .hint("GET /cloudmesh/cluster/{cluster} lists them")
                .into())
        }
    }
}

/// Changes hosts, which are called by names or patterns of names.
fn edited(asked: &Asked<'_>, id: &str, change: HostChange<'_>) -> Result<Answer, Failure> {
    let done = hosts::edit::apply(asked.ctx, &[id.to_owned()], change)?;
    Ok(text(asked.ctx, done.in_words(), Vec::new()))
}

/// Forgets all hosts of a cluster, each by its own name: a tag, or another machine, may be called as the cluster is.
fn delete_cluster(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let hosts = names_in_cluster(asked)?;
    let names: Vec<&str> = hosts.iter().map(TargetName::as_str).collect();
    edited(asked, &names.join(","), HostChange::Remove)
}

fn added_hosts(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let new = CmsNewHosts {
        cluster: asked.text("cluster"),
        id: needed(asked, "id")?,
        name: asked.text("name"),
        ip: asked.text("ip"),
        user: asked.text("user"),
        status: asked.text("status"),
        pyenv: asked.text("pyenv"),
    };
    let added = cluster::add(asked.ctx, &new, true, &asked.served.job_words)?;
    let (lines, mut notes) = words::added(&added);
    notes.extend(asked.text("gpu").map(|_| cluster::NO_GPUS.to_owned()));
    Ok(text(asked.ctx, lines, notes))
}

fn jobs_of_queue() -> Gives {
    Gives::Json(shape::<CmsJobsDocument<'_>>)
}

/// A route by which something is changed, in another method than ours; it answers as a table does.
fn put(
    method: Method,
    path: &'static str,
    says: &'static str,
    run: fn(&Asked<'_>) -> Result<Answer, Failure>,
) -> Route {
    Route { method, ..Route::post(path, says, TEXT, run) }
}

fn json(value: &Value) -> Answer {
    Answer::text(value.to_string()).kind("application/json")
}

/// A text, and behind it what people should know beside it.
fn text(ctx: &Ctx, text: String, notes: Vec<String>) -> Answer {
    let notes = notes.into_iter().chain(ctx.take_warnings());
    Answer::text(notes.fold(text, |text, note| text + &note + "\n"))
}

/// What became of jobs, as a text.
fn changed(ctx: &Ctx, done: CmsChanged) -> Result<Answer, Failure> {
    let (said, notes) = whole(ctx, done)?;
    Ok(text(ctx, said.join("\n"), notes))
}

/// What became of jobs, and what people should know beside it; an error where some of it was not done.
fn whole(ctx: &Ctx, done: CmsChanged) -> Result<(Vec<String>, Vec<String>), Failure> {
    let CmsChanged { said, mut notes, problem, .. } = done;
    let Some(problem) = problem else {
        notes.extend(ctx.take_warnings());
        return Ok((said, notes));
    };
    // What was done is said as well.
    let lines = said.into_iter().chain(notes).chain([problem.message]).chain(ctx.take_warnings());
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    Err(Error::refused(lines.join("\n")).hint("what is said to be done is done").into())
}

/// Lets jobs of the queue begin, and says so as Cloudmesh's schedulers do.
fn scheduled(asked: &Asked<'_>, how: CmsSchedule<'_>) -> Result<Answer, Failure> {
    let ctx = acting(asked)?;
    let how = CmsSchedule { queue: asked.text("queue"), ..how };
    let (said, notes) = whole(&ctx, queues::schedule(&requester(&ctx), &how)?)?;
    let lines = [said, notes].concat();
    Ok(json(&json!({"result": lines.join(" ")})))
}

/// What a request has to say.
fn needed<'a>(asked: &'a Asked<'_>, name: &str) -> Result<&'a str, Failure> {
    asked.text(name).ok_or_else(|| {
        Error::usage(format!("{name} is not said")).hint("/docs says what there is").into()
    })
}

/// Whoever asks in these surroundings.
fn requester(ctx: &Ctx) -> Requester<'_> {
    Requester { ctx, named: None, ask: Box::new(|data| Err(unnamed(data))) }
}

/// The surroundings in which the user is at work on whose jobs it acts.
fn acting(asked: &Asked<'_>) -> Result<Ctx, Failure> {
    let user = asked.acting_for(asked.text("for_user").map(UserName::from), "for_user=NAME")?;
    Ok(asked.served.ctx_of(asked.who, asked.is_trial()).in_the_place_of(&user)?)
}

/// The surroundings in which the user is at work whose jobs are shown; everybody's are where nobody is meant.
fn seeing(asked: &Asked<'_>) -> Result<Ctx, Failure> {
    let user = asked.text("for_user").map(UserName::from);
    let user = user.or_else(|| asked.who.rights.only_user().cloned());
    let ctx = asked.served.ctx_of(asked.who, asked.is_trial());
    let Some(user) = user else {
        asked.who.sees_everybody()?;
        return Ok(ctx);
    };
    asked.who.sees(&user)?;
    Ok(ctx.in_the_place_of(&user)?)
}

/// The jobs of the queue, those with the name of a job in theirs where one is named.
fn listed_jobs(ctx: &Ctx, asked: &Asked<'_>) -> Result<CmsList, Failure> {
    let of = CmsChoice { queue: asked.text("queue"), name: asked.text("job"), status: None };
    Ok(list(&requester(ctx), of)?)
}

fn table(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let ctx = seeing(asked)?;
    let list = listed_jobs(&ctx, asked)?;
    Ok(text(&ctx, list.in_words(Tone::plain), list.notes()))
}

fn all_queues(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let queues = asked.ctx.data()?.queues().all();
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    Ok(json(&json!({"queues": names})))
}

fn added(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let ctx = acting(asked)?;
    let new = CmsNewJobs {
        queue: asked.text("queue"),
        experiment: asked.text("experiment"),
        name: needed(asked, "name")?,
        command: needed(asked, "command")?,
        host: asked.text("host"),
        output: asked.text("output"),
        status: asked.text("status"),
        gpu: asked.text("gpu"),
        shell: asked.text("shell"),
        pyenv: asked.text("pyenv"),
    };
    changed(&ctx, queues::add(&requester(&ctx), &new)?)
}

/// What of a queue is at work.
fn at_work(asked: &Asked<'_>, name: &QueueName) -> Result<Vec<JobId>, Failure> {
    let data = asked.ctx.data()?;
    let user = asked.text("for_user");
    let is_meant = |id: &JobId| user.is_none_or(|user| id.user.as_str() == user);
    let jobs = data.users().iter().flat_map(User::jobs).filter(|job| job.status.is_live());
    let is_of = |spec: &StoredSpec| spec.queue.as_ref() == Some(name);
    let jobs = jobs.filter(|job| job.spec.as_deref().is_some_and(is_of));
    Ok(jobs.map(Job::id).filter(is_meant).collect())
}

fn queue_named(asked: &Asked<'_>) -> QueueName {
    QueueName::new(asked.text("queue").unwrap_or_default())
}

fn remove(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let name = queue_named(asked);
    if name == QueueName::usual() {
        return Err(Error::refused(format!("{name} is the queue of whoever names none"))
            .hint("stop it: PUT /cloudmesh/queue/{queue}/stop")
            .into());
    }
    let waiting = edit::remove_with_all(asked.ctx, &name)?;
    let taken: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    let taken = if taken.is_empty() { "nothing".to_owned() } else { taken.join(", ") };
    Ok(Answer::text(format!("Removed the queue {name}; taken out of it: {taken}.\n")))
}

fn stop(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let name = queue_named(asked);
    let edit = QueueEdit { state: Some(QueueState::Paused), ..QueueEdit::default() };
    edit::set(asked.ctx, &name, &edit)?;
    // Nothing of it begins from here on, so that these are all.
    let live = at_work(asked, &name)?;
    let mut text = format!("Queue {name} is paused.\n");
    let mut is_whole = true;
    let killed = kill::kill(asked.ctx, &live, false);
    let data = asked.ctx.data()?;
    for (id, done) in killed {
        // Whoever ends by himself meanwhile is at work no more, which is what was asked for.
        let is_over = data.job(&id).is_none_or(|job| !job.status.is_live());
        is_whole &= done.is_ok() || is_over;
        text += &match done {
            Ok(_) => format!("{id} is stopped.\n"),
            Err(_) if is_over => format!("{id} has ended.\n"),
            Err(error) => format!("{id} is not stopped: {}\n", error.message),
        };
    }
    if !is_whole {
        return Err(Error::refused(text.trim_end()).hint("stop the rest: tpu kill").into());
    }
    Ok(Answer::text(text))
}

fn ran(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let queues = asked.ctx.data()?.queues().all();
    let line = |queue: &Queue| {
        let word = if queue.state == QueueState::Paused { "Not Running" } else { "Running" };
        format!("{}: {word}\n", queue.name)
    };
    Ok(Answer::text(queues.iter().map(line).collect::<String>()))
}
