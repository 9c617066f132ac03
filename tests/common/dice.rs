//! Chance that is the same on every machine (xorshift).

/// Dice with a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below this one.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    /// One of several.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Whether it is so, as in so many of ten.
    pub(crate) fn is(&mut self, of_ten: usize) -> bool {
        self.below(10) < of_ten
    }
}
