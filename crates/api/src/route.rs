//! What a route is: its path, who may, what it takes and gives, and the function that answers. The description of the
//! API and the server are both made of these, so that neither says what the other does not do.

use axum::http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::flow::Flow;
use super::takes::{Needs, Parameter, Room};

/// One path and one method.
pub(super) struct Route {
    /// The method.
    pub(super) method: Method,
    /// The path, with what is filled in as in `/jobs/{user}/{number}`.
    pub(super) path: &'static str,
    /// What it does, in one sentence without its end.
    pub(super) says: &'static str,
    /// Who may.
    pub(super) needs: Needs,
    /// What stands in path and query.
    pub(super) parameters: &'static [Parameter],
    /// What its body has to be.
    pub(super) body: Option<Body>,
    /// What it answers when all went well.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests describe the API"))]
    pub(super) gives: Gives,
    /// In which room it does its work.
    pub(super) room: Room,
    /// What it says and heeds of the version of what it is about.
    pub(super) versions: Versions,
    /// What answers.
    pub(super) run: Run,
}

/// What a route says and heeds of the version of what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// Nothing: whoever insists on one is refused.
    None,
    /// It says which it is (`ETag`), and nothing more to whoever has it (`If-None-Match`).
    Told,
    /// It changes only what is of the one that is named (`If-Match`).
    Heeded,
}

/// What a body has to be.
#[derive(Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests describe the API"))]
pub(super) enum Body {
    /// JSON of this shape.
    Json(Shape),
    /// A job file, as JSON or YAML.
    JobFile,
}

/// The schema of a type.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The schema of `T`. Only tests make schemas: programs have what those made, and carry nothing that makes more.
#[cfg_attr(
    not(test),
    expect(clippy::extra_unused_type_parameters, reason = "only tests describe the API")
)]
pub(super) fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    #[cfg(test)]
    return generator.subschema_for::<T>();
    #[cfg(not(test))]
    return any(generator);
}

/// The schema of whatever there is: what is answered is as another program's.
pub(super) fn any(_: &mut SchemaGenerator) -> Schema {
    Schema::default()
}

/// What is answered when all went well.
#[derive(Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests describe the API"))]
pub(super) enum Gives {
    /// JSON of this shape.
    Json(Shape),
    /// JSON of one of these shapes.
    OneOf(&'static [Shape]),
    /// Text of this kind.
    Text(&'static str),
    /// Text of this kind, or JSON of this shape, as was asked.
    TextOr(&'static str, Shape),
    /// A log: text, or JSON of this shape, or server-sent events, as was asked.
    Log(Shape),
    /// JSON of the first shape where it is tried, of the second (202) where it has begun.
    Begun(Shape, Shape),
    /// Server-sent events.
    Events,
}

/// What is answered at once, or bit by bit, as was asked.
pub(super) enum Either {
    /// At once.
    Whole(Answer),
    /// Bit by bit.
    Flowing(Flow),
}

/// The function of a route.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Answers at once.
    Whole(fn(&Asked<'_>) -> Result<Answer, Failure>),
    /// Answers at once or bit by bit, until the other side goes.
    Either(fn(&Asked<'_>) -> Result<Either, Failure>),
}

impl Route {
    /// A route that is read and needs no more than seeing.
    pub(super) fn get(
        path: &'static str,
        says: &'static str,
        gives: Gives,
        run: fn(&Asked<'_>) -> Result<Answer, Failure>,
    ) -> Self {
        Self::read(path, says, gives, Run::Whole(run))
    }

    /// The same, answered at once or bit by bit.
    pub(super) fn either(
        path: &'static str,
        says: &'static str,
        gives: Gives,
        run: fn(&Asked<'_>) -> Result<Either, Failure>,
    ) -> Self {
        Self::read(path, says, gives, Run::Either(run))
    }

    fn read(path: &'static str, says: &'static str, gives: Gives, run: Run) -> Self {
        Self {
            method: Method::GET,
            path,
            says,
            needs: Needs::Seeing,
            parameters: &[],
            body: None,
            gives,
            room: Room::Usual,
            versions: Versions::None,
            run,
        }
    }

    /// A route by which something is done to a job.
    pub(super) fn post(
        path: &'static str,
        says: &'static str,
        gives: Gives,
        run: fn(&Asked<'_>) -> Result<Answer, Failure>,
    ) -> Self {
        Self { method: Method::POST, needs: Needs::Acting, ..Self::get(path, says, gives, run) }
    }

    /// A route by which something of a job is changed.
    pub(super) fn patch(
        path: &'static str,
        says: &'static str,
        gives: Gives,
        run: fn(&Asked<'_>) -> Result<Answer, Failure>,
    ) -> Self {
        Self { method: Method::PATCH, ..Self::post(path, says, gives, run) }
    }

    /// The same with these parameters.
    pub(super) fn with(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    /// The same with another answer.
    pub(super) fn gives(self, gives: Gives) -> Self {
        Self { gives, ..self }
    }

    /// The same for whoever may this.
    pub(super) fn needs(self, needs: Needs) -> Self {
        let room = if needs == Needs::Nothing { Room::Open } else { self.room };
        Self { needs, room, ..self }
    }

    /// The same where it waits for programs and machines.
    pub(super) fn slow(self) -> Self {
        Self { room: Room::Slow, ..self }
    }

    /// The same with what it says or heeds of versions.
    pub(super) fn versions(self, versions: Versions) -> Self {
        Self { versions, ..self }
    }

    /// The same with a body of this shape.
    pub(super) fn takes(self, body: Shape) -> Self {
        Self { body: Some(Body::Json(body)), ..self }
    }

    /// The same with a job file as its body.
    pub(super) fn takes_job_file(self) -> Self {
        Self { body: Some(Body::JobFile), ..self }
    }
}
