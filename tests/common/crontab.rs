//! A crontab of a test of its own, in the place of the machine's.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::env::TestEnv;
use super::tmux::{write_file, write_script};

impl TestEnv {
    /// Puts a crontab of the test's own in the place of the machine's, and no systemd beside it; its file.
    pub(crate) fn own_crontab(&mut self) -> PathBuf {
        let (bin, table) = (self.path("own-bin"), self.path("crontab"));
        std::fs::create_dir(&bin).unwrap();
        let script = format!(
            "case $1 in -l) cat '{0}' ;; -) cat >'{0}.new' && mv '{0}.new' '{0}' ;; esac",
            table.display()
        );
        write_script(&bin.join("crontab"), &script);
        write_script(&bin.join("systemctl"), "exit 1");
        let path = self.variables()[OsStr::new("PATH")].to_str().unwrap().to_owned();
        self.set("PATH", format!("{}:{path}", bin.display()));
        write_file(&table, "# mine\n0 5 * * * true\n");
        table
    }
}
