//! Patterns of names: `job[0-5]`, `gpu[01-04,07].lab`, `a,b`. Ranges keep the width of the number that they begin
//! with; several brackets make a product; what comes twice is kept once, where it came first.

use std::str::Chars;

/// Nobody means more names than this.
const MOST: usize = 100_000;

/// What is wrong with a pattern, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct BadPattern {
    /// The place, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

fn wrong<T>(column: usize, what: impl Into<String>) -> Result<T, BadPattern> {
    Err(BadPattern { column: column + 1, what: what.into() })
}

/// Whether a word stands for other words than itself.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['[', ']', ','])
}

/// Whether a name is like a pattern of the shell: `*` stands for anything, `?` for one character.
pub fn is_like(name: &str, glob: &str) -> bool {
    let (mut name, mut glob) = (name.chars(), glob.chars());
    // Where to go on when the last `*` has to stand for one character more.
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let (before, wanted) = (name.clone(), glob.next());
        match (wanted, name.next()) {
            (Some('*'), _) => {
                name = before;
                star = Some((name.clone(), glob.clone()));
            }
            (None, None) => return true,
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((rest, behind)) = &mut star else { return false };
                if rest.next().is_none() {
                    return false;
                }
                (name, glob) = (rest.clone(), behind.clone());
            }
        }
    }
}

/// The names that a pattern stands for, in its order. A name without brackets and commas stands for itself.
pub fn names(pattern: &str) -> Result<Vec<String>, BadPattern> {
    let mut all: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (at, part) in parts(pattern)? {
        for name in product(part, at)? {
            if seen.insert(name.clone()) {
                all.push(name);
            }
        }
        if all.len() > MOST {
            return wrong(at, format!("more than {MOST} names"));
        }
    }
    Ok(all)
}

/// What stands between commas that are in no brackets, with its place.
fn parts(pattern: &str) -> Result<Vec<(usize, &str)>, BadPattern> {
    let mut parts = Vec::new();
    let mut inside = None;
    let mut from = 0;
    for (at, c) in pattern.char_indices() {
        match c {
            '[' if inside.is_some() => return wrong(at, "a bracket within brackets"),
            '[' => inside = Some(at),
            ']' if inside.take().is_none() => return wrong(at, "nothing to close"),
            ',' if inside.is_none() => {
                parts.push((from, pattern.get(from..at).unwrap_or_default()));
                from = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = inside {
        return wrong(at, "it is never closed");
    }
    parts.push((from, pattern.get(from..).unwrap_or_default()));
    match parts.iter().find(|(_, part)| part.is_empty()) {
        Some((at, _)) => wrong(*at, "a name is missing"),
        None => Ok(parts),
    }
}

/// All combinations of what stands in the brackets of one part.
fn product(part: &str, at: usize) -> Result<Vec<String>, BadPattern> {
    let Some((prefix, rest)) = part.split_once('[') else { return Ok(vec![part.to_owned()]) };
    let Some((inner, suffix)) = rest.split_once(']') else {
        return wrong(at + prefix.len(), "it is never closed");
    };
    let inner_at = at + prefix.len() + 1;
    let numbers = numbers(inner, inner_at)?;
    let suffixes = product(suffix, inner_at + inner.len() + 1)?;
    if numbers.len().saturating_mul(suffixes.len()) > MOST {
        return wrong(inner_at, format!("more than {MOST} names"));
    }
    let with = |number: &String| {
        let begin = format!("{prefix}{number}");
        suffixes.iter().map(|suffix| format!("{begin}{suffix}")).collect::<Vec<_>>()
    };
    Ok(numbers.iter().flat_map(with).collect())
}

/// `0-3,07`, each as it is to be written.
fn numbers(list: &str, at: usize) -> Result<Vec<String>, BadPattern> {
    let mut all = Vec::new();
    let mut here = at;
    for item in list.split(',') {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (true, true) = (is_number(from), is_number(to)) else {
            return wrong(here, format!("'{item}' is no number and no range such as 0-3"));
        };
        let (Ok(first), Ok(last)) = (from.parse::<u64>(), to.parse::<u64>()) else {
            return wrong(here, format!("'{item}' is too large"));
        };
        if first > last {
            return wrong(here, format!("{first} comes after {last}"));
        }
        if last - first >= MOST as u64 {
            return wrong(here, format!("more than {MOST} names"));
        }
        let width = from.len();
        all.extend((first..=last).map(|number| format!("{number:0width$}")));
        here += item.len() + 1;
    }
    Ok(all)
}

/// Why an option has no value for each of several names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValues {
    /// What was said is no pattern.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    /// There are neither one value nor as many as names.
    #[error("{values} values for {names} names")]
    Count {
        /// How many values there are.
        values: usize,
        /// For how many names.
        names: usize,
    },
}

/// The values of an option for so many names: one value is everybody's, as many as names are one for each, in their
/// order. Values are written as names are: `out[0-1]` and `a,b` are two. A value that comes twice is not kept once, as a
/// name is: `x,x` gives two names the same value.
pub fn values(names: usize, said: &str) -> Result<Vec<String>, BadValues> {
    let mut values = Vec::new();
    for (at, part) in parts(said)? {
        values.extend(product(part, at)?);
        if values.len() > MOST {
            return Err(
                BadPattern { column: at + 1, what: format!("more than {MOST} values") }.into()
            );
        }
    }
    match values.as_slice() {
        [one] => Ok(vec![one.clone(); names]),
        _ if values.len() == names => Ok(values),
        _ => Err(BadValues::Count { values: values.len(), names }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_like_a_pattern_of_the_shell() {
        for (name, glob, is) in [
            ("v4-8", "v4-*", true),
            ("v4-", "v4-*", true),
            ("my-v4-8", "v4-*", false),
            ("my-v4-8", "*v4-?", true),
            ("v4-16", "v4-?", false),
            ("aXbXc", "a*X*c", true),
            ("aXb", "a*X*c", false),
            ("a.b", "a?b", true),
            ("axb", "a.b", false),
            ("", "*", true),
            ("", "?", false),
            ("größe", "gr?ße", true),
        ] {
            assert_eq!(is_like(name, glob), is, "{name} {glob}");
        }
    }

    #[test]
    fn a_value_is_everybodys_or_each_name_has_its_own() {
        let all = |count, said| values(count, said).map(|all| all.join(" "));
        for (count, said, expected) in [
            (3, "ls", "ls ls ls"),
            (2, "123,345", "123 345"),
            (2, "out[0-1]", "out0 out1"),
            (2, "x,x", "x x"),
            (3, "gpu1,gpu1,gpu[2]", "gpu1 gpu1 gpu2"),
            (1, "a", "a"),
            (1, "a[7]", "a7"),
        ] {
            assert_eq!(all(count, said).unwrap(), expected, "{said} for {count}");
        }
        for (count, said, many) in [(2, "a,b,c", 3), (1, "a,b", 2), (3, "a[0-1]", 2), (3, "a,a", 2)]
        {
            assert_eq!(values(count, said), Err(BadValues::Count { values: many, names: count }));
        }
        for (said, column) in [("a[1-", 2), ("a,,b", 3), ("", 1), ("a[1-60000],b[1-60000]", 12)] {
            let Err(BadValues::Pattern(bad)) = values(2, said) else { panic!("{said}") };
            assert_eq!(bad.column, column, "{said}");
        }
    }

    /// What python-hostlist makes of them, from which people know these patterns.
    #[test]
    fn a_pattern_stands_for_its_names_in_order_and_each_once() {
        let all = |pattern| names(pattern).unwrap().join(" ");
        for (pattern, expected) in [
            ("llama", "llama"),
            ("job[0-5]", "job0 job1 job2 job3 job4 job5"),
            ("z[0-1]", "z0 z1"),
            ("a,b", "a b"),
            ("123,345", "123 345"),
            ("job[01-04]", "job01 job02 job03 job04"),
            ("job[08-11]", "job08 job09 job10 job11"),
            ("job[1-3,7,9-10]", "job1 job2 job3 job7 job9 job10"),
            ("a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4"),
            ("n[0-1],n[1-2]", "n0 n1 n2"),
            ("job[1,1,2]", "job1 job2"),
            ("job[1-3]-x", "job1-x job2-x job3-x"),
            ("[1-3]", "1 2 3"),
            ("gpu[08-10].lab", "gpu08.lab gpu09.lab gpu10.lab"),
            ("z,a[1,1],z", "z a1"),
        ] {
            assert_eq!(all(pattern), expected, "{pattern}");
        }
        assert_eq!(all("n[18446744073709551614-18446744073709551615]").len(), 43);
        assert_eq!(names("a[1-100000]").unwrap().len(), MOST);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_column() {
        for (pattern, column, what) in [
            ("job[5-3]", 5, "5 comes after 3"),
            ("job[]", 5, "'' is no number and no range such as 0-3"),
            ("job[1-", 4, "it is never closed"),
            ("x[a-c]", 3, "'a-c' is no number and no range such as 0-3"),
            ("job[1- 3]", 5, "'1- 3' is no number and no range such as 0-3"),
            ("a[1-100001]", 3, "more than 100000 names"),
            ("a[0-999]b[0-999]", 3, "more than 100000 names"),
            ("a[0-99999999]", 3, "more than 100000 names"),
            ("", 1, "a name is missing"),
            ("a,,b", 3, "a name is missing"),
            ("a]", 2, "nothing to close"),
            ("a[[1]]", 3, "a bracket within brackets"),
            ("a[1,x]", 5, "'x' is no number and no range such as 0-3"),
            ("a[1-99999999999999999999]", 3, "'1-99999999999999999999' is too large"),
        ] {
            let said = names(pattern).unwrap_err();
            assert_eq!((said.column, said.what.as_str()), (column, what), "{pattern}");
        }
        let halves = "a[1-60000],b[1-60000]";
        assert_eq!(names(halves).unwrap_err().column, 12, "together too many");
    }
}
