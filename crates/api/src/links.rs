//! Links that log a browser in as the account that serves: `tpu serve --open` prints one. What stands in its fragment is a
//! code and no token: it is taken once, soon, and by this server alone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use tpu_ops::Ctx;

/// A link is worth something for so long.
pub(super) const LASTS: Duration = Duration::from_secs(300);
/// Random bytes of a code.
const BYTES: usize = 32;

/// Codes that were printed and not yet taken.
#[derive(Default)]
pub(super) struct LoginLinks(Mutex<Vec<Code>>);

/// A code: its hash, so that how long a comparison takes says nothing of it, and when it is over.
struct Code {
    hash: Vec<u8>,
    until: Duration,
}

impl LoginLinks {
    /// A new one.
    pub(super) fn make(&self, ctx: &Ctx) -> String {
        let mut bytes = [0; BYTES];
        ctx.random.fill(&mut bytes);
        let code = URL_SAFE_NO_PAD.encode(bytes);
        let until = ctx.clock.monotonic() + LASTS;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.push(Code { hash: hash(&code), until });
        code
    }

    /// Whether a code is one that holds. It is none from then on.
    pub(super) fn take(&self, ctx: &Ctx, code: &str) -> bool {
        let (now, shown) = (ctx.clock.monotonic(), hash(code));
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|code| code.until > now);
        let at = codes.iter().position(|code| code.hash == shown);
        at.map(|at| codes.swap_remove(at)).is_some()
    }
}

fn hash(code: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, code.as_bytes()).as_ref().to_vec()
}
