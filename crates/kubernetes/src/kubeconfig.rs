//! The kubeconfig files of a cluster.
//!
//! They are read as plain values first, as `kubectl` does. `kube`'s own reader makes each of its types of YAML directly,
//! which is 400 kB of program.

use std::path::Path;

use kube::config::Kubeconfig;
use serde_json::Value;

use super::causes::in_words;
use super::cluster::NamespaceAt;

/// The kubeconfig files of a cluster together, as `kubectl` would put them together. `None` where none is named.
pub(super) fn kubeconfig(cluster: &NamespaceAt) -> Result<Option<Kubeconfig>, String> {
    let mut merged: Option<Kubeconfig> = None;
    let files = cluster.files();
    for path in &files {
        // Of several files those that are not there do not count.
        if files.len() > 1 && !path.exists() {
            continue;
        }
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
        let read = text
            .and_then(|text| read(&text, path))
            .map_err(|why| format!("{}: {why}", path.display()))?;
        merged = Some(match merged {
            Some(before) => before.merge(read).map_err(|e| in_words(&e))?,
            None => read,
        });
    }
    Ok(merged)
}

/// What the text of a file says. Its paths are meant from where the file lies.
fn read(text: &str, path: &Path) -> Result<Kubeconfig, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|e| e.to_string())?;
    let mut whole = Kubeconfig::default();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let one = serde_json::from_value(document).map_err(|e| e.to_string())?;
        whole = whole.merge(one).map_err(|e| in_words(&e))?;
    }
    let clusters = whole.clusters.iter_mut().filter_map(|named| named.cluster.as_mut());
    let certificates = clusters.map(|cluster| &mut cluster.certificate_authority);
    certificates.for_each(|file| from_where_it_lies(path, file));
    for user in whole.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        from_where_it_lies(path, &mut user.client_certificate);
        from_where_it_lies(path, &mut user.client_key);
        from_where_it_lies(path, &mut user.token_file);
        // A program without a slash is looked for in PATH.
        if let Some(program) = user.exec.as_mut().map(|exec| &mut exec.command)
            && program.as_ref().is_some_and(|name| name.contains('/'))
        {
            from_where_it_lies(path, program);
        }
    }
    Ok(whole)
}

fn from_where_it_lies(path: &Path, file: &mut Option<String>) {
    if let (Some(dir), Some(file)) = (path.parent(), file)
        && let Some(whole) = dir.join(&*file).to_str()
    {
        whole.clone_into(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: far
  cluster: {server: 'https://[::1]:6443', certificate-authority: pki/ca.crt}
users:
- name: a
  user: {client-certificate: /etc/a.crt, client-key: ../a.key, exec: {command: bin/login, apiVersion: v1}}
---
current-context: there
users:
- name: b
  user: {tokenFile: token, exec: {command: gcloud, apiVersion: v1}}
---
";

    fn read_text(text: &str) -> Result<Kubeconfig, String> {
        read(text, Path::new("/home/a/.kube/config"))
    }

    #[test]
    fn paths_are_meant_from_where_the_file_lies_and_the_first_document_wins() {
        let read = read_text(TWO).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("here"));
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.certificate_authority.as_deref(), Some("/home/a/.kube/pki/ca.crt"));
        let user = |at: usize| read.auth_infos[at].auth_info.as_ref().unwrap();
        assert_eq!(user(0).client_certificate.as_deref(), Some("/etc/a.crt"));
        assert_eq!(user(0).client_key.as_deref(), Some("/home/a/.kube/../a.key"));
        let program = |at: usize| user(at).exec.as_ref().unwrap().command.as_deref();
        assert_eq!(program(0), Some("/home/a/.kube/bin/login"));
        assert_eq!(
            (user(1).token_file.as_deref(), program(1)),
            (Some("/home/a/.kube/token"), Some("gcloud"))
        );
    }

    #[test]
    fn an_empty_file_says_nothing_and_a_broken_one_where_it_is_broken() {
        assert!(read_text("").unwrap().clusters.is_empty());
        let broken = read_text("clusters:\n- name: [").unwrap_err();
        assert!(broken.contains("line"), "{broken}");
        let number = "contexts: [{name: a, context: {cluster: b, user: c, namespace: 7}}]";
        let refused = read_text(number).unwrap_err();
        assert!(refused.contains("expected a string"), "{refused}");
        let other = read_text("clusters: 3").unwrap_err();
        assert!(other.contains("expected a sequence"), "{other}");
    }
}
