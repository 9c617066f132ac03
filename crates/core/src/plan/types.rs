//! Types of accelerators as people name them: `v2`, `v234`, `v*`, `v2-32`, `v3+`, `v5e`, `v6e-16`.

/// One named set of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeExpr {
    /// Generations; empty means all.
    generations: Vec<u32>,
    /// This generation and all later ones.
    from: Option<u32>,
    /// `e`, `p`.
    variant: Option<char>,
    /// The number behind the dash.
    size: Option<u32>,
}

/// A type, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Type {
    /// `2` of `v2-32`.
    pub generation: u32,
    /// The number behind the dash.
    pub size: u32,
    /// `e`, `p`.
    pub variant: Option<char>,
}

/// Takes a type apart: `v5litepod-16` is `v5e-16` in the words of people.
pub fn parse_type(accelerator: &str) -> Option<Type> {
    let (family, size) = accelerator.strip_prefix('v')?.rsplit_once('-')?;
    let digits = family.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let variant = match family.strip_prefix(digits)? {
        "" => None,
        "litepod" | "e" => Some('e'),
        "p" => Some('p'),
        _ => return None,
    };
    Some(Type { generation: digits.parse().ok()?, size: size.parse().ok()?, variant })
}

impl Type {
    /// Whether there are machines of this size, as far as its generation is known: of one that is not, of any size.
    pub fn exists(self) -> bool {
        match (self.generation, self.variant) {
            (2 | 3, None) => self.size >= 8 && self.size.is_power_of_two(),
            (4, None) | (5, Some('p')) => self.size >= 8 && self.size.is_multiple_of(8),
            (5, Some('e')) | (6, _) => self.size.is_power_of_two() && self.size <= 256,
            _ => self.size > 0,
        }
    }
}

/// Whether a word is a type of which there are machines.
pub fn is_type(word: &str) -> bool {
    parse_type(word).is_some_and(Type::exists)
}

/// The type that stands in a name (`lab-tpuvm-v2-32-preemptible-2`), where nobody has said it better.
pub fn guess(name: &str) -> Option<String> {
    let starts = name.char_indices().filter(|(_, c)| *c == 'v').map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let word = name.get(at..)?;
        let dash = word.find('-')?;
        let size: String = word.get(dash + 1..)?.chars().take_while(char::is_ascii_digit).collect();
        let typed = format!("{}-{size}", word.get(..dash)?);
        parse_type(&typed).map(|_| typed)
    })
}

impl TypeExpr {
    /// Every type.
    pub fn any() -> Self {
        Self { generations: Vec::new(), from: None, variant: None, size: None }
    }

    /// Reads an expression; `None` if the word is none.
    pub fn parse(word: &str) -> Option<Self> {
        if word == "v*" {
            return Some(Self::any());
        }
        let rest = word.strip_prefix('v')?;
        if let Some(from) = rest.strip_suffix('+') {
            return Some(Self { from: Some(from.parse().ok()?), ..Self::any() });
        }
        if let Some(of) = parse_type(word) {
            let generations = vec![of.generation];
            return Some(Self {
                generations,
                from: None,
                variant: of.variant,
                size: Some(of.size),
            });
        }
        let digits = rest.trim_end_matches(['e', 'p']);
        let variant = match rest.strip_prefix(digits)? {
            "" => None,
            "e" => Some('e'),
            "p" => Some('p'),
            _ => return None,
        };
        let generations: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(10)).collect();
        let generations = generations.filter(|all| !all.is_empty())?;
        Some(Self { generations, from: None, variant, size: None })
    }

    /// Whether a type is meant. What cannot be taken apart is meant only by `v*`.
    pub fn includes(&self, accelerator: Option<&str>) -> bool {
        if *self == Self::any() {
            return true;
        }
        let Some(of) = accelerator.and_then(parse_type) else { return false };
        let generation = match self.from {
            Some(from) => of.generation >= from,
            None => self.generations.is_empty() || self.generations.contains(&of.generation),
        };
        generation
            && self.variant.is_none_or(|variant| of.variant == Some(variant))
            && self.size.is_none_or(|size| of.size == size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_people_mean() {
        for (word, means, not) in [
            ("v2", "v2-8 v2-512", "v3-8 v20-8"),
            ("v234", "v2-8 v3-32 v4-64", "v5p-8"),
            ("v*", "v2-8 v6e-1 odd", ""),
            ("v2-32", "v2-32", "v2-3 v2-320 v3-32"),
            ("v3+", "v3-8 v4-8 v5p-8 v6e-4", "v2-8"),
            ("v5", "v5litepod-16 v5p-8 v5e-4", "v6e-4"),
            ("v5e", "v5litepod-16 v5e-4", "v5p-8"),
            ("v5e-16", "v5litepod-16", "v5litepod-4 v5p-16"),
            ("v6e", "v6e-8", "v5e-8"),
        ] {
            let expr = TypeExpr::parse(word).unwrap();
            for accelerator in means.split_whitespace() {
                assert!(expr.includes(Some(accelerator)), "{word} means {accelerator}");
            }
            for accelerator in not.split_whitespace() {
                assert!(!expr.includes(Some(accelerator)), "{word} does not mean {accelerator}");
            }
        }
        for word in ["", "v", "v2-", "v2-32-p2", "w2", "v+", "vx", "v2-x", "2", "value"] {
            assert_eq!(TypeExpr::parse(word), None, "{word}");
        }
    }

    #[test]
    fn only_sizes_that_exist_are_types() {
        for word in ["v2-8", "v3-32", "v4-8", "v4-384", "v5p-24", "v5litepod-1", "v6e-16", "v9-3"] {
            assert!(is_type(word), "{word}");
        }
        for word in ["v2-1", "v3-9", "v3-0", "v4-9", "v5e-3", "v6e-512", "v9-0", "v3", "v3-x"] {
            assert!(!is_type(word), "{word}");
        }
    }

    #[test]
    fn names_tell_a_type_at_most() {
        assert_eq!(guess("lab-tpuvm-v2-32-preemptible-2").as_deref(), Some("v2-32"));
        assert_eq!(guess("lab-tpuvm-v6e-64-spot-1").as_deref(), Some("v6e-64"));
        assert_eq!(guess("v5litepod-16-x").as_deref(), Some("v5litepod-16"));
        assert_eq!(guess("evening"), None);
        assert_eq!(guess("über-v-8"), None);
    }
}
