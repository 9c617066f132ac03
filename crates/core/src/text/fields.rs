//! Texts with places in them that are to be filled in: `--lr {{lr}}`.

/// A part of such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPiece<'a> {
    /// What stands there as it is.
    Plain(&'a str),
    /// A field that is to be filled in, by its name.
    Field(&'a str),
    /// A `{{` behind which no `}}` comes.
    Open,
}

/// The parts of a text, in order.
pub fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        if !before.is_empty() {
            all.push(TextPiece::Plain(before));
        }
        let Some((name, after)) = behind.split_once("}}") else {
            all.push(TextPiece::Open);
            return all;
        };
        all.push(TextPiece::Field(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(TextPiece::Plain(rest));
    }
    all
}

/// The text with the fields filled in that `value` knows; all else stays as it stands. What is filled in is not read
/// again.
pub fn fill<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        filled.push_str(before);
        let known = behind.split_once("}}");
        let known = known.and_then(|(name, after)| Some((value(name.trim())?, after)));
        let (inserted, after) = known.unwrap_or(("{{", behind));
        filled.push_str(inserted);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        use TextPiece::{Field, Open, Plain};
        assert_eq!(pieces("a {{b}}{{ c }}d"), [Plain("a "), Field("b"), Field("c"), Plain("d")]);
        assert_eq!(pieces("a{{b"), [Plain("a"), Open]);
        assert_eq!(pieces("a}} {b}"), [Plain("a}} {b}")]);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn only_what_is_known_is_filled_in_and_only_once() {
        let value = |name: &str| match name {
            "lr" => Some("{{seed}}"),
            "seed" => Some("7"),
            _ => None,
        };
        assert_eq!(fill("{{lr}} {{ seed }} {{x}} {{", value), "{{seed}} 7 {{x}} {{");
    }
}
