//! What the settings promise.

use super::*;

fn file(text: &str) -> Result<Layer, SettingsError> {
    Layer::parse(text, &SettingOrigin::File("/c/settings.json".to_owned()))
}

#[test]
fn the_later_layer_wins_and_each_value_knows_its_origin() {
    let origin = |name: &str| SettingOrigin::Flag(name.to_owned());
    let mut user = Layer::for_new_user();
    user.set("show_length", "300", &origin("-")).unwrap();
    user.set("time_zone", "cn", &origin("-")).unwrap();
    let settings =
        file(r#"{"time_zone": "Europe/Berlin", "cloud": "sim", "user": "bob"}"#).unwrap();
    let given = file(r#"{"user": "carol"}"#).unwrap();
    let mut flags = Layer::default();
    flags.set("cloud", "google", &origin("--cloud")).unwrap();
    let merged = Settings::merge(&[
        (SettingOrigin::User("alice".to_owned()), &user),
        (SettingOrigin::File("/c/settings.json".to_owned()), &settings),
        (SettingOrigin::Given("/g.json".to_owned()), &given),
        (origin("--cloud"), &flags),
    ])
    .unwrap();
    assert_eq!(merged.show_length, 300);
    assert_eq!(merged.time_zone, "Europe/Berlin");
    assert_eq!(merged.user.as_deref(), Some("carol"));
    assert_eq!(merged.cloud.as_str(), "google");
    assert_eq!(merged.origin("cloud").to_string(), "--cloud");
    assert_eq!(merged.origin("user").to_string(), "/g.json");
    assert_eq!(merged.origin("time_zone").to_string(), "/c/settings.json");
    assert_eq!(merged.origin("show_length").to_string(), "data.json: users.alice.settings");
    assert_eq!(merged.origin("log_root").to_string(), "built in");
}

#[test]
fn patience_is_a_time_as_people_write_it() {
    let said = |text: &str| file(&format!(r#"{{"patience": {text}}}"#));
    for (text, seconds) in [("\"7d\"", 604_800), ("\"12h\"", 43_200), ("\"0\"", 0), ("90", 90)] {
        let layer = said(text).unwrap();
        let merged = Settings::merge(&[(SettingOrigin::BuiltIn, &layer)]).unwrap();
        assert_eq!(merged.patience_s(), seconds, "{text}");
        let layer = file(&format!(r#"{{"keep_code": {text}}}"#)).unwrap();
        let merged = Settings::merge(&[(SettingOrigin::BuiltIn, &layer)]).unwrap();
        assert_eq!(merged.keep_code_s(), seconds, "{text}");
    }
    assert_eq!(Settings::default().patience_s(), 604_800);
    assert_eq!(Settings::default().keep_code_s(), 604_800);
    for wrong in ["\"soon\"", "-1", "null", "[]"] {
        let error = said(wrong).unwrap_err().to_string();
        assert!(error.contains("patience") && error.contains("7d, 12h or 0"), "{error}");
    }
}

#[test]
fn every_key_has_a_value_and_reads_it_back() {
    let built_in = Settings::default();
    let values = built_in.values();
    assert_eq!(values.len(), KEYS.len());
    let layer = Layer { values: values.into_iter().map(|(k, v)| (k.to_owned(), v)).collect() };
    let read = Settings::merge(&[(SettingOrigin::BuiltIn, &layer)]).unwrap();
    assert_eq!(read.values(), built_in.values());
    assert_eq!(read.origins.len(), KEYS.len());
}

#[test]
fn booleans_in_every_spelling() {
    for (text, value) in [
        ("true", true),
        ("True", true),
        ("1", true),
        ("false", false),
        ("False", false),
        ("0", false),
    ] {
        let mut layer = Layer::default();
        let origin = SettingOrigin::Flag("-".to_owned());
        layer.set("monitor_after_run", text, &origin).unwrap();
        assert_eq!(layer.to_value()["monitor_after_run"], json!(value), "{text}");
    }
    for text in ["true", "\"True\"", "1"] {
        let layer = file(&format!("{{\"monitor_dir\": {text}}}")).unwrap();
        assert!(Settings::merge(&[(SettingOrigin::BuiltIn, &layer)]).unwrap().monitor_dir);
    }
}

#[test]
fn text_becomes_what_the_key_holds() {
    let origin = SettingOrigin::Flag("set-settings".to_owned());
    let mut layer = Layer::default();
    layer.set("monitor_length", "900", &origin).unwrap();
    assert_eq!(layer.to_value()["monitor_length"], json!(900));
    layer.set("command", "python train.py --name 'two words'", &origin).unwrap();
    layer.set("keys", r#"{"quit": ["q", "Q"], "kill": "x"}"#, &origin).unwrap();
    layer.set("project", "123", &origin).unwrap();
    let merged = Settings::merge(&[(origin.clone(), &layer)]).unwrap();
    assert_eq!(merged.command.unwrap(), ["python", "train.py", "--name", "two words"]);
    assert_eq!(merged.keys[1], ("kill".to_owned(), vec!["x".to_owned()]));
    assert_eq!(merged.project.as_deref(), Some("123"));
    let before = layer.clone();
    for (key, text) in
        [("monitor_length", "long"), ("time_zone", "Mars"), ("monitor_upd_time", "0")]
    {
        assert!(layer.set(key, text, &origin).is_err(), "{key}");
    }
    assert_eq!(layer, before, "a refusal changes nothing");
}

#[test]
fn errors_name_file_and_key() {
    for (text, expected) in [
        (r#"{"monitor_lenght": 1}"#, "/c/settings.json: unknown setting 'monitor_lenght'"),
        (
            r#"{"monitor_dir": "maybe"}"#,
            "/c/settings.json: monitor_dir: expected true or false, found \"maybe\"",
        ),
        (r#"{"keys": {"quit": [1]}}"#, "/c/settings.json: keys.quit[0]: expected text, found 1"),
        ("{\"user\": }", "/c/settings.json: expected value (line 1, column 10)"),
    ] {
        assert_eq!(file(text).unwrap_err().to_string(), expected);
    }
    let unknown = file(r#"{"monitor_lenght": 1}"#).unwrap_err();
    let Problem::Unknown { nearest, .. } = unknown.problem else { panic!("{unknown}") };
    assert_eq!(nearest, Some("monitor_length"));
}

#[test]
fn a_reset_keeps_what_it_does_not_know() {
    let value = json!({"monitor_dir": false, "zz_future": 1});
    let mut layer = Layer::read_user(Json::new(&value.to_string()), &Path::Root).unwrap();
    let origin = SettingOrigin::User("alice".to_owned());
    assert!(!Settings::merge(&[(origin, &layer)]).unwrap().monitor_dir);
    layer.reset();
    assert_eq!(layer.to_value(), json!({"zz_future": 1}));
}

#[test]
fn a_provider_is_one_of_those_that_there_are() {
    let layer = file(r#"{"cloud": "heaven"}"#).unwrap();
    let origin = SettingOrigin::File("/c/settings.json".to_owned());
    let settings = Settings::merge(&[(origin, &layer)]).unwrap();
    let known = ["none", "sim", "heaven"].map(ProviderName::new);
    let error = settings.clone().with_provider_of(&known[..2]).unwrap_err();
    let text = "/c/settings.json: cloud: expected none or sim, found \"heaven\"";
    assert_eq!(error.to_string(), text);
    assert_eq!(settings.clone().with_provider_of(&known), Ok(settings));
}

#[test]
fn a_list_of_words_may_be_written_as_json_or_as_for_a_shell() {
    let set = |key: &str, text: &str| {
        let mut layer = Layer::default();
        layer.set(key, text, &SettingOrigin::Flag("-".to_owned())).unwrap();
        let value = layer.to_value()[key].clone();
        (Settings::merge(&[(SettingOrigin::BuiltIn, &layer)]).unwrap(), value)
    };
    let words = ["-F", "/p q"].map(str::to_owned).to_vec();
    for text in [r#"["-F","/p q"]"#, "-F '/p q'"] {
        assert_eq!(set("ssh_options", text).0.ssh_options.as_ref(), Some(&words), "{text}");
    }
    assert_eq!(set("ssh_options", r#"["-F","/p q"]"#).1, json!(["-F", "/p q"]), "kept as a list");
    // Where a key takes text, it is text.
    assert_eq!(set("checkpoint_pattern", "[0]").1, json!("[0]"));
}
