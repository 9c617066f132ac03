//! `tpu cms job|queue --service start|info`: Cloudmesh's service, whose routes ours has below `/cloudmesh`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::cli::args::{Cms, CmsPart};
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_wire::cloudmesh::CmsServiceDocument;

/// Where Cloudmesh's listens, where nobody says otherwise.
const PORT: u16 = 8000;
/// A server on this machine that says nothing for so long is none.
const SILENT: Duration = Duration::from_secs(2);

/// What is wanted of the service, which would listen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Service {
    /// It is to answer from now on.
    Start(SocketAddr),
    /// Whether it does is to be said.
    Info(SocketAddr),
}

/// What of the service a command is about, if it is about that.
pub(in crate::cli) fn wanted(args: &Cms) -> Option<Result<Service, Error>> {
    let (said, port) = match &args.part {
        CmsPart::Job(job) => (job.service.as_deref()?, None),
        CmsPart::Queue(queue) => (queue.service.as_deref()?, queue.port.as_deref()),
        CmsPart::Set { .. } | CmsPart::Cluster(_) => return None,
    };
    Some(read(said, port))
}

fn read(said: &str, port: Option<&str>) -> Result<Service, Error> {
    let port = match port {
        None => PORT,
        Some(port) => port.parse().map_err(|_| {
            Error::usage(format!("--port={port}: no port")).hint("as in --port=8000")
        })?,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match said {
        "start" => Ok(Service::Start(address)),
        "info" => Ok(Service::Info(address)),
        _ => Err(Error::usage(format!("--service {said}: no such word")).hint("start or info")),
    }
}

/// Says whether it answers, and where its description is.
pub(in crate::cli) fn info(address: SocketAddr) -> Output {
    let answers = lives(address);
    let docs = format!("http://{address}/docs");
    let text = if answers {
        format!(
            "It answers on http://{address}; {docs} says what there is, and Cloudmesh's routes are \
             below http://{address}/cloudmesh. Each takes a token: tpu token create NAME --role admin, or \
             --role operator --user U for the jobs of U alone\n"
        )
    } else {
        format!("Nothing answers on http://{address}: tpu cms job --service start\n")
    };
    Output::new(text, &CmsServiceDocument { answers, docs: &docs })
}

/// Whether a server of ours is there.
fn lives(address: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, SILENT)?;
        stream.set_read_timeout(Some(SILENT))?;
        stream.set_write_timeout(Some(SILENT))?;
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        std::io::Result::Ok(line)
    };
    ask().is_ok_and(|line| line.starts_with("HTTP/1.1 200"))
}
