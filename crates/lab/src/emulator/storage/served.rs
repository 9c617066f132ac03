//! What each method of the storage answers.

use std::io::{self, Seek as _, SeekFrom};

use axum::http::{StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{AnswerBody, StorageAnswer, StorageRequest};
use crate::sim::objects::{Kept, Objects, Rewritten, Uploading};
use crate::sim::{Call, SimCloud};
use tpu_engine::provider::{ProviderError, Trouble};

/// Entries on a page when nobody says how many.
const PAGE: u64 = 1_000;
/// Bytes of one call of a copy between locations, where nobody says how many.
const REWRITE: u64 = 64 << 20;

/// The buckets that there are, and what goes wrong with a call.
pub(super) struct Rules {
    /// Names and places.
    pub(super) buckets: Vec<(String, String)>,
    pub(super) page: u64,
    pub(super) rewrite: u64,
    pub(super) slow_s: f64,
    pub(super) is_lost: bool,
    /// After so many bytes of an object the connection is cut.
    pub(super) cut: Option<u64>,
    error: Option<Trouble>,
    bucket: String,
}

impl Rules {
    /// Those of one call, which counts.
    pub(super) fn of(sim: &SimCloud, call: Call, bucket: &str) -> Result<Self, ProviderError> {
        let (delivery, told) = sim.objects_called(call, bucket)?;
        Ok(Self {
            buckets: told.buckets,
            page: told.page.map_or(PAGE, u64::from),
            rewrite: told.rewrite.unwrap_or(REWRITE),
            slow_s: delivery.slow_s,
            is_lost: delivery.lost,
            cut: delivery.cut,
            error: delivery.error,
            bucket: bucket.to_owned(),
        })
    }

    /// Why a call is refused, if it is.
    pub(super) fn refusal(&self, needs: &str, bucket: &str) -> Option<StorageAnswer> {
        let refused =
            |status, reason, message: &str| Some(StorageAnswer::refused(status, reason, message));
        match self.error {
            None if bucket.is_empty() || self.buckets.iter().any(|(name, _)| name == bucket) => {
                None
            }
            None | Some(Trouble::NotFound) => {
                refused(StatusCode::NOT_FOUND, "notFound", "The specified bucket does not exist.")
            }
            Some(Trouble::Permission) => {
                let of = if bucket.is_empty() { "project" } else { "bucket" };
                let message = format!(
                    "lab@example.iam.gserviceaccount.com does not have {needs} access to the Google Cloud {of}. \
                     Permission '{needs}' denied on resource (or it may not exist)."
                );
                refused(StatusCode::FORBIDDEN, "forbidden", &message)
            }
            Some(Trouble::Quota | Trouble::NoCapacity) => refused(
                StatusCode::TOO_MANY_REQUESTS,
                "rateLimitExceeded",
                "The rate of requests exceeds the rate limit. Reduce the rate of requests.",
            ),
            Some(Trouble::Auth) => {
                refused(StatusCode::UNAUTHORIZED, "authError", "Invalid Credentials")
            }
            Some(Trouble::User | Trouble::AlreadyExists) => {
                refused(StatusCode::BAD_REQUEST, "invalid", "Invalid argument.")
            }
            Some(Trouble::Transient | Trouble::NoProvider | Trouble::State) => {
                refused(StatusCode::SERVICE_UNAVAILABLE, "backendError", "Backend Error")
            }
        }
    }
}

fn missing(bucket: &str, name: &str) -> StorageAnswer {
    StorageAnswer::refused(
        StatusCode::NOT_FOUND,
        "notFound",
        &format!("No such object: {bucket}/{name}"),
    )
}

fn wrong(message: &str) -> StorageAnswer {
    StorageAnswer::refused(StatusCode::BAD_REQUEST, "invalid", message)
}

fn shown((bucket, name): (&str, &str), kept: &Kept) -> Value {
    json!({
        "kind": "storage#object", "id": format!("{bucket}/{name}/{}", kept.generation),
        "name": name, "bucket": bucket, "generation": kept.generation.to_string(),
        "metageneration": "1", "size": kept.size.to_string(),
        "crc32c": STANDARD.encode(kept.crc32c.to_be_bytes()),
        "updated": kept.updated.to_rfc3339(), "timeCreated": kept.updated.to_rfc3339(),
        "storageClass": "STANDARD",
    })
}

/// The names of the buckets.
#[expect(clippy::unnecessary_wraps, reason = "as every method of the table")]
pub(super) fn buckets(
    _: &SimCloud,
    _: &StorageRequest,
    rules: &Rules,
) -> io::Result<StorageAnswer> {
    let one = |(name, location): &(String, String)| json!({ "kind": "storage#bucket", "id": name, "name": name, "location": location });
    let items: Vec<Value> = rules.buckets.iter().map(one).collect();
    Ok(StorageAnswer::json(json!({ "kind": "storage#buckets", "items": items })))
}

/// A page of objects, or of directories.
pub(super) fn list(
    sim: &SimCloud,
    request: &StorageRequest,
    rules: &Rules,
) -> io::Result<StorageAnswer> {
    let bucket = request.place("bucket");
    let prefix = request.parameter("prefix").unwrap_or_default();
    let delimiter = request.parameter("delimiter").unwrap_or_default();
    let asked = request.parameter("maxResults").and_then(|size| size.parse().ok());
    let size = asked.unwrap_or(PAGE).min(rules.page).max(1);
    let objects = sim.objects();
    let mut all: Vec<(String, bool)> = Vec::new();
    for name in objects.names(bucket, prefix)? {
        let rest = name.get(prefix.len()..).unwrap_or_default();
        let end = if delimiter.is_empty() { None } else { rest.find(delimiter) };
        let entry = match end {
            Some(end) => {
                (name.get(..prefix.len() + end + delimiter.len()).unwrap_or(&name).to_owned(), true)
            }
            None => (name, false),
        };
        if all.last() != Some(&entry) {
            all.push(entry);
        }
    }
    let from = request.parameter("pageToken");
    let rest = all.into_iter().filter(|(name, _)| from.is_none_or(|from| name.as_str() >= from));
    let mut rest = rest.peekable();
    let mut page = Map::new();
    let (mut items, mut prefixes) = (Vec::new(), Vec::new());
    for _ in 0..size {
        let Some((name, is_directory)) = rest.next() else { break };
        if is_directory {
            prefixes.push(json!(name));
        } else if let Some(kept) = objects.known(bucket, &name)? {
            items.push(shown((bucket, &name), &kept));
        }
    }
    page.insert("kind".to_owned(), json!("storage#objects"));
    if let Some((next, _)) = rest.peek() {
        page.insert("nextPageToken".to_owned(), json!(next));
    }
    // The API leaves out what is empty.
    if !items.is_empty() {
        page.insert("items".to_owned(), json!(items));
    }
    if !prefixes.is_empty() {
        page.insert("prefixes".to_owned(), json!(prefixes));
    }
    Ok(StorageAnswer::json(Value::Object(page)))
}

/// What is known of an object, or its bytes.
pub(super) fn object(
    sim: &SimCloud,
    request: &StorageRequest,
    _: &Rules,
) -> io::Result<StorageAnswer> {
    let at = (request.place("bucket"), request.place("object"));
    let Some(kept) = sim.objects().known(at.0, at.1)? else { return Ok(missing(at.0, at.1)) };
    let wanted = request.parameter("generation");
    if wanted.is_some_and(|wanted| *wanted != kept.generation.to_string()) {
        return Ok(missing(at.0, at.1));
    }
    if request.parameter("alt") != Some("media") {
        return Ok(StorageAnswer::json(shown(at, &kept)));
    }
    let range = request.header("range").and_then(|range| {
        let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
        let from: u64 = from.parse().ok()?;
        let last = to.parse().unwrap_or(u64::MAX).min(kept.size.checked_sub(1)?);
        (from <= last).then_some((from, last))
    });
    let mut file = sim.objects().open(at.0, at.1)?;
    let Some((from, last)) = range else {
        let body = AnswerBody::File(file, kept.size);
        return Ok(StorageAnswer { status: StatusCode::OK, headers: Vec::new(), body });
    };
    file.seek(SeekFrom::Start(from))?;
    let body = AnswerBody::File(file, last + 1 - from);
    let answer = StorageAnswer { status: StatusCode::PARTIAL_CONTENT, headers: Vec::new(), body };
    Ok(answer.with(header::CONTENT_RANGE, format!("bytes {from}-{last}/{}", kept.size)))
}

/// An object is taken away.
pub(super) fn delete(
    sim: &SimCloud,
    request: &StorageRequest,
    _: &Rules,
) -> io::Result<StorageAnswer> {
    let (bucket, name) = (request.place("bucket"), request.place("object"));
    let Some(kept) = sim.objects().known(bucket, name)? else { return Ok(missing(bucket, name)) };
    let wanted = request.parameter("ifGenerationMatch");
    if wanted.is_some_and(|wanted| *wanted != kept.generation.to_string()) {
        let message = "At least one of the pre-conditions you specified did not hold.";
        return Ok(StorageAnswer::refused(
            StatusCode::PRECONDITION_FAILED,
            "conditionNotMet",
            message,
        ));
    }
    sim.objects().remove(bucket, name)?;
    Ok(StorageAnswer::empty(StatusCode::NO_CONTENT))
}

/// An upload begins, or an object is put as a whole.
pub(super) fn begin(
    sim: &SimCloud,
    request: &StorageRequest,
    rules: &Rules,
) -> io::Result<StorageAnswer> {
    let is_whole = request.parameter("uploadType") == Some("media");
    let said: Value = if is_whole {
        Value::Null
    } else {
        serde_json::from_slice(&request.bytes).unwrap_or(Value::Null)
    };
    let name = request.parameter("name").or_else(|| said["name"].as_str()).unwrap_or_default();
    if name.is_empty() || name.len() > 1024 {
        return Ok(wrong("Required parameter: name"));
    }
    let sum = said["crc32c"].as_str().and_then(|text| STANDARD.decode(text).ok());
    let sum = sum.and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
    let of = Uploading { bucket: rules.bucket.clone(), name: name.to_owned(), crc32c: sum };
    let (objects, now) = (sim.objects(), sim.now());
    let id = objects.begin(&of, now)?;
    if !is_whole {
        let at = format!(
            "http://{}/upload/storage/v1/b/{}/o?uploadType=resumable&upload_id={id}",
            request.host, of.bucket
        );
        return Ok(StorageAnswer::empty(StatusCode::OK).with(header::LOCATION, at));
    }
    if request.is_cut {
        return Ok(wrong("the body broke off"));
    }
    objects.append(&id, &request.bytes)?;
    Ok(match objects.finish((&id, &of), now)? {
        Some(kept) => StorageAnswer::json(shown((&of.bucket, &of.name), &kept)),
        None => wrong("Provided CRC32C does not match."),
    })
}

/// More of an upload arrives, or it is asked how far it is.
pub(super) fn upload(
    sim: &SimCloud,
    request: &StorageRequest,
    _: &Rules,
) -> io::Result<StorageAnswer> {
    let id = request.parameter("upload_id").unwrap_or_default();
    let _alone = Objects::alone();
    let objects = sim.objects();
    let Some((of, there)) = objects.uploading(id)? else {
        return Ok(StorageAnswer::refused(StatusCode::GONE, "gone", "There is no such upload."));
    };
    let range = request.header("content-range").and_then(|range| range.strip_prefix("bytes "));
    let Some((range, total)) = range.and_then(|range| range.split_once('/')) else {
        return Ok(wrong("Content-Range is missing"));
    };
    let total: Option<u64> = total.parse().ok();
    let mut there = there;
    if let Some((from, _)) = range.split_once('-') {
        let Ok(from) = from.parse::<u64>() else { return Ok(wrong("Invalid Content-Range")) };
        if from > there {
            return Ok(StorageAnswer::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "backendError",
                "Invalid request. Some bytes before those are missing.",
            ));
        }
        // What has arrived before is not taken again; only whole units are kept of what breaks off.
        let skip = usize::try_from(there - from).unwrap_or(usize::MAX);
        let mut new = request.bytes.get(skip..).unwrap_or_default();
        let whole = there + new.len() as u64;
        if total != Some(whole) {
            let kept = whole / tpu_engine::provider::storage::UPLOAD_UNIT
                * tpu_engine::provider::storage::UPLOAD_UNIT;
            let kept = usize::try_from(kept.saturating_sub(there)).unwrap_or(usize::MAX);
            new = new.get(..kept).unwrap_or(new);
        }
        objects.append(id, new)?;
        there += new.len() as u64;
    }
    if total == Some(there) {
        return Ok(match objects.finish((id, &of), sim.now())? {
            Some(kept) => StorageAnswer::json(shown((&of.bucket, &of.name), &kept)),
            None => wrong("Provided CRC32C does not match calculated CRC32C."),
        });
    }
    let going = StorageAnswer::empty(StatusCode::PERMANENT_REDIRECT);
    Ok(match there {
        0 => going,
        there => going.with(header::RANGE, format!("bytes=0-{}", there - 1)),
    })
}

/// A copy from bucket to bucket, as far as one call goes.
pub(super) fn rewrite(
    sim: &SimCloud,
    request: &StorageRequest,
    rules: &Rules,
) -> io::Result<StorageAnswer> {
    let _alone = Objects::alone();
    let from = (request.place("bucket"), request.place("object"));
    let to = (request.place("to"), request.place("name"));
    let objects = sim.objects();
    let Some(kept) = objects.known(from.0, from.1)? else { return Ok(missing(from.0, from.1)) };
    let wanted = request.parameter("sourceGeneration");
    if wanted.is_some_and(|wanted| *wanted != kept.generation.to_string()) {
        return Ok(missing(from.0, from.1));
    }
    let place = |bucket: &str| rules.buckets.iter().find(|(name, _)| name == bucket);
    let is_near = place(from.0).map(|(_, at)| at) == place(to.0).map(|(_, at)| at);
    // Within a location no byte is moved.
    let most = if is_near { u64::MAX } else { rules.rewrite };
    let plain = format!("{}/{}#{}>{}/{}", from.0, from.1, kept.generation, to.0, to.1);
    let token = request.parameter("rewriteToken").map(str::to_owned);
    let token = token.unwrap_or_else(|| {
        format!("{:08x}-{}", crc32c::crc32c(plain.as_bytes()), sim.now().as_second())
    });
    let size = kept.size.to_string();
    Ok(StorageAnswer::json(match objects.rewrite(from, to, (&token, most), sim.now())? {
        Rewritten::Going(written) => json!({
            "kind": "storage#rewriteResponse", "totalBytesRewritten": written.to_string(),
            "objectSize": size, "done": false, "rewriteToken": token,
        }),
        Rewritten::Done(copy) => json!({
            "kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size,
            "done": true, "resource": shown(to, &copy),
        }),
    }))
}
