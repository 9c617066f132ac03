//! Rows for other programs: one line each, the first names the columns.

use crate::cli::args::Globals;
use tpu_core::text::sheet;
use tpu_ops::Error;

/// Refuses `--csv` beside `--json`.
pub(in crate::cli) fn alone(csv: bool, global: &Globals) -> Result<(), Error> {
    if csv && global.json {
        return Err(Error::usage("--csv and --json are two answers").hint("ask for one of them"));
    }
    Ok(())
}

/// A table.
pub(in crate::cli) fn table(
    head: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<String, Error> {
    let failed = |e: &dyn std::fmt::Display| {
        Error::failed(format!("the table cannot be written: {e}")).hint("--json says the same")
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head).map_err(|e| failed(&e))?;
    for row in rows {
        let cells = row.iter().map(|cell| sheet::written(cell).into_owned());
        writer.write_record(cells).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
