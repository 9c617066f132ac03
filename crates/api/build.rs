//! Packs the parts of the page, as nearly every browser takes them, and the description of the API.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Where `./x page` puts what it builds.
const BUILT: &str = "../../web/dist";
/// Where `./x schema` puts the description.
const DESCRIPTION: &str = "../../docs/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    writeln!(std::io::stdout(), "cargo::rerun-if-changed={BUILT}")?;
    #[expect(clippy::disallowed_methods, reason = "cargo says there where to write")]
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    writeln!(std::io::stdout(), "cargo::rerun-if-changed={DESCRIPTION}")?;
    let mut files = vec![PathBuf::from(DESCRIPTION)];
    for part in std::fs::read_dir(BUILT)? {
        files.push(part?.path());
    }
    for file in files {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&std::fs::read(&file)?)?;
        let mut name = file.file_name().ok_or("it is a file")?.to_owned();
        name.push(".gz");
        #[expect(clippy::disallowed_methods, reason = "nobody reads it before this program ends")]
        std::fs::write(Path::new(&out).join(name), packed.finish()?)?;
    }
    Ok(())
}
