//! A jobset to begin with, in Cloudmesh's own format.

use std::fmt::Write as _;

/// A job of a template: the fields in which one differs from the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateJob {
    /// What it is called.
    pub name: String,
    /// Its fields by their names, in the order in which they are written.
    pub fields: Vec<(&'static str, String)>,
}

/// What a template is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The account of whoever makes it.
    pub user: String,
    /// The policy of its scheduler.
    pub policy: &'static str,
    /// Its jobs.
    pub jobs: Vec<TemplateJob>,
}

/// The text of a file with this machine as its host.
pub fn text(template: &Template) -> String {
    let mut text = format!(
        "cloudmesh:\n  default:\n    user: {}\n  jobset:\n    hosts:\n      localhost:\n        name: localhost\n        \
         ip: localhost\n        cpus: '1'\n        status: free\n        job_counter: '0'\n        \
         max_jobs_allowed: '1'\n    scheduler:\n      policy: {}\n    jobs:\n",
        scalar(&template.user),
        template.policy,
    );
    for job in &template.jobs {
        // A key and its value are one word, which is quoted where YAML would read something else.
        let name = scalar(&job.name);
        let _ = writeln!(text, "      {name}:\n        name: {name}");
        for (field, value) in &job.fields {
            let _ = writeln!(text, "        {field}: {}", scalar(value));
        }
    }
    text
}

/// A value as YAML reads it back: between quotes where it is no plain word.
fn scalar(value: &str) -> String {
    let begins_well = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        || value.starts_with("./")
        || value == ".";
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .contains(&value.to_ascii_lowercase().as_str());
    if begins_well && value.chars().all(is_plain) && !is_word {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}
