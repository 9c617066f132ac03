//! Cloud Storage through its JSON API, version 1, by the client and the credentials of the provider.
//!
//! Sources, all below `https://cloud.google.com/storage/docs/`:
//! `json_api/v1/objects/list` (`prefix`, `delimiter`, `pageToken`), `json_api/v1/objects/get` (`alt=media` with `Range`,
//! `generation`), `performing-resumable-uploads` (`Content-Range`, 308 with `Range`, a session lives for a week),
//! `json_api/v1/objects/rewrite` (`rewriteToken`, `sourceGeneration`), `json_api/v1/objects/delete` (`ifGenerationMatch`),
//! `json_api/v1/status-codes` (the body of a refusal), `hashes-etags` (CRC32C in base64 of big-endian bytes, which every
//! object has; an MD5 is not there for composite ones, so it is not relied on), `access-control/iam-json` (which permission a
//! method needs) and `access-control/iam-roles` (which role has it).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::answers;
use super::http::{Ask, Method, Transferred};
use super::{Api, Google, escaped};
use tpu_core::model::objects::{ObjectAt, ObjectFact};
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::storage::{
    ObjectPage, ObjectPart, ObjectQuery, ObjectStore, RewriteState, UploadState,
};
use tpu_engine::provider::{ProviderError, Trouble};

/// Entries of a page that are asked for; the API gives no more.
const PAGE: &str = "1000";

/// The parts of an object that are read.
const FIELDS: &str = "name,size,crc32c,generation,updated";

/// A permission, and the least of the predefined roles that has it.
const ROLES: [(&str, &str); 6] = [
    ("storage.objects.list", "roles/storage.objectViewer"),
    ("storage.objects.get", "roles/storage.objectViewer"),
    ("storage.objects.create", "roles/storage.objectUser"),
    ("storage.objects.delete", "roles/storage.objectUser"),
    ("storage.buckets.list", "roles/storage.bucketViewer"),
    ("storage.buckets.get", "roles/storage.bucketViewer"),
];

/// A request to the storage.
struct Request<'a> {
    method: Method,
    url: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Option<&'a [u8]>,
    doing: &'a str,
    /// The permission that it takes, for who does not have it.
    needs: &'static str,
}

impl Api {
    /// One request; a token that has just expired is replaced once.
    fn storage(&self, request: &Request<'_>) -> Result<Transferred, ProviderError> {
        let Request { method, url, headers, body, doing, needs } = *request;
        for is_last in [false, true] {
            let bearer = self.credentials.bearer(&self.http).map_err(|error| ProviderError {
                doing: format!("{doing}: {}", error.doing),
                ..error
            })?;
            let mut headers = headers.to_vec();
            if let Some(bearer) = &bearer {
                headers.push(("authorization", bearer));
            }
            let reply = self.http.transfer(&Ask { method, url, headers: &headers, body, doing })?;
            if reply.status == 401 && bearer.is_some() && self.credentials.forget() && !is_last {
                continue;
            }
            return match reply.status {
                200..=299 | 308 => Ok(reply),
                status => Err(self.refused((status, &reply.body), doing, needs)),
            };
        }
        Err(ProviderError::new(Trouble::Auth, doing, "the API knows none of our tokens"))
    }

    fn refused(&self, (status, body): (u16, &[u8]), doing: &str, needs: &str) -> ProviderError {
        let error = answers::refusal(status, body, doing);
        let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let reasons = json["error"]["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_pace = |one: &Value| one["reason"].as_str().is_some_and(is_pace);
        match error.trouble {
            Trouble::Auth => {
                let remedy = self.credentials.remedy();
                error.remedy(remedy)
            }
            // It is told to slow down: 429, or 403 with that reason.
            Trouble::Permission | Trouble::Quota if reasons.iter().any(is_pace) => {
                ProviderError { trouble: Trouble::Transient, ..error }
            }
            Trouble::Permission => {
                let named = ROLES.iter().find(|(name, _)| error.message.contains(name));
                let asked = ROLES.iter().find(|(name, _)| *name == needs);
                match named.or(asked) {
                    Some((name, role)) => error.remedy(format!(
                        "{name} is missing: ask an owner of the bucket or the project for the role {role}"
                    )),
                    None => error,
                }
            }
            // The version has gone, or an upload is not ours any more.
            Trouble::User if matches!(status, 410 | 412) => {
                ProviderError { trouble: Trouble::NotFound, ..error }
            }
            _ => error,
        }
    }

    fn storage_json(&self, request: &Request<'_>) -> Result<Value, ProviderError> {
        let reply = self.storage(request)?;
        json_of(&reply, request.doing)
    }

    /// The address of an object, or of the list of all without a name.
    fn objects(&self, bucket: &str, name: &str) -> String {
        let object = if name.is_empty() { String::new() } else { format!("/{}", escaped(name)) };
        format!("{}/storage/v1/b/{}/o{object}", self.storage, escaped(bucket))
    }
}

fn is_pace(reason: &str) -> bool {
    matches!(reason, "rateLimitExceeded" | "userRateLimitExceeded")
}

fn json_of(reply: &Transferred, doing: &str) -> Result<Value, ProviderError> {
    if let Some(cut) = &reply.cut {
        return Err(cut.clone());
    }
    serde_json::from_slice(&reply.body)
        .map_err(|_| ProviderError::new(Trouble::Transient, doing, "the answer is no JSON"))
}

fn no_object(doing: &str) -> ProviderError {
    ProviderError::new(Trouble::Transient, doing, "the answer is no object")
}

/// Numbers are text in this API.
fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64())
}

/// A checksum as the API writes it.
fn checksum(text: &str) -> Option<u32> {
    let bytes: [u8; 4] = STANDARD.decode(text).ok()?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

fn fact(bucket: &str, value: &Value) -> Option<ObjectFact> {
    Some(ObjectFact {
        at: ObjectAt::new(bucket, value["name"].as_str()?),
        size: number(&value["size"])?,
        crc32c: value["crc32c"].as_str().and_then(checksum),
        generation: number(&value["generation"])?,
        updated: value["updated"].as_str().and_then(Timestamp::parse_rfc3339),
    })
}

/// How far an upload is, by the status of an answer and its `Range`.
fn reached(reply: &Transferred, bucket: &str, doing: &str) -> Result<UploadState, ProviderError> {
    if reply.status == 308 {
        // Without the header nothing has arrived.
        let last = reply.range.as_deref().map(|range| {
            range.rsplit_once('-').and_then(|(_, last)| last.trim().parse::<u64>().ok())
        });
        return match last {
            None => Ok(UploadState::Took(0)),
            Some(Some(last)) => Ok(UploadState::Took(last.saturating_add(1))),
            Some(None) => Err(ProviderError::new(
                Trouble::Transient,
                doing,
                "the answer does not say how far it is",
            )),
        };
    }
    let value = json_of(reply, doing)?;
    let bucket = value["bucket"].as_str().unwrap_or(bucket);
    fact(bucket, &value).map(UploadState::Done).ok_or_else(|| no_object(doing))
}

impl ObjectStore for Google {
    fn buckets(&self) -> Result<Vec<String>, ProviderError> {
        let doing = "list the buckets";
        let api = self.api()?;
        let (mut names, mut page) = (Vec::new(), None::<String>);
        loop {
            let next = page.map(|page| format!("&pageToken={}", escaped(&page)));
            let url = format!(
                "{}/storage/v1/b?project={}&maxResults={PAGE}{}",
                api.storage,
                api.project,
                next.unwrap_or_default()
            );
            let needs = "storage.buckets.list";
            let (method, headers, body) = (Method::Get, &[][..], None);
            let value =
                api.storage_json(&Request { method, url: &url, headers, body, doing, needs })?;
            let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            names.extend(items.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())));
            page = value["nextPageToken"].as_str().map(str::to_owned);
            if page.is_none() {
                return Ok(names);
            }
        }
    }

    fn list_objects(&self, query: &ObjectQuery<'_>) -> Result<ObjectPage, ProviderError> {
        let ObjectQuery { bucket, prefix, by_directory, page } = query;
        let doing = format!("list gs://{bucket}/{prefix}");
        let api = self.api()?;
        let mut url = format!(
            "{}?maxResults={PAGE}&fields=nextPageToken,prefixes,items({FIELDS})&prefix={}",
            api.objects(bucket, ""),
            escaped(prefix)
        );
        if *by_directory {
            url += "&delimiter=%2F";
        }
        if let Some(page) = page {
            url += &format!("&pageToken={}", escaped(page));
        }
        let needs = "storage.objects.list";
        let (method, headers, body) = (Method::Get, &[][..], None);
        let value =
            api.storage_json(&Request { method, url: &url, headers, body, doing: &doing, needs })?;
        let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let objects: Option<Vec<ObjectFact>> =
            items.iter().map(|value| fact(bucket, value)).collect();
        let directories = value["prefixes"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(ObjectPage {
            // A list of which a part is not understood is no list.
            objects: objects.ok_or_else(|| no_object(&doing))?,
            directories: directories
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            next: value["nextPageToken"].as_str().map(str::to_owned),
        })
    }

    fn object(&self, at: &ObjectAt) -> Result<ObjectFact, ProviderError> {
        let doing = format!("look at {at}");
        let api = self.api()?;
        let url = format!("{}?fields={FIELDS}", api.objects(&at.bucket, &at.name));
        let needs = "storage.objects.get";
        let (method, headers, body) = (Method::Get, &[][..], None);
        let value =
            api.storage_json(&Request { method, url: &url, headers, body, doing: &doing, needs })?;
        fact(&at.bucket, &value).ok_or_else(|| no_object(&doing))
    }

    fn read_object(
        &self,
        of: &ObjectFact,
        from: u64,
        most: u64,
    ) -> Result<ObjectPart, ProviderError> {
        let doing = format!("read {}", of.at);
        let last = from.saturating_add(most).min(of.size).saturating_sub(1);
        if from >= of.size || most == 0 {
            return Ok(ObjectPart::default());
        }
        let api = self.api()?;
        let at = api.objects(&of.at.bucket, &of.at.name);
        let url = format!("{at}?alt=media&generation={}", of.generation);
        let range = format!("bytes={from}-{last}");
        let headers = &[("range", range.as_str())][..];
        let needs = "storage.objects.get";
        let request =
            Request { method: Method::Get, url: &url, headers, body: None, doing: &doing, needs };
        let Transferred { status, mut body, cut, .. } = api.storage(&request)?;
        if status != 206 && from > 0 {
            let message = "the range that was asked for was not answered";
            return Err(ProviderError::new(Trouble::Transient, doing, message));
        }
        body.truncate(usize::try_from(last + 1 - from).unwrap_or(usize::MAX));
        Ok(ObjectPart { bytes: body, cut })
    }

    fn begin_upload(&self, at: &ObjectAt, crc32c: u32) -> Result<String, ProviderError> {
        let doing = format!("upload {at}");
        let api = self.api()?;
        let url = format!(
            "{}/upload/storage/v1/b/{}/o?uploadType=resumable&name={}",
            api.storage,
            escaped(&at.bucket),
            escaped(&at.name)
        );
        // The store itself refuses bytes that are others.
        let sum = STANDARD.encode(crc32c.to_be_bytes());
        let body = json!({ "name": at.name, "crc32c": sum }).to_string().into_bytes();
        let headers = &[("content-type", "application/json; charset=UTF-8")][..];
        let (method, body, needs) = (Method::Post, Some(&*body), "storage.objects.create");
        let reply =
            api.storage(&Request { method, url: &url, headers, body, doing: &doing, needs })?;
        reply.location.ok_or_else(|| {
            ProviderError::new(
                Trouble::Transient,
                doing,
                "the answer does not say where to send it",
            )
        })
    }

    fn upload(
        &self,
        (session, total): (&str, u64),
        from: u64,
        bytes: &[u8],
    ) -> Result<UploadState, ProviderError> {
        let doing = "upload an object";
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let range = match length {
            0 => format!("bytes */{total}"),
            _ => format!("bytes {from}-{}/{total}", from.saturating_add(length) - 1),
        };
        let headers = &[("content-range", range.as_str())][..];
        let (method, body, needs) = (Method::Put, Some(bytes), "storage.objects.create");
        let api = self.api()?;
        // It was kept where others of the lab may write, and our token goes there.
        if !session.starts_with(&format!("{}/upload/storage/v1/b/", api.storage)) {
            let message = "the upload that was begun is none of this store's";
            return Err(ProviderError::new(Trouble::NotFound, doing, message));
        }
        let reply = api.storage(&Request { method, url: session, headers, body, doing, needs })?;
        reached(&reply, "", doing)
    }

    fn upload_state(&self, session: &str, total: u64) -> Result<UploadState, ProviderError> {
        self.upload((session, total), 0, &[])
    }

    fn rewrite(
        &self,
        from: &ObjectFact,
        to: &ObjectAt,
        token: Option<&str>,
    ) -> Result<RewriteState, ProviderError> {
        let doing = format!("copy {} to {to}", from.at);
        let api = self.api()?;
        let mut url = format!(
            "{}/rewriteTo/b/{}/o/{}?sourceGeneration={}",
            api.objects(&from.at.bucket, &from.at.name),
            escaped(&to.bucket),
            escaped(&to.name),
            from.generation
        );
        if let Some(token) = token {
            url += &format!("&rewriteToken={}", escaped(token));
        }
        let headers = &[("content-type", "application/json")][..];
        let (method, body, needs) = (Method::Post, Some(&b"{}"[..]), "storage.objects.create");
        let value =
            api.storage_json(&Request { method, url: &url, headers, body, doing: &doing, needs })?;
        if value["done"] == true {
            let done = fact(&to.bucket, &value["resource"]);
            return done.map(RewriteState::Done).ok_or_else(|| no_object(&doing));
        }
        let written = number(&value["totalBytesRewritten"]);
        let going = written.zip(value["rewriteToken"].as_str());
        going
            .map(|(written, token)| RewriteState::Going { written, token: token.to_owned() })
            .ok_or_else(|| {
                let message = "the answer does not say how to go on";
                ProviderError::new(Trouble::Transient, doing, message)
            })
    }

    fn delete_object(&self, at: &ObjectAt, generation: Option<u64>) -> Result<(), ProviderError> {
        let doing = format!("delete {at}");
        let api = self.api()?;
        let mut url = api.objects(&at.bucket, &at.name);
        if let Some(generation) = generation {
            url += &format!("?ifGenerationMatch={generation}");
        }
        let (headers, needs) = (&[][..], "storage.objects.delete");
        let (method, body) = (Method::Delete, None);
        match api.storage(&Request { method, url: &url, headers, body, doing: &doing, needs }) {
            Err(error) if error.trouble == Trouble::NotFound => Ok(()),
            answer => answer.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, range: Option<&str>, body: &Value) -> Transferred {
        Transferred {
            status,
            location: None,
            range: range.map(str::to_owned),
            body: body.to_string().into_bytes(),
            cut: None,
        }
    }

    #[test]
    fn how_far_an_upload_is_stands_in_its_range() {
        let state = |range| reached(&reply(308, range, &Value::Null), "b", "try").unwrap();
        assert_eq!(state(None), UploadState::Took(0));
        assert_eq!(state(Some("bytes=0-262143")), UploadState::Took(262_144));
        assert!(reached(&reply(308, Some("none"), &Value::Null), "b", "try").is_err());
        let object = json!({
            "name": "a/b", "size": "3", "crc32c": "NT3Yjg==", "generation": "7",
            "updated": "2026-11-20T14:00:00.000Z",
        });
        let UploadState::Done(fact) = reached(&reply(200, None, &object), "lab", "try").unwrap()
        else {
            panic!("it is done")
        };
        assert_eq!((fact.size, fact.generation), (3, 7));
        assert_eq!(fact.crc32c, Some(0x353d_d88e));
        assert!(fact.updated.is_some());
    }
}
