//! Packs the parts of the page, as nearly every browser takes them.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Where `./x page` puts what it builds.
const BUILT: &str = "../../web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    writeln!(std::io::stdout(), "cargo::rerun-if-changed={BUILT}")?;
    #[expect(clippy::disallowed_methods, reason = "cargo says there where to write")]
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    for part in std::fs::read_dir(BUILT)? {
        let part = part?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&std::fs::read(part.path())?)?;
        let mut name = part.file_name();
        name.push(".gz");
        #[expect(clippy::disallowed_methods, reason = "nobody reads it before this program ends")]
        std::fs::write(Path::new(&out).join(name), packed.finish()?)?;
    }
    Ok(())
}
