//! What an answer of the API means to us: its JSON, or the class of its failure.

use serde_json::Value;

use super::http::Reply;
use tpu_core::text;
use tpu_engine::provider::{ENDPOINT_SETTING, ProviderError, Trouble};

/// The JSON of a good answer, or what is wrong.
pub(super) fn judge(reply: &Reply, doing: &str) -> Result<Value, ProviderError> {
    if (200..300).contains(&reply.status) {
        return serde_json::from_slice(&reply.body).map_err(|_| {
            let message = format!("an answer that is no JSON: {}", start_of(&reply.body));
            ProviderError::new(Trouble::Transient, doing, message)
                .remedy(format!(
                    "something between here and the API answers in its place; check the proxy, and the address: {ENDPOINT_SETTING}"
                ))
        });
    }
    Err(refusal(reply.status, &reply.body, doing))
}

/// The refusal that a status and its body stand for.
pub(super) fn refusal(status: u16, body: &[u8], doing: &str) -> ProviderError {
    let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = &json["error"];
    let word = error["status"].as_str().unwrap_or_default();
    let said = error["message"].as_str().map(|message| text::escape(message).into_owned());
    let said = said.unwrap_or_else(|| start_of(body));
    let reasons = reasons(error);
    let trouble = match status {
        401 => Trouble::Auth,
        403 if reasons.iter().any(|r| r.eq_ignore_ascii_case("rateLimitExceeded")) => {
            Trouble::Transient
        }
        403 if reasons.iter().any(|r| r == "quotaExceeded") => Trouble::Quota,
        403 => Trouble::Permission,
        404 => Trouble::NotFound,
        409 if word == "ABORTED" => Trouble::Transient,
        409 => Trouble::AlreadyExists,
        429 => exhausted(&said, &reasons),
        408 | 300..=399 | 500.. => Trouble::Transient,
        _ => Trouble::User,
    };
    let word = if word.is_empty() { format!("HTTP {status}") } else { word.to_owned() };
    let message = if said.starts_with(&word) { said } else { format!("{word}: {said}") };
    with_remedy(ProviderError::new(trouble, doing, message), &reasons)
}

/// The failure of an operation, from its `error{code, message}`.
pub(super) fn operation_failure(error: &Value, doing: &str) -> ProviderError {
    let said = text::escape(error["message"].as_str().unwrap_or("no reason given")).into_owned();
    let reasons = reasons(error);
    let code = error["code"].as_i64().unwrap_or(2);
    let (word, trouble) = match code {
        3 => ("INVALID_ARGUMENT", Trouble::User),
        5 => ("NOT_FOUND", Trouble::NotFound),
        6 => ("ALREADY_EXISTS", Trouble::AlreadyExists),
        7 => ("PERMISSION_DENIED", Trouble::Permission),
        8 if is_quota(&said) => ("RESOURCE_EXHAUSTED", Trouble::Quota),
        8 => ("RESOURCE_EXHAUSTED", Trouble::NoCapacity),
        _ if is_no_capacity(&said) => ("UNAVAILABLE", Trouble::NoCapacity),
        9 => ("FAILED_PRECONDITION", Trouble::User),
        16 => ("UNAUTHENTICATED", Trouble::Auth),
        1 => ("CANCELLED", Trouble::User),
        4 => ("DEADLINE_EXCEEDED", Trouble::Transient),
        10 => ("ABORTED", Trouble::Transient),
        13 => ("INTERNAL", Trouble::Transient),
        14 => ("UNAVAILABLE", Trouble::Transient),
        _ => ("UNKNOWN", Trouble::Transient),
    };
    let message = if said.starts_with(word) { said } else { format!("{word}: {said}") };
    with_remedy(ProviderError::new(trouble, doing, message), &reasons)
}

/// 429: no capacity, no quota, or only too fast.
fn exhausted(said: &str, reasons: &[String]) -> Trouble {
    let is_pace = reasons.iter().any(|reason| reason.contains("RATE_LIMIT"))
        || said.contains("per minute")
        || said.contains("per second");
    match () {
        () if is_pace => Trouble::Transient,
        () if is_quota(said) => Trouble::Quota,
        () if is_no_capacity(said) => Trouble::NoCapacity,
        () => Trouble::Transient,
    }
}

fn is_quota(said: &str) -> bool {
    said.to_ascii_lowercase().contains("quota")
}

fn is_no_capacity(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "no more capacity",
        "not enough resources",
        "insufficient reserved capacity",
        "insufficient capacity",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// The machine-readable reasons: among the details, or, where an API is older than those, among the errors.
fn reasons(error: &Value) -> Vec<String> {
    let all = ["details", "errors"].into_iter().filter_map(|key| error[key].as_array()).flatten();
    all.filter_map(|one| Some(one["reason"].as_str()?.to_owned())).collect()
}

/// Says what to do where the API's own reason tells.
fn with_remedy(error: ProviderError, reasons: &[String]) -> ProviderError {
    let has = |reason: &str| reasons.iter().any(|given| given == reason);
    match error.trouble {
        Trouble::Permission if has("SERVICE_DISABLED") || error.message.contains("has not been used") => {
            error.remedy("switch the API on: gcloud services enable tpu.googleapis.com --project PROJECT")
        }
        Trouble::Quota => error.remedy(
            "delete what nobody needs (`tpu targets --cost` shows what is in use), or ask for more quota; asking again does not help",
        ),
        Trouble::NotFound | Trouble::Permission if error.message.contains("project") && has("CONSUMER_INVALID") => {
            error.remedy("name the right project: tpu set-settings project NAME")
        }
        _ => error,
    }
}

/// The beginning of something that should have been JSON.
fn start_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..body.len().min(400)).unwrap_or_default());
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    if line.is_empty() {
        return "an empty answer".to_owned();
    }
    text::cut(&text::escape(&line), 120).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(status: u16, word: &str, message: &str) -> (Trouble, String) {
        let body = json!({"error": {"code": status, "message": message, "status": word}});
        let error = refusal(status, body.to_string().as_bytes(), "try");
        (error.trouble, error.message)
    }

    #[test]
    fn every_refusal_has_its_class() {
        for (status, word, message, trouble) in [
            (400, "INVALID_ARGUMENT", "bad type", Trouble::User),
            (400, "FAILED_PRECONDITION", "it is STOPPED", Trouble::User),
            (
                401,
                "UNAUTHENTICATED",
                "Request had invalid authentication credentials",
                Trouble::Auth,
            ),
            (403, "PERMISSION_DENIED", "Permission 'tpu.nodes.create' denied", Trouble::Permission),
            (404, "NOT_FOUND", "not found", Trouble::NotFound),
            (409, "ALREADY_EXISTS", "already exists", Trouble::AlreadyExists),
            (409, "ABORTED", "try again", Trouble::Transient),
            (
                429,
                "RESOURCE_EXHAUSTED",
                "Quota limit 'TPUV2sPreemptiblePodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone z.",
                Trouble::Quota,
            ),
            (
                429,
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for quota metric 'Requests' per minute",
                Trouble::Transient,
            ),
            (
                429,
                "RESOURCE_EXHAUSTED",
                "There is no more capacity in the zone",
                Trouble::NoCapacity,
            ),
            (429, "RESOURCE_EXHAUSTED", "slow down", Trouble::Transient),
            (500, "INTERNAL", "oops", Trouble::Transient),
            (503, "UNAVAILABLE", "down", Trouble::Transient),
            (302, "", "", Trouble::Transient),
        ] {
            let (is, text) = class(status, word, message);
            assert_eq!(is, trouble, "{status} {word} {message}");
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    fn every_failure_of_an_operation_has_its_class() {
        for (code, message, trouble) in [
            (
                8,
                "There is no more capacity in the zone \"z\"; you can try in another zone",
                Trouble::NoCapacity,
            ),
            (8, "Insufficient reserved capacity. Contact customer support", Trouble::NoCapacity),
            (8, "Quota 'TPUV4sPreemptiblePod' exhausted. Limit 20800", Trouble::Quota),
            (10, "aborted", Trouble::Transient),
            (13, "internal", Trouble::Transient),
            (14, "there are not enough resources", Trouble::NoCapacity),
            (9, "state", Trouble::User),
            (7, "no", Trouble::Permission),
            (99, "new", Trouble::Transient),
        ] {
            let error = json!({"code": code, "message": message});
            assert_eq!(operation_failure(&error, "try").trouble, trouble, "{code} {message}");
        }
        assert_eq!(operation_failure(&Value::Null, "try").trouble, Trouble::Transient);
    }

    #[test]
    fn an_answer_that_is_no_json_is_no_answer() {
        let page = Reply { status: 200, body: b"<html>log in\n to the \x1b[31mwlan".to_vec() };
        let error = judge(&page, "list").unwrap_err();
        assert_eq!(error.trouble, Trouble::Transient);
        assert!(error.message.contains("<html>log in to the"), "{error}");
        assert!(!error.message.contains('\x1b'), "{error:?}");
        let error = refusal(502, b"<html>502</html>", "list");
        assert_eq!(
            (error.trouble, error.message.as_str()),
            (Trouble::Transient, "HTTP 502: <html>502</html>")
        );
    }
}
