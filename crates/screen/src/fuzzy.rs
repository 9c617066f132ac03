//! Which of many things somebody means who types a part of a name.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Those of `pool` that match, the best first; all of them, in their order, when nothing is typed.
pub fn best<'a, T>(typed: &str, pool: &'a [T], text: impl Fn(&T) -> String) -> Vec<&'a T> {
    if typed.trim().is_empty() {
        return pool.iter().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(typed.trim(), CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut found: Vec<(u32, &T)> = Vec::new();
    for candidate in pool {
        let text = text(candidate);
        let score = pattern.score(Utf32Str::new(&text, &mut buffer), &mut matcher);
        found.extend(score.map(|score| (score, candidate)));
    }
    // Stable: equal ones keep their order.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn parts_of_a_name_find_it() {
        let pool = ["lab-tpuvm-v2-32-preemptible-2", "lab-tpuvm-v4-8-2", "local"];
        let found = |typed| best(typed, &pool, |name| (*name).to_owned());
        assert_eq!(found("v4"), [&pool[1]]);
        assert_eq!(found("v232p"), [&pool[0]]);
        assert_eq!(found("loc"), [&pool[2]]);
        assert_eq!(found("").len(), 3);
        assert!(found("v5e").is_empty());
    }
}
