//! Which tmux it is, from the one line that `tmux -V` prints. Pure.

use super::MIN_VERSION;

/// Whether a program that calls itself `text` is new enough. Development versions (`tmux master`) and
/// those that count otherwise (`tmux openbsd-7.4`) are: they are younger than any release we refuse.
pub(super) fn is_supported(text: &str) -> bool {
    release(text).is_none_or(|release| release >= MIN_VERSION)
}

/// The release: `tmux 3.3a` and `tmux next-3.4` have one, `tmux master` has none.
fn release(text: &str) -> Option<(u32, u32)> {
    let word = text.trim().strip_prefix("tmux ")?.trim();
    let word = word.strip_prefix("next-").unwrap_or(word);
    let (major, minor) = word.split_once('.')?;
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_naming_a_version() {
        for (text, supported) in [
            ("tmux 3.3a\n", true),
            ("tmux 3.2", true),
            ("tmux 3.2-rc3", true),
            ("tmux 4.0", true),
            ("tmux 10.1", true),
            ("tmux next-3.5", true),
            ("tmux master", true),
            ("tmux openbsd-7.4", true),
            ("tmux 3.1c", false),
            ("tmux 2.9a", false),
            ("tmux 1.8", false),
            ("tmux next-3.1", false),
        ] {
            assert_eq!(is_supported(text), supported, "{text}");
        }
    }
}
