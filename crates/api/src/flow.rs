//! Answers that flow: events and followed logs, bit by bit until the other side goes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response};
use http_body::Frame;
use tokio::sync::mpsc;

/// Pieces that may wait for a slow reader; then it is cut off, and asks again from where it was.
pub(super) const WAITING: usize = 4;

/// Whoever takes nothing of an answer for so long does not read.
pub(super) const SLOWEST_READER: Duration = Duration::from_secs(30);

/// A bit of an answer, or that it is cut off before its end.
pub(super) type Bit = Result<Bytes, CutOff>;

/// An answer that ends before its end: the connection breaks, so that nobody takes it for a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is cut off")]
pub(super) struct CutOff;

/// An answer that flows.
pub(super) struct Flow {
    /// What kind of content it is.
    pub(super) kind: &'static str,
    /// Its pieces.
    pub(super) pieces: mpsc::Receiver<Bit>,
}

impl Flow {
    /// As it leaves.
    pub(super) fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::new(Pieces(self.pieces)));
        let headers = response.headers_mut();
        headers.insert("content-type", HeaderValue::from_static(self.kind));
        // A proxy that gathers pieces would hold them back.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

struct Pieces(mpsc::Receiver<Bit>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        self.0.poll_recv(context).map(|bit| bit.map(|bit| bit.map(Frame::data)))
    }
}
