//! The tasks of a job array, as Slurm writes them.

/// Indexes of tasks, by `--array`'s grammar: `0-9,12%8`.
pub(super) fn written(indexes: &[u32], at_once: Option<u32>) -> String {
    let mut sorted = indexes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let range = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let text = ranges.iter().map(range).collect::<Vec<_>>().join(",");
    at_once.map_or_else(|| text.clone(), |most| format!("{text}%{most}"))
}

/// Which tasks a row of a listing is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Tasks {
    /// It is about no array.
    #[default]
    NoArray,
    /// About one.
    One(u32),
    /// About several, which have not been started: first, last and step.
    Several {
        /// The ranges.
        ranges: Vec<(u32, u32, u32)>,
        /// Whether there are more than are written.
        is_cut: bool,
    },
}

impl Tasks {
    /// Reads `N/A`, `7`, `4-9%2`, `0-8:2,10`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        if matches!(text, "" | "N/A" | "None" | "(null)") {
            return Some(Self::NoArray);
        }
        if let Ok(index) = text.parse() {
            return Some(Self::One(index));
        }
        let text = text.split_once('%').map_or(text, |(before, _)| before);
        let is_cut = text.contains("...");
        let parts =
            text.split(',').map(|part| part.trim_end_matches("...")).filter(|p| !p.is_empty());
        let range = |part: &str| {
            let (range, step) = part.split_once(':').unwrap_or((part, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let step = step.parse().ok().filter(|step| *step > 0)?;
            Some((first.parse().ok()?, last.parse().ok()?, step))
        };
        let ranges: Vec<(u32, u32, u32)> = if is_cut {
            // The last number may be one half of another.
            parts.filter_map(range).collect()
        } else {
            parts.map(range).collect::<Option<_>>()?
        };
        Some(Self::Several { ranges, is_cut })
    }

    /// Whether a task is among them for certain.
    pub(super) fn has(&self, index: u32) -> bool {
        match self {
            Self::NoArray => false,
            Self::One(one) => *one == index,
            Self::Several { ranges, .. } => ranges.iter().any(|(first, last, step)| {
                (first..=last).contains(&&index) && (index - first).is_multiple_of(*step)
            }),
        }
    }

    /// Whether a task that is in no other row is among them.
    pub(super) fn may_have(&self, index: u32) -> bool {
        self.has(index) || matches!(self, Self::Several { is_cut: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_short() {
        assert_eq!(written(&[3, 0, 1, 2, 7, 7], None), "0-3,7");
        assert_eq!(written(&(0..1000).collect::<Vec<_>>(), Some(8)), "0-999%8");
        assert_eq!(written(&[u32::MAX], None), u32::MAX.to_string());
    }

    #[test]
    fn tasks_are_read_in_every_spelling() {
        assert_eq!(Tasks::parse("N/A"), Some(Tasks::NoArray));
        assert_eq!(Tasks::parse("7"), Some(Tasks::One(7)));
        let waiting = Tasks::parse("[0-8:4,10,12-13%2]").unwrap();
        let has: Vec<u32> = (0..20).filter(|index| waiting.has(*index)).collect();
        assert_eq!(has, [0, 4, 8, 10, 12, 13]);
        assert!(!waiting.may_have(11));
        let cut = Tasks::parse("1,3,5...").unwrap();
        assert!(cut.has(3) && !cut.has(7) && cut.may_have(7));
        for odd in ["a", "1-", "1-3:0", "-"] {
            assert_eq!(Tasks::parse(odd), None, "{odd}");
        }
    }
}
