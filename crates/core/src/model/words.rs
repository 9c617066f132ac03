//! The words of enumerations: each value and its word are listed once.

/// Says the word of each value of an enumeration, in the order in which tables show them: `ALL` has every value, and
/// `as_str` gives its word. A value that is left out does not compile.
#[macro_export]
macro_rules! words {
    ($(#[$meaning:meta])* $type:ident { $($value:ident: $word:literal,)+ }) => {
        impl $type {
            /// Every value, in the order in which tables show them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            $(#[$meaning])*
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

pub use words;
