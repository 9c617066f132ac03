//! Settings that cannot be read for a moment take no control plane away.

use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

#[test]
fn a_data_file_that_cannot_be_read_leaves_the_control_plane_that_is_open() {
    let env = TestEnv::new();
    let mut data = env.data();
    data["users"]["alice"]["settings"]["cloud"] = "sim".into();
    env.write_data(&data);
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    assert_eq!(usual(&ctx), "sim");
    // Nonsense in the file, settings that contradict themselves, and no file at all.
    for text in ["{", r#"{"users": 7}"#] {
        write_file(&env.data_path(), text);
        assert_eq!(usual(&ctx), "sim", "{text}");
    }
    std::fs::remove_file(env.data_path()).unwrap();
    assert_eq!(usual(&ctx), "sim");
    // What somebody sets holds.
    data["users"]["alice"]["settings"]["cloud"] = "none".into();
    env.write_data(&data);
    assert_eq!(usual(&ctx), "none");
}

/// The provider that is open, and what it is called.
fn usual(ctx: &tpu_ops::Ctx) -> String {
    let open = ctx.provider(ctx.places().usual()).name();
    assert_eq!(open.as_str(), ctx.usual_provider());
    open.to_string()
}
