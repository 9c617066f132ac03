//! `/cloudmesh`: the routes of Cloudmesh's service, with its parameters in the query. Each says what the command of ours
//! says that does the same (`tpu cms …`), and like it never removes a directory of a job.

use axum::http::Method;
use serde_json::{Value, json};

use tpu_core::model::data::User;
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::queue::{Queue, QueueState};
use tpu_core::model::spec::StoredSpec;
use tpu_ops::Error;
use tpu_ops::act::hosts::{pools, refuse_no_pool};
use tpu_ops::act::kill;
use tpu_ops::base::named::named;
use tpu_ops::waiting::commands::Told;
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_wire::cloudmesh::CmsJobsDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::borrowed::{self, told};
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
    [queues(), jobs(), clusters()].into_iter().flatten().collect()
}

fn queues() -> Vec<Route> {
    let listed = Gives::Json(any);
    vec![
        Route::get("/cloudmesh", "Says what this is", Gives::Json(any), |_| {
            Ok(json(&json!({"message": "Cloudmesh's routes on tpu; /docs says what there is"})))
        }),
        Route::get("/cloudmesh/queue", "Lists queues by their names", listed, all_queues)
            .with(&[EXPERIMENT]),
        put(Method::POST, "/cloudmesh/queue", "Makes a queue", |asked| {
            Ok(borrowed::json(said(asked, None, &["queue", "create"], &[("queue", "name")])?))
        })
        .gives(listed)
        .with(&NEW_QUEUE)
        .needs(Needs::Administering),
        Route::get(
            "/cloudmesh/queue/{queue}",
            "Lists the jobs of a queue",
            jobs_of_queue(),
            |asked| {
                let user = seen_user(asked)?;
                Ok(borrowed::json(said(
                    asked,
                    user.as_ref(),
                    &["queue", "info"],
                    &[("queue", "queue")],
                )?))
            },
        )
        .with(&[QUEUE, EXPERIMENT, FOR_USER]),
        Route::get("/cloudmesh/queue/{queue}/info", "The same as a table", TEXT, table)
            .with(&[QUEUE, EXPERIMENT, FOR_USER]),
        put(Method::POST, "/cloudmesh/queue/{queue}", "Adds jobs, which are ready then", |asked| {
            added(asked)
        })
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
                let options = [("queue", "queue"), ("max_parallel", "max_parallel")];
                Ok(result(&said(asked, Some(&user(asked)?), &["queue", "run", "fifo"], &options)?))
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
                let options = [("queue", "queue"), ("hostfile", "cluster")];
                Ok(result(&said(
                    asked,
                    Some(&user(asked)?),
                    &["queue", "run", "fifo_multi"],
                    &options,
                )?))
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
            let options = [("queue", "queue"), ("name", "name"), ("status", "status")];
            Ok(borrowed::text(said(asked, Some(&user(asked)?), &["queue", "reset"], &options)?))
        })
        .with(&RESET),
        put(Method::PUT, "/cloudmesh/queue/ran", "Says which queues let jobs begin", ran)
            .with(&[EXPERIMENT])
            .needs(Needs::Seeing),
        Route::get("/cloudmesh/queue/ran", "The same, read", TEXT, ran).with(&[EXPERIMENT]),
    ]
}

fn jobs() -> Vec<Route> {
    vec![
        Route::get("/cloudmesh/queue/{queue}/job/{job}", "Shows a job", jobs_of_queue(), |asked| {
            let user = seen_user(asked)?;
            let mut told = said(
                asked,
                user.as_ref(),
                &["queue", "info"],
                &[("queue", "queue"), ("name", "job")],
            )?;
            let name = asked.text("job").unwrap_or_default();
            // `info` takes a part of a name as well.
            let mut is_any = false;
            for list in ["jobs", "waiting", "in_file"] {
                let Some(Value::Array(all)) = told.members.get_mut(list) else { continue };
                all.retain(|job| job["name"].as_str() == Some(name));
                is_any |= !all.is_empty();
            }
            if !is_any {
                let queue = asked.text("queue").unwrap_or_default();
                return Err(Error::not_found(format!("no job of queue {queue} is called {name}"))
                    .hint("GET /cloudmesh/queue/{queue} lists them")
                    .into());
            }
            Ok(borrowed::json(told))
        })
        .with(&JOB),
        put(
            Method::DELETE,
            "/cloudmesh/queue/{queue}/job/{job}",
            "Stops jobs that are at work, and takes them away",
            |asked| {
                let name = if asked.text("name").is_some() { "name" } else { "job" };
                let options = [("queue", "queue"), ("name", name)];
                Ok(borrowed::text(said(
                    asked,
                    Some(&user(asked)?),
                    &["queue", "delete"],
                    &options,
                )?))
            },
        )
        .with(&TAKEN)
        .slow(),
    ]
}

fn clusters() -> Vec<Route> {
    let listed = Gives::Json(any);
    let change = |method, path, says, run| put(method, path, says, run).needs(Needs::Administering);
    let on_host = "/cloudmesh/cluster/{cluster}/id/{id}";
    vec![
        change(
            Method::POST,
            "/cloudmesh/cluster",
            "Nothing: a pool is there when a host is in it",
            |asked| {
                Ok(borrowed::json(said(
                    asked,
                    None,
                    &["cluster", "create"],
                    &[("cluster", "name")],
                )?))
            },
        )
        .gives(listed)
        .with(&NEW_CLUSTER),
        Route::get("/cloudmesh/cluster", "Lists clusters", listed, |asked| {
            asked.who.sees_everybody()?;
            Ok(borrowed::json(said(asked, None, &["cluster", "list"], &[])?))
        })
        .with(&[EXPERIMENT]),
        Route::get(
            "/cloudmesh/cluster/{cluster}",
            "Lists the hosts of a cluster",
            listed,
            |asked| {
                asked.who.sees_everybody()?;
                Ok(borrowed::json(said(
                    asked,
                    None,
                    &["cluster", "list"],
                    &[("cluster", "cluster")],
                )?))
            },
        )
        .with(&ONE_CLUSTER),
        Route::get("/cloudmesh/cluster/{cluster}/info", "The same as a table", TEXT, |asked| {
            asked.who.sees_everybody()?;
            Ok(borrowed::text(said(asked, None, &["cluster", "list"], &[("cluster", "cluster")])?))
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
            |asked| {
                let options = ["cluster", "id", "name", "user", "ip", "status", "gpu", "pyenv"]
                    .map(|one| (one, one));
                Ok(borrowed::text(said(asked, None, &["cluster", "add"], &options)?))
            },
        )
        .with(&HOST_ADDED),
        Route::get(on_host, "Shows a host", listed, |asked| {
            asked.who.sees_everybody()?;
            in_cluster(asked)?;
            Ok(borrowed::json(told(asked, None, &["hosts", "list"], &[("", "id")])?))
        })
        .with(&HOST),
        change(Method::DELETE, on_host, "Forgets a host on which nothing runs", |asked| {
            in_cluster(asked)?;
            Ok(borrowed::text(said(asked, None, &["cluster", "delete"], &[("id", "id")])?))
        })
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/activate",
            "Lets jobs begin on a host again",
            |asked| {
                in_cluster(asked)?;
                Ok(borrowed::text(said(asked, None, &["cluster", "activate"], &[("id", "id")])?))
            },
        )
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/deactivate",
            "Lets nothing new begin on a host",
            |asked| {
                in_cluster(asked)?;
                Ok(borrowed::text(said(asked, None, &["cluster", "deactivate"], &[("id", "id")])?))
            },
        )
        .with(&HOST),
        change(
            Method::PUT,
            "/cloudmesh/cluster/{cluster}/id/{id}/set",
            "Sets a value of a host",
            |asked| {
                in_cluster(asked)?;
                let options = [("id", "id"), ("key", "key"), ("value", "value")];
                Ok(borrowed::text(said(asked, None, &["cluster", "set"], &options)?))
            },
        )
        .with(&SET),
    ]
}

/// The hosts of the cluster that is named; what is no cluster is refused.
fn hosts_of_cluster(asked: &Asked<'_>) -> Result<Vec<TargetName>, Failure> {
    let cluster = asked.text("cluster").unwrap_or_default();
    refuse_no_pool(asked.ctx, &[cluster.to_owned()])?;
    let of = pools(asked.ctx)?.into_iter().filter(|pool| pool.name == cluster);
    Ok(of.flat_map(|pool| pool.hosts).collect())
}

/// Refuses hosts that are not in the cluster: one that stands elsewhere is not the one that is meant.
fn in_cluster(asked: &Asked<'_>) -> Result<(), Failure> {
    let hosts = hosts_of_cluster(asked)?;
    let id = asked.text("id").unwrap_or_default();
    let meant = named(&*asked.ctx.data()?, &[id.to_owned()])?;
    match meant.iter().find(|target| !hosts.contains(&target.name)) {
        None => Ok(()),
        Some(target) => {
            let cluster = asked.text("cluster").unwrap_or_default();
            Err(Error::not_found(format!("{} is no host of {cluster}", target.name))
                .hint("GET /cloudmesh/cluster/{cluster} lists them")
                .into())
        }
    }
}

/// Forgets all hosts of a cluster, each by its own name: a tag, or another machine, may be called as the cluster is.
fn delete_cluster(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let hosts = hosts_of_cluster(asked)?;
    let names: Vec<&str> = hosts.iter().map(TargetName::as_str).collect();
    let id = format!("--id={}", names.join(","));
    let words = ["cms", "cluster", "delete", &id].map(str::to_owned);
    Ok(borrowed::text(borrowed::carried_out(asked, None, &words)?))
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

/// As Cloudmesh's schedulers answer.
fn result(told: &Told) -> Answer {
    let lines = told.text.lines().chain(told.notes.iter().map(String::as_str));
    let said: Vec<&str> = lines.collect();
    json(&json!({"result": said.join(" ")}))
}

/// Carries a command of `cms` out, with what the request says for its options.
fn said(
    asked: &Asked<'_>,
    user: Option<&UserName>,
    command: &[&str],
    options: &[(&str, &str)],
) -> Result<Told, Failure> {
    let command: Vec<&str> = ["cms"].iter().chain(command).copied().collect();
    told(asked, user, &command, options)
}

/// The user on whose jobs it acts.
fn user(asked: &Asked<'_>) -> Result<UserName, Failure> {
    asked.acting_for(asked.text("for_user").map(UserName::from), "for_user=NAME")
}

/// The user whose jobs are shown; everybody's where nobody is meant.
fn seen_user(asked: &Asked<'_>) -> Result<Option<UserName>, Failure> {
    let user = asked.text("for_user").map(UserName::from);
    let user = user.or_else(|| asked.who.rights.only_user().cloned());
    match &user {
        Some(user) => asked.who.sees(user)?,
        None => asked.who.sees_everybody()?,
    }
    Ok(user)
}

fn table(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let user = seen_user(asked)?;
    Ok(borrowed::text(said(asked, user.as_ref(), &["queue", "info"], &[("queue", "queue")])?))
}

fn all_queues(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let queues = asked.ctx.data()?.queues().all();
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    Ok(json(&json!({"queues": names})))
}

fn added(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let user = user(asked)?;
    let options = [
        "queue",
        "name",
        "command",
        "input",
        "output",
        "status",
        "gpu",
        "host",
        "shell",
        "log",
        "pyenv",
        "experiment",
    ];
    Ok(borrowed::text(said(asked, Some(&user), &["queue", "add"], &options.map(|one| (one, one)))?))
}

/// What of a queue is at work.
fn at_work(asked: &Asked<'_>, name: &QueueName) -> Result<Vec<JobId>, Failure> {
    let data = asked.ctx.data()?;
    let user = asked.text("for_user");
    let is_meant = |id: &JobId| user.is_none_or(|user| id.user.as_str() == user);
    let jobs = data.users().iter().flat_map(User::jobs).filter(|job| job.status.is_live());
    let is_of = |spec: &StoredSpec| spec.queue.as_ref() == Some(name);
    let jobs = jobs.filter(|job| job.spec.as_ref().is_some_and(is_of));
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
