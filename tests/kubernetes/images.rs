//! `tpu images` and `tpu image-details`, against a stand-in of Harbor and one of a plain registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::lab::{Lab, settings};
use crate::cli::json_schema::assert_described;
use crate::common::server::{Asked, Server};
use crate::common::tmux::write_file;

/// So many images the project has: one more than come at once.
const IMAGES: usize = 101;

/// A project `team`: its images, each with two tags, and what is said of the last one, which is on the second page.
fn harbor(asked: &Asked) -> (u16, String) {
    let root = "GET /api/v2.0/projects/team/repositories";
    let Some(path) = asked.line.strip_prefix(root) else { return (404, String::new()) };
    let account = format!("Basic {}", STANDARD.encode("robot$lab:pw"));
    if !asked.headers.contains(&account) {
        return (401, r#"{"errors":[{"code":"UNAUTHORIZED"}]}"#.to_owned());
    }
    let page = |from: usize, to: usize| -> String {
        let names = (from..to).map(|n| json!({"name": format!("team/image-{n:03}")}));
        Value::from(names.collect::<Vec<_>>()).to_string()
    };
    let body = match path {
        "?page=1&page_size=100" => page(0, 100),
        "?page=2&page_size=100" => page(100, IMAGES),
        "/image-100" => {
            json!({"name": "team/image-100", "description": "# Tools\n\nHas **CUDA**: `nvcc`.\n"})
                .to_string()
        }
        "/image-000" => json!({"name": "team/image-000"}).to_string(),
        path if path.contains("/artifacts?page=1&") => {
            json!([{"tags": [{"name": "1.0"}, {"name": "latest"}]}, {"tags": null}]).to_string()
        }
        _ => return (404, "{}".to_owned()),
    };
    (200, body)
}

fn with_harbor(server: &Server) -> Lab {
    let mut lab = Lab::bare(1);
    let said = json!({"harbor": {"url": server.url(), "project": "team", "user": "robot$lab"}});
    settings(&lab, &said.to_string());
    lab.env.set("HARBOR_PASSWORD", "pw");
    lab
}

#[test]
fn the_images_of_all_pages_are_listed_with_their_tags() {
    let server = Server::new(|asked| Some(harbor(asked)));
    let lab = with_harbor(&server);
    let list = lab.tpu("images --json").exits(0).json();
    assert_described("of-kind", &list);
    let all = list["answer"]["images"].as_array().unwrap();
    assert_eq!(all.len(), IMAGES);
    assert_eq!(all[100], json!({"name": "image-100", "tags": ["1.0", "latest"]}));
    let before = server.asked().len();
    let some = lab.tpu("images IMAGE-10").exits(0);
    assert_eq!(some.stdout, "Image Name  Tags List\nimage-100   1.0, latest\n");
    assert_eq!(server.asked().len() - before, 3, "tags only of what is wanted");
    assert!(lab.tpu("kjob images").exits(0).stdout.starts_with("Image Name"));
}

#[test]
fn the_description_is_shown_readably_and_a_tag_says_nothing() {
    let server = Server::new(|asked| Some(harbor(asked)));
    let lab = with_harbor(&server);
    for line in [
        "image-details -i image-100",
        "image-details -i image-100:3.1cuda11",
        "kjob image-details -i team/image-100",
    ] {
        assert_eq!(lab.tpu(line).exits(0).stdout, "Tools\n-----\n\nHas CUDA: nvcc.\n", "{line}");
    }
    drop(lab.tpu("image-details -i image-000").exits(0).says(&["no description"]));
    drop(lab.tpu("image-details -i nosuch").exits(3).says(&["nosuch"]));
    let told = lab.tpu("image-details -i image-100 --json").exits(0).json();
    assert!(told["answer"]["description"].as_str().unwrap().starts_with("# Tools"));
}

#[test]
fn the_password_is_a_secret_and_what_is_refused_is_said() {
    let server = Server::new(|asked| Some(harbor(asked)));
    let mut lab = with_harbor(&server);
    lab.env.set("HARBOR_PASSWORD", "wrong");
    let refused = lab.tpu("images");
    assert_eq!(refused.code, 4, "{}", refused.report());
    assert!(refused.stderr.contains("secrets set HARBOR_PASSWORD"), "{}", refused.stderr);
    lab.env.unset("HARBOR_PASSWORD");
    let none = lab.tpu("images");
    assert_eq!(none.code, 3, "{}", none.report());
    let kept = "printf pw | \"$0\" secrets set HARBOR_PASSWORD && \"$0\" images 100";
    let words = ["-c", kept, crate::common::env::TPU];
    drop(lab.env.output(&lab.env.spawn_program("sh", &words)).exits(0).says(&["image-100"]));
    for (said, code, says) in [
        (r#"{"harbor": {"url": "http://harbor.lab", "project": "team"}}"#, 2, "must be https"),
        (r#"{"harbor": {"url": "https://127.0.0.1:1", "project": "team"}}"#, 6, "does not answer"),
        ("{}", 2, "no registry is known"),
    ] {
        settings(&lab, said);
        let failed = lab.tpu("images");
        assert_eq!(failed.code, code, "{said}: {}", failed.report());
        assert!(failed.stderr.contains(says), "{said}: {}", failed.stderr);
    }
}

/// A registry of two pages; the link behind the second image leads to another server.
fn registry(asked: &Asked) -> (u16, &'static str, String) {
    match asked.line.as_str() {
        "GET /v2/_catalog?n=100" => (
            200,
            "Link: </v2/_catalog?last=alpine&n=1>; rel=\"next\"",
            json!({"repositories": ["alpine", "../admin"]}).to_string(),
        ),
        "GET /v2/_catalog?last=alpine&n=1" => {
            (200, "", json!({"repositories": ["team/train"]}).to_string())
        }
        "GET /v2/alpine/tags/list?n=100" => {
            (200, "", json!({"name": "alpine", "tags": ["3", "edge"]}).to_string())
        }
        "GET /v2/team/train/tags/list?n=100" => (
            200,
            "Link: <https://elsewhere.invalid/v2/x>; rel=\"next\"",
            json!({"name": "team/train", "tags": null}).to_string(),
        ),
        _ => (404, "", "{}".to_owned()),
    }
}

#[test]
fn any_registry_is_listed_and_nobody_else_is_asked() {
    let server = Server::with_header(|asked| Some(registry(asked)));
    let lab = Lab::bare(1);
    settings(&lab, &json!({"registry": {"url": server.url()}}).to_string());
    let listed = lab.tpu("images alp").exits(0);
    assert_eq!(listed.stdout, "Image Name  Tags List\nalpine      3, edge\n");
    assert!(server.asked().iter().all(|asked| !asked.line.contains("admin")));
    let led_away = lab.tpu("images train");
    assert_eq!(led_away.code, 4, "{}", led_away.report());
    assert!(led_away.stderr.contains("another server"), "{}", led_away.stderr);
    drop(lab.tpu("image-details -i alpine").exits(4).says(&["only Harbor"]));
}

#[test]
fn a_redirection_is_not_followed_and_an_unknown_certificate_is_not_believed() {
    let elsewhere = "Location: https://elsewhere.invalid/";
    let moved = Server::with_header(move |_| Some((302, elsewhere, String::new())));
    let lab = Lab::bare(1);
    settings(&lab, &json!({"registry": {"url": moved.url()}}).to_string());
    drop(lab.tpu("images").exits(4).says(&["not followed"]));

    // The cluster has a certificate of its own: whoever is believed is asked, and refuses who is nobody.
    let text = std::fs::read_to_string(lab.cluster.kubeconfig()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let of = &config["clusters"][0]["cluster"];
    settings(&lab, &json!({"registry": {"url": of["server"]}}).to_string());
    drop(lab.tpu("images").exits(6).says(&["does not answer", "\"ca\": FILE"]));
    let pem = STANDARD.decode(of["certificate-authority-data"].as_str().unwrap()).unwrap();
    let ca = lab.env.path("ca.pem");
    write_file(&ca, &String::from_utf8(pem).unwrap());
    settings(&lab, &json!({"registry": {"url": of["server"], "ca": ca}}).to_string());
    drop(lab.tpu("images").exits(4).says(&["does not allow it"]));
}

/// A registry whose answers are for those alone who have a token: one for each thing that is asked for.
fn with_tokens(asked: &Asked, by: &str) -> (u16, &'static str, String) {
    let account = format!("Basic {}", STANDARD.encode("lab:pw"));
    if let Some(said) = asked.line.strip_prefix("GET /token?service=registry&scope=") {
        let token = json!({"access_token": format!("t-{said}")});
        return if asked.headers.contains(&account) {
            (200, "", token.to_string())
        } else {
            (401, "", String::new())
        };
    }
    let (scope, body) = match asked.line.as_str() {
        "GET /v2/_catalog?n=100" => ("registry:catalog:*", json!({"repositories": ["a/x", "b"]})),
        "GET /v2/a/x/tags/list?n=100" => ("repository:a/x:pull,push", json!({"tags": ["1"]})),
        "GET /v2/b/tags/list?n=100" => ("repository:b:pull,push", json!({"tags": ["2"]})),
        _ => return (404, "", String::new()),
    };
    let token = form_urlencoded::byte_serialize(scope.as_bytes()).collect::<String>();
    if asked.headers.contains(&format!("Bearer t-{token}\r\n")) {
        return (200, "", body.to_string());
    }
    let wants = format!(
        "WWW-Authenticate: Bearer realm=\"{by}/token\",service=\"registry\",scope=\"{scope}\""
    );
    (401, wants.leak(), String::new())
}

/// Where somebody has reached the server that was asked.
fn own_address(asked: &Asked) -> String {
    let hosts = asked.headers.lines().filter_map(|line| line.split_once(": "));
    let host = hosts.clone().find(|(name, _)| name.eq_ignore_ascii_case("host")).unwrap().1;
    format!("http://{}", host.trim())
}

#[test]
fn a_registry_that_hands_out_tokens_is_asked_with_one() {
    let server = Server::with_header(|asked| Some(with_tokens(asked, &own_address(asked))));
    let mut lab = Lab::bare(1);
    settings(&lab, &json!({"registry": {"url": server.url(), "user": "lab"}}).to_string());
    lab.env.set("REGISTRY_PASSWORD", "pw");
    let listed = lab.tpu("images").exits(0);
    assert_eq!(listed.stdout, "Image Name  Tags List\na/x         1\nb           2\n");
    lab.env.set("REGISTRY_PASSWORD", "wrong");
    drop(lab.tpu("images").exits(4).says(&["does not allow it", "secrets set"]));
}

#[test]
fn tokens_of_another_server_are_asked_for_where_the_settings_name_it() {
    let gate = Server::with_header(|asked| Some(with_tokens(asked, "http://nobody.invalid")));
    let by = gate.url();
    let server = Server::with_header(move |asked| Some(with_tokens(asked, &by)));
    let mut lab = Lab::bare(1);
    lab.env.set("REGISTRY_PASSWORD", "pw");
    let mut said = json!({"registry": {"url": server.url(), "user": "lab"}});
    settings(&lab, &said.to_string());
    drop(lab.tpu("images").exits(4).says(&["tokens", &gate.url(), "\"auth\""]));
    assert!(gate.asked().is_empty(), "no password goes there");
    said["registry"]["auth"] = json!(gate.url());
    settings(&lab, &said.to_string());
    assert!(lab.tpu("images b").exits(0).stdout.ends_with("b           2\n"));
}
