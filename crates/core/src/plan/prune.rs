//! Which checkpoints may go: decided of everything that is known, and of nothing that is not.
//!
//! **What a lineage that lives or may be resumed can still need is kept**: in each directory of its attempts, and in each
//! that its arguments name, everything. Where a directory could not be read, or an attempt is not known, nobody can
//! say what is needed: then all of that lineage stays.
//!
//! Of its own directories the two newest whole ones stay: where no name and no mark tells that something is being
//! written (`step_40.pt`), the newest may be a half one, and whoever breaks off then goes on from the one before.

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepRule {
    /// The newest whole one of each directory.
    Newest,
    /// The one with the lowest loss of each directory.
    Best,
    /// Those whose step is a multiple, and the newest.
    Every(u64),
}

impl KeepRule {
    /// Reads `newest`, `best`, or `every` with a number such as 500, 10k or 1m.
    pub fn parse(words: &[String]) -> Option<Self> {
        match words {
            [one] if one == "newest" => Some(Self::Newest),
            [one] if one == "best" => Some(Self::Best),
            [every, number] if every == "every" => {
                let number = number.to_ascii_lowercase();
                let (digits, times) = match number.strip_suffix(['k', 'm']) {
                    Some(digits) if number.ends_with('k') => (digits, 1_000),
                    Some(digits) => (digits, 1_000_000),
                    None => (number.as_str(), 1),
                };
                let number = digits.parse::<u64>().ok()?.checked_mul(times)?;
                (number > 0).then_some(Self::Every(number))
            }
            _ => None,
        }
    }
}

/// A checkpoint of a directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrunedStep {
    /// Its step.
    pub step: u64,
    /// Whether it is whole.
    pub is_complete: bool,
    /// Whether it is a checkpoint for certain: `10` and `epoch_3` may be anything.
    pub is_certain: bool,
    /// The loss when it was written, where anybody knows.
    pub loss: Option<f64>,
}

impl PrunedStep {
    /// Whether others may go because this one is there.
    fn counts(&self) -> bool {
        self.is_complete && self.is_certain
    }
}

/// A log directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneDir {
    /// Whether all of it could be read.
    pub is_known: bool,
    /// What is in it.
    pub steps: Vec<PrunedStep>,
}

/// A lineage that lives or may be resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineageNeed {
    /// The directories of its attempts, by their place in the list.
    pub dirs: Vec<usize>,
    /// Those that its arguments name.
    pub reads: Vec<usize>,
    /// Whether all its attempts are known, and where each logs.
    pub is_known: bool,
}

/// What becomes of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneFate {
    /// It goes.
    Remove,
    /// It stays, for this reason.
    Keep(&'static str),
}

impl PruneFate {
    /// Why it stays; nothing where it goes.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Keep(why) => Some(why),
            Self::Remove => None,
        }
    }
}

/// How many of the newest a run may go on from.
const MAY_GO_ON_FROM: usize = 2;

/// The steps of the newest whole ones, the newest first.
fn newest(dir: &PruneDir) -> Vec<u64> {
    let mut steps: Vec<u64> =
        dir.steps.iter().filter(|one| one.counts()).map(|one| one.step).collect();
    steps.sort_unstable_by(|a, b| b.cmp(a));
    steps.dedup();
    steps.truncate(MAY_GO_ON_FROM);
    steps
}

/// Decides about every checkpoint of every directory.
pub fn plan(dirs: &[PruneDir], needs: &[LineageNeed], keep: KeepRule) -> Vec<Vec<PruneFate>> {
    let is_read = |at: &usize| dirs.get(*at).is_some_and(|dir| dir.is_known);
    let of = |need: &LineageNeed, at: usize| need.dirs.contains(&at) || need.reads.contains(&at);
    let is_clear =
        |need: &LineageNeed| need.is_known && need.dirs.iter().chain(&need.reads).all(is_read);
    dirs.iter()
        .enumerate()
        .map(|(at, dir)| {
            let needed: Vec<&LineageNeed> = needs.iter().filter(|need| of(need, at)).collect();
            let is_unclear = needed.iter().any(|need| !is_clear(need));
            let (best, newest) = (best(dir), newest(dir));
            dir.steps
                .iter()
                .map(|one| {
                    let is_newest = one.counts() && newest.first() == Some(&one.step);
                    let is_of_newest = one.counts() && newest.contains(&one.step);
                    match () {
                        () if !dir.is_known => {
                            PruneFate::Keep("not all that is there could be read")
                        }
                        () if is_unclear => PruneFate::Keep("what its run needs is not known"),
                        () if !one.is_complete => {
                            PruneFate::Keep("it is not whole: its run may be writing it")
                        }
                        () if !one.is_certain => {
                            PruneFate::Keep("nothing in it tells that it is a checkpoint")
                        }
                        () if needed.iter().any(|need| need.reads.contains(&at)) => {
                            PruneFate::Keep("a run names its directory")
                        }
                        () if is_newest && !needed.is_empty() => {
                            PruneFate::Keep("a run may continue from it")
                        }
                        () if is_of_newest && !needed.is_empty() => PruneFate::Keep(
                            "a run continues from it if the newest one is not complete",
                        ),
                        () => by_rule(*one, is_newest, best, keep),
                    }
                })
                .collect()
        })
        .collect()
}

fn by_rule(one: PrunedStep, is_newest: bool, best: Option<u64>, keep: KeepRule) -> PruneFate {
    match keep {
        KeepRule::Newest | KeepRule::Every(_) if is_newest => PruneFate::Keep("it is the newest"),
        KeepRule::Every(every) if one.step.is_multiple_of(every) => {
            PruneFate::Keep("its step is one of those that are kept")
        }
        KeepRule::Best if best.is_none() => PruneFate::Keep("which one is best is not known"),
        KeepRule::Best if best == Some(one.step) => PruneFate::Keep("it is the best"),
        KeepRule::Newest | KeepRule::Every(_) | KeepRule::Best => PruneFate::Remove,
    }
}

/// The step with the lowest loss; `None` where that of a whole one is not known.
fn best(dir: &PruneDir) -> Option<u64> {
    let whole: Vec<&PrunedStep> = dir.steps.iter().filter(|one| one.counts()).collect();
    let losses: Option<Vec<(f64, u64)>> = whole
        .iter()
        .map(|one| Some((one.loss.filter(|loss| loss.is_finite())?, one.step)))
        .collect();
    let lowest = losses?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    lowest.map(|(_, step)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<KeepRule> {
        KeepRule::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_read() {
        assert_eq!(rule("newest"), Some(KeepRule::Newest));
        assert_eq!(rule("best"), Some(KeepRule::Best));
        assert_eq!(rule("every 10k"), Some(KeepRule::Every(10_000)));
        assert_eq!(rule("every 2M"), Some(KeepRule::Every(2_000_000)));
        for wrong in
            ["every", "every 0", "every k", "oldest", "newest 3", "every 99999999999999999999k"]
        {
            assert_eq!(rule(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_rule_keeps_what_it_says() {
        let step = |step, loss| PrunedStep { step, is_complete: true, is_certain: true, loss };
        let half = PrunedStep { is_complete: false, ..step(40, None) };
        let steps = vec![step(10, Some(0.5)), step(20, Some(0.2)), step(30, Some(0.9)), half];
        let dir = PruneDir { is_known: true, steps };
        let gone = |dir: &PruneDir, needs: &[LineageNeed], keep| {
            let fates = plan(std::slice::from_ref(dir), needs, keep).remove(0);
            let steps = dir.steps.iter().zip(fates);
            let gone = steps.filter(|(_, fate)| *fate == PruneFate::Remove);
            gone.map(|(one, _)| one.step).collect::<Vec<_>>()
        };
        let need = LineageNeed { dirs: vec![0], reads: vec![], is_known: true };
        assert_eq!(gone(&dir, &[], KeepRule::Newest), [10, 20]);
        assert_eq!(gone(&dir, &[], KeepRule::Best), [10, 30]);
        assert_eq!(gone(&dir, std::slice::from_ref(&need), KeepRule::Newest), [10]);
        assert_eq!(gone(&dir, std::slice::from_ref(&need), KeepRule::Best), [10]);
        assert_eq!(gone(&dir, &[], KeepRule::Every(20)), [10]);
        let unclear = LineageNeed { is_known: false, ..need };
        assert_eq!(gone(&dir, &[unclear], KeepRule::Newest), [0_u64; 0]);
        let unread = PruneDir { is_known: false, ..dir.clone() };
        assert_eq!(gone(&unread, &[], KeepRule::Newest), [0_u64; 0]);
        let mut other = dir.clone();
        other.steps[0].is_certain = false;
        assert_eq!(gone(&other, &[], KeepRule::Newest), [20], "it may be anything");
        let mut untold = dir;
        untold.steps[0].loss = None;
        assert_eq!(gone(&untold, &[], KeepRule::Best), [0_u64; 0]);
    }
}
