//! Who we are: a token from the first source that has one, kept in memory until it expires, and never
//! anywhere else.
//!
//! In this order: `$GOOGLE_OAUTH_ACCESS_TOKEN`, the application-default file (of a person or a service
//! account), the metadata server of a machine in the cloud, and Google's own command line. Nothing is read
//! before the first request needs it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::http::{Ask, Http, Method};
use tpu_engine::provider::{ProviderError, Trouble};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};

/// Holds for every API of the cloud; what may be done is decided there.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Where the file of a person does not say where its token comes from.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The metadata server, by an address that needs no DNS.
const METADATA: &str = "169.254.169.254";
/// A token counts as expired so long before its end: a request takes its time.
const MARGIN: Duration = Duration::from_secs(60);
/// Google's own command line does not say how long its token lives; it has an hour at most.
const BORROWED: Duration = Duration::from_secs(15 * 60);
/// Google's own command line needs about a second.
const COMMAND_PATIENCE: Duration = Duration::from_secs(30);
/// How to become somebody.
const LOGIN: &str = "log in: gcloud auth application-default login, or gcloud auth login, or set $GOOGLE_OAUTH_ACCESS_TOKEN";

/// A token. It shows itself to nobody.
#[derive(Clone)]
struct Token {
    value: String,
    /// On the clock that never jumps; `None` if it does not say.
    until: Option<Duration>,
    source: Source,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token from {}", self.source)
    }
}

/// Where a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Environment,
    File,
    Metadata,
    Command,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "$GOOGLE_OAUTH_ACCESS_TOKEN",
            Self::File => "the application-default credentials",
            Self::Metadata => "the metadata server",
            Self::Command => "gcloud auth print-access-token",
        })
    }
}

/// All that is known about who we are.
pub(super) struct Credentials {
    env: Env,
    clock: Arc<dyn Clock>,
    /// Whether any are wanted at all.
    wanted: bool,
    cached: Mutex<Option<Token>>,
}

impl Credentials {
    /// Nothing is read yet.
    pub(super) fn new(env: Env, clock: Arc<dyn Clock>, wanted: bool) -> Self {
        Self { env, clock, wanted, cached: Mutex::new(None) }
    }

    /// The header that says who we are; `None` where nobody asks.
    pub(super) fn bearer(&self, http: &Http) -> Result<Option<String>, ProviderError> {
        if !self.wanted {
            return Ok(None);
        }
        // Held while a token is fetched: those who come meanwhile want the same one.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        let fresh = |token: &&Token| token.until.is_none_or(|until| now + MARGIN < until);
        if let Some(token) = cached.as_ref().filter(fresh) {
            return Ok(Some(format!("Bearer {}", token.value)));
        }
        let before = cached.as_ref().map(|token| token.source);
        let token = self.fetch(http, before)?;
        let header = format!("Bearer {}", token.value);
        *cached = Some(token);
        Ok(Some(header))
    }

    /// Forgets a token that the API has refused. Whether another try with a new one makes sense.
    pub(super) fn forget(&self) -> bool {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.take().is_some_and(|token| token.source != Source::Environment)
    }

    /// What to do when the API does not know us.
    pub(super) fn remedy(&self) -> String {
        if self.env.non_empty("GOOGLE_OAUTH_ACCESS_TOKEN").is_some() {
            return "the token in $GOOGLE_OAUTH_ACCESS_TOKEN has expired or is wrong; a new one: \
                 export GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token)"
                .to_owned();
        }
        "log in again: gcloud auth application-default login, or gcloud auth login".to_owned()
    }

    /// Gets a token; `before` is where the last one came from.
    fn fetch(&self, http: &Http, before: Option<Source>) -> Result<Token, ProviderError> {
        if let Some(value) = self.env.non_empty("GOOGLE_OAUTH_ACCESS_TOKEN") {
            return self.token(value.trim(), None, Source::Environment);
        }
        if let Some(path) = self.file() {
            let bytes = std::fs::read(&path).map_err(|e| {
                auth(format!("the credentials {} cannot be read: {e}", path.display()))
                    .remedy(LOGIN)
            })?;
            return self.by_file(http, &path, &bytes);
        }
        if let Some(token) = self.by_metadata(http)? {
            return Ok(token);
        }
        if before == Some(Source::Metadata) {
            let (doing, what) = ("get a token", "the metadata server of this machine is silent");
            return Err(ProviderError::new(Trouble::Transient, doing, what));
        }
        self.by_command()
    }

    /// A token as it came, if a header can carry it.
    fn token(
        &self,
        value: &str,
        lives: Option<Duration>,
        source: Source,
    ) -> Result<Token, ProviderError> {
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(auth(format!("what {source} gives is no token")).remedy(LOGIN));
        }
        let until = lives.map(|lives| self.clock.monotonic() + lives);
        Ok(Token { value: value.to_owned(), until, source })
    }

    /// The application-default file, if there is one. A path that somebody set must be there.
    fn file(&self) -> Option<PathBuf> {
        if let Some(path) = self.env.non_empty("GOOGLE_APPLICATION_CREDENTIALS") {
            return Some(self.env.cwd.join(path));
        }
        let config = self.env.non_empty("CLOUDSDK_CONFIG").map(PathBuf::from);
        let config = config.unwrap_or_else(|| self.env.home.join(".config/gcloud"));
        let path = config.join("application_default_credentials.json");
        path.is_file().then_some(path)
    }

    fn by_file(
        &self,
        http: &Http,
        path: &std::path::Path,
        bytes: &[u8],
    ) -> Result<Token, ProviderError> {
        let broken =
            |what: &str| auth(format!("the credentials {}: {what}", path.display())).remedy(LOGIN);
        let file: Value = serde_json::from_slice(bytes).map_err(|_| broken("it is no JSON"))?;
        let field =
            |name: &str| file[name].as_str().ok_or_else(|| broken(&format!("'{name}' is missing")));
        let uri = file["token_uri"].as_str().unwrap_or(TOKEN_URI);
        let form = match file["type"].as_str() {
            Some("authorized_user") => form(&[
                ("grant_type", "refresh_token"),
                ("client_id", field("client_id")?),
                ("client_secret", field("client_secret")?),
                ("refresh_token", field("refresh_token")?),
            ]),
            Some("service_account") => {
                let now = self.clock.now().as_second();
                let claims = json!({
                    "iss": field("client_email")?, "scope": SCOPE, "aud": uri,
                    "iat": now, "exp": now + 3600,
                });
                let header = json!({"alg": "RS256", "typ": "JWT", "kid": file["private_key_id"]});
                let assertion = signed(&header, &claims, field("private_key")?).map_err(broken)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                form(&[("grant_type", grant), ("assertion", &assertion)])
            }
            Some(other) => {
                return Err(broken(&format!("credentials of type '{other}' are not understood"))
                    .remedy("use a token of theirs: export GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth application-default print-access-token)"));
            }
            None => return Err(broken("'type' is missing")),
        };
        let ask = Ask {
            method: Method::Post,
            url: uri,
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: Some(form.as_bytes()),
            doing: "get a token",
        };
        let reply = http.send(&ask)?;
        let json: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
        match reply.status {
            200 => self.granted(&json, Source::File),
            500.. | 429 => Err(ProviderError::new(
                Trouble::Transient,
                "get a token",
                format!("the token server answers HTTP {}", reply.status),
            )),
            status => {
                let word = json["error"].as_str().unwrap_or("refused");
                let why = json["error_description"].as_str().unwrap_or("no reason given");
                let why = tpu_core::text::escape(why).into_owned();
                Err(broken(&format!("HTTP {status}, {word}: {why}"))
                    .remedy("log in again: gcloud auth application-default login"))
            }
        }
    }

    /// The token in the usual reply of a token server.
    fn granted(&self, json: &Value, source: Source) -> Result<Token, ProviderError> {
        let value = json["access_token"].as_str().unwrap_or_default();
        let lives = json["expires_in"].as_u64().map(Duration::from_secs);
        self.token(value, lives, source)
    }

    /// The token of the machine, if it is one in the cloud.
    fn by_metadata(&self, http: &Http) -> Result<Option<Token>, ProviderError> {
        let host = self.env.non_empty("GCE_METADATA_HOST").unwrap_or(METADATA);
        let url =
            format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
        let ask = Ask {
            method: Method::Get,
            url: &url,
            headers: &[("metadata-flavor", "Google")],
            body: None,
            doing: "ask the metadata server",
        };
        // Whoever is not in the cloud has no such server; that is no failure.
        let Ok(reply) = http.send(&ask) else { return Ok(None) };
        if reply.status != 200 {
            return Ok(None);
        }
        let json: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
        self.granted(&json, Source::Metadata).map(Some)
    }

    fn by_command(&self) -> Result<Token, ProviderError> {
        let spawn = Spawn::new("gcloud")
            .args(["auth", "print-access-token", "--quiet"])
            .env("CLOUDSDK_CORE_DISABLE_PROMPTS", "1")
            .timeout(COMMAND_PATIENCE)
            .own_group();
        let spawn = self
            .env
            .vars
            .iter()
            .fold(spawn.env_clear(), |spawn, (name, value)| spawn.env(name, value));
        let nowhere = |why: &str| {
            auth(format!(
                "no credentials: $GOOGLE_OAUTH_ACCESS_TOKEN is not set, there is no \
                 application-default file and no metadata server, and {why}"
            ))
            .remedy(LOGIN)
        };
        let Ok(output) = proc::run(&spawn) else {
            return Err(nowhere("gcloud cannot be run"));
        };
        if !output.status.success() {
            return Err(nowhere("gcloud has none either"));
        }
        self.token(output.text().trim(), Some(BORROWED), Source::Command)
    }
}

fn auth(message: String) -> ProviderError {
    ProviderError::new(Trouble::Auth, "find out who you are", message)
}

/// Fields as a browser sends them.
fn form(fields: &[(&str, &str)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", super::escaped(value))).collect();
    fields.join("&")
}

/// A statement of a service account about itself, signed with its key.
fn signed(header: &Value, claims: &Value, pem: &str) -> Result<String, &'static str> {
    let unusable = "its private key cannot be used";
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body.trim()).map_err(|_| unusable)?;
    let key = RsaKeyPair::from_pkcs8(&der).map_err(|_| unusable)?;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| unusable)?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::ManualClock;

    fn credentials(vars: &[(&str, &str)]) -> (Credentials, Http) {
        let env = Env::fixed(vars.iter().copied());
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_000)));
        let http = Http::new(&env, Arc::<ManualClock>::clone(&clock)).unwrap();
        (Credentials::new(env, clock, true), http)
    }

    #[test]
    fn a_token_from_the_environment_comes_first_and_shows_itself_to_nobody() {
        let (credentials, http) =
            credentials(&[("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.secret"), ("HOME", "/nowhere")]);
        assert_eq!(credentials.bearer(&http).unwrap().unwrap(), "Bearer ya29.secret");
        let shown = format!("{:?}", credentials.cached.lock().unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!credentials.forget(), "the environment has no other one");
        assert!(credentials.remedy().contains("$GOOGLE_OAUTH_ACCESS_TOKEN"));
    }

    #[test]
    fn what_cannot_be_a_header_is_no_token() {
        let (credentials, http) = credentials(&[("GOOGLE_OAUTH_ACCESS_TOKEN", "a\r\nb: c")]);
        let error = credentials.bearer(&http).unwrap_err();
        assert_eq!(error.trouble, Trouble::Auth);
    }

    #[test]
    fn a_credentials_file_that_cannot_serve_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("adc.json");
        for (text, why) in [
            ("{", "it is no JSON"),
            ("{}", "'type' is missing"),
            (r#"{"type": "external_account"}"#, "'external_account' are not understood"),
            (r#"{"type": "authorized_user", "client_id": "a"}"#, "'client_secret' is missing"),
            (
                r#"{"type": "service_account", "client_email": "a@b", "private_key": "-----BEGIN"}"#,
                "its private key cannot be used",
            ),
        ] {
            std::fs::File::create(&path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .unwrap();
            let name = path.to_str().unwrap();
            let (credentials, http) = credentials(&[("GOOGLE_APPLICATION_CREDENTIALS", name)]);
            let error = credentials.bearer(&http).unwrap_err();
            assert_eq!(error.trouble, Trouble::Auth);
            assert!(error.message.contains(why), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
