//! Objects of Cloud Storage through our client, with the emulator behind it: lists of many pages, uploads and downloads that
//! are cut off and go on, copies between regions, and refusals that name the role.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use tpu_core::model::objects::{ObjectAt, ObjectFact};
use tpu_engine::provider::storage::{
    ObjectQuery, ObjectStore, RewriteState, UPLOAD_UNIT, UploadState,
};
use tpu_engine::provider::{Provider as _, Trouble};
use tpu_lab::sim::{Call, Event};

use crate::common::rest::Rest;

/// Two buckets in two regions.
fn lab() -> Rest {
    let lab = Rest::new(&[]);
    for (name, location) in [("lab-us", "US-CENTRAL1"), ("lab-eu", "EUROPE-WEST4")] {
        let (name, location) = (name.to_owned(), location.to_owned());
        lab.sim().pull(&Event::Bucket { name, location }).unwrap();
    }
    lab
}

fn store(lab: &Rest) -> &dyn ObjectStore {
    lab.google.storage().unwrap()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect()
}

/// Uploads it at once.
fn put(lab: &Rest, name: &str, bytes: &[u8]) -> ObjectFact {
    let at = ObjectAt::parse(name).unwrap();
    let session = store(lab).begin_upload(&at, crc32c::crc32c(bytes)).unwrap();
    match store(lab).upload((&session, bytes.len() as u64), 0, bytes).unwrap() {
        UploadState::Done(fact) => fact,
        UploadState::Took(more) => panic!("{more} bytes alone"),
    }
}

fn cut(lab: &Rest, bytes: u64, call: Call) {
    lab.sim().pull(&Event::CutAfter { bytes, call: Some(call), times: Some(1) }).unwrap();
}

fn fail(lab: &Rest, class: Trouble, call: Call) {
    let (call, times) = (Some(call), Some(1));
    let event = Event::Error { class, call, target: None, zone: None, times, for_s: None };
    lab.sim().pull(&event).unwrap();
}

#[test]
fn a_list_has_all_its_pages_and_directories_once() {
    let lab = lab();
    for name in ["a/1", "a/2/x", "a/2/y", "a/3/deep/z", "b"] {
        put(&lab, &format!("gs://lab-us/{name}"), b"x");
    }
    lab.sim().pull(&Event::Storage { page: Some(2), rewrite: None }).unwrap();
    let walk = |prefix: &str, by_directory: bool| {
        let (mut names, mut page, mut pages) = (Vec::new(), None, 0);
        loop {
            let query = ObjectQuery { bucket: "lab-us", prefix, by_directory, page };
            let got = store(&lab).list_objects(&query).unwrap();
            names.extend(got.objects.into_iter().map(|one| one.at.name));
            names.extend(got.directories);
            pages += 1;
            page = got.next;
            if page.is_none() {
                return (names, pages);
            }
        }
    };
    assert_eq!(walk("", false).0, ["a/1", "a/2/x", "a/2/y", "a/3/deep/z", "b"]);
    assert_eq!(walk("", false).1, 3);
    assert_eq!(walk("a/", true), (["a/1", "a/2/", "a/3/"].map(str::to_owned).to_vec(), 2));
    assert_eq!(store(&lab).buckets().unwrap(), ["lab-eu", "lab-us"]);
    let query = ObjectQuery { bucket: "lab-xx", ..ObjectQuery::default() };
    assert_eq!(store(&lab).list_objects(&query).unwrap_err().trouble, Trouble::NotFound);
}

#[test]
fn an_upload_that_is_cut_off_says_how_far_it_came_and_goes_on_there() {
    let lab = lab();
    let all = bytes(3 * usize::try_from(UPLOAD_UNIT).unwrap() + 100);
    let total = all.len() as u64;
    let at = ObjectAt::new("lab-us", "run/checkpoint_1");
    let session = store(&lab).begin_upload(&at, crc32c::crc32c(&all)).unwrap();
    assert_eq!(store(&lab).upload_state(&session, total).unwrap(), UploadState::Took(0));
    cut(&lab, UPLOAD_UNIT + 5_000, Call::Upload);
    let error = store(&lab).upload((&session, total), 0, &all).unwrap_err();
    assert_eq!(error.trouble, Trouble::Transient, "{error}");
    let UploadState::Took(there) = store(&lab).upload_state(&session, total).unwrap() else {
        panic!("it is not whole")
    };
    assert_eq!(there, UPLOAD_UNIT, "whole units are kept");
    assert_eq!(store(&lab).object(&at).unwrap_err().trouble, Trouble::NotFound, "no half object");
    let rest = &all[usize::try_from(there).unwrap()..];
    let UploadState::Done(fact) = store(&lab).upload((&session, total), there, rest).unwrap()
    else {
        panic!("it is whole")
    };
    assert_eq!((fact.size, fact.crc32c), (total, Some(crc32c::crc32c(&all))));
    let gone = store(&lab).upload_state(&session, total).unwrap_err();
    assert_eq!(gone.trouble, Trouble::NotFound, "{gone}");
    // Other bytes than those that were announced are refused by the store.
    let session = store(&lab).begin_upload(&at, 7).unwrap();
    let wrong = store(&lab).upload((&session, 3), 0, b"abc").unwrap_err();
    assert_eq!(wrong.trouble, Trouble::User, "{wrong}");
    assert_eq!(store(&lab).object(&at).unwrap(), fact);
}

#[test]
fn a_download_keeps_what_came_before_it_was_cut_off() {
    let lab = lab();
    let all = bytes(600_000);
    let fact = put(&lab, "gs://lab-us/x", &all);
    cut(&lab, 300_000, Call::Read);
    let part = store(&lab).read_object(&fact, 0, 600_000).unwrap();
    assert_eq!(part.bytes, all[..300_000]);
    assert_eq!(part.cut.unwrap().trouble, Trouble::Transient);
    let part = store(&lab).read_object(&fact, 300_000, 999_999).unwrap();
    assert!(part.cut.is_none());
    assert_eq!(part.bytes, all[300_000..]);
    // Another version is another object.
    put(&lab, "gs://lab-us/x", b"new");
    let gone = store(&lab).read_object(&fact, 0, 9).unwrap_err();
    assert_eq!(gone.trouble, Trouble::NotFound);
}

#[test]
fn a_copy_between_regions_goes_on_by_its_token_and_one_within_is_done_at_once() {
    let lab = lab();
    let all = bytes(250_000);
    let fact = put(&lab, "gs://lab-us/x", &all);
    lab.sim().pull(&Event::Storage { page: None, rewrite: Some(100_000) }).unwrap();
    let to = ObjectAt::new("lab-eu", "y");
    let (mut token, mut steps) = (None::<String>, Vec::new());
    let copy = loop {
        match store(&lab).rewrite(&fact, &to, token.as_deref()).unwrap() {
            RewriteState::Going { written, token: next } => {
                assert!(store(&lab).object(&to).is_err(), "no half object");
                steps.push(written);
                token = Some(next);
            }
            RewriteState::Done(copy) => break copy,
        }
    };
    assert_eq!(steps, [100_000, 200_000]);
    assert_eq!((copy.size, copy.crc32c), (fact.size, fact.crc32c));
    let near = ObjectAt::new("lab-us", "z");
    assert!(matches!(store(&lab).rewrite(&fact, &near, None).unwrap(), RewriteState::Done(_)));
    store(&lab).delete_object(&near, Some(1)).unwrap();
    assert!(store(&lab).object(&near).is_ok(), "another version was to go");
    store(&lab).delete_object(&near, None).unwrap();
    store(&lab).delete_object(&near, None).unwrap();
    assert!(store(&lab).object(&near).is_err());
}

#[test]
fn a_refusal_says_what_follows_from_it_and_names_the_role() {
    let lab = lab();
    put(&lab, "gs://lab-us/x", b"x");
    let list = || {
        let query = ObjectQuery { bucket: "lab-us", ..ObjectQuery::default() };
        store(&lab).list_objects(&query)
    };
    for (class, trouble) in [
        (Trouble::Quota, Trouble::Transient),
        (Trouble::Transient, Trouble::Transient),
        (Trouble::Permission, Trouble::Permission),
        (Trouble::Auth, Trouble::Auth),
    ] {
        fail(&lab, class, Call::Objects);
        assert_eq!(list().unwrap_err().trouble, trouble);
        assert!(list().is_ok());
    }
    fail(&lab, Trouble::Permission, Call::Objects);
    let error = list().unwrap_err();
    assert!(error.message.contains("storage.objects.list"), "{error}");
    assert!(error.hint().unwrap().contains("roles/storage.objectViewer"), "{error:?}");
    fail(&lab, Trouble::Permission, Call::Write);
    let error = store(&lab).begin_upload(&ObjectAt::new("lab-us", "y"), 0).unwrap_err();
    assert!(error.hint().unwrap().contains("roles/storage.objectUser"), "{error:?}");
    let statuses: Vec<Value> = lab.asked().iter().map(|one| one["status"].clone()).collect();
    assert!(statuses.contains(&Value::from(429)) && statuses.contains(&Value::from(403)));
}

#[test]
fn an_upload_that_was_begun_elsewhere_gets_neither_bytes_nor_who_we_are() {
    let lab = lab();
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = foreign.local_addr().unwrap();
    let first = std::thread::spawn(move || {
        let mut said = String::new();
        let mut caller = foreign.accept().unwrap().0;
        caller.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let _read = caller.read_to_string(&mut said);
        said
    });
    let session = format!("http://{address}/upload/storage/v1/b/lab-us/o");
    let error = store(&lab).upload((&session, 1), 0, b"w").unwrap_err();
    assert_eq!(error.trouble, Trouble::NotFound, "{error:?}");
    assert!(store(&lab).upload_state(&session, 1).is_err());
    // Whoever comes first is this test.
    TcpStream::connect(address).unwrap().write_all(b"nobody").unwrap();
    assert_eq!(first.join().unwrap(), "nobody");
}
