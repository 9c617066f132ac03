//! The macro that declares a document: its members, and where each of them comes from.

use tpu_core::model::capacity::Memory;
use tpu_core::model::ids::JobNumber;
use tpu_core::model::time::Timestamp;

use super::words::{TimePart, Word};

/// Declares structs that are written as JSON; all their members are public. `from` names the value that a struct is
/// made of. A member takes the expression behind its type. Without one it takes the field of the same name, in the
/// form that its type asks for ([`Part`]).
///
/// ```ignore
/// documents! {
///     /// A window that no record claims.
///     pub struct OrphanPart<'a> from orphan: &'a Orphan {
///         /// tmux session.
///         session: &'a str,
///         /// Its index there.
///         index: u32 = orphan.window,
///     }
/// }
/// ```
///
/// A struct may be made of several values: `from (host, now): (&'a Host, Timestamp)`. The fields are those of the
/// first.
macro_rules! documents {
    () => {};
    // Three kinds of struct: made by its users, made of a borrowed value, made of several values.
    (
        $(#[$about:meta])* pub struct $name:ident $(<$life:lifetime>)?
        {$($members:tt)*} $($rest:tt)*
    ) => {
        documents!(@struct [$(#[$about])*] [$name $(<$life>)?] {$($members)*});
        documents!($($rest)*);
    };
    (
        $(#[$about:meta])* pub struct $name:ident $(<$life:lifetime>)?
        from $of:tt: &'a $source:ty {$($members:tt)*} $($rest:tt)*
    ) => {
        documents!(@struct [$(#[$about])*] [$name $(<$life>)?] {$($members)*});
        documents!(@from [$name $(<$life>)?] $of [&'a $source] {$($members)*});
        documents!(@part [$name $(<$life>)?] $source);
        documents!($($rest)*);
    };
    (
        $(#[$about:meta])* pub struct $name:ident $(<$life:lifetime>)?
        from $of:tt: $source:ty {$($members:tt)*} $($rest:tt)*
    ) => {
        documents!(@struct [$(#[$about])*] [$name $(<$life>)?] {$($members)*});
        documents!(@from [$name $(<$life>)?] $of [$source] {$($members)*});
        documents!($($rest)*);
    };
    (@struct [$($about:tt)*] [$($name:tt)*] {
        $($(#[$meaning:meta])* $member:ident: $type:ty $(= $value:expr)?,)*
    }) => {
        $($about)*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        pub struct $($name)* {
            $($(#[$meaning])* pub $member: $type,)*
        }
    };
    (@from [$($name:tt)*] $of:tt [$source:ty] {
        $($(#[$meaning:meta])* $member:ident: $type:ty $(= $value:expr)?,)*
    }) => {
        impl<'a> From<$source> for $($name)* {
            fn from($of: $source) -> Self {
                Self { $($member: documents!(@value $of $member $($value)?)),* }
            }
        }
    };
    (@part [$($name:tt)*] $source:ty) => {
        impl<'a> $crate::document::Part<'a, $source> for $($name)* {
            fn of(value: &'a $source) -> Self {
                Self::from(value)
            }
        }
    };
    (@value $of:tt $member:ident $value:expr) => { $value };
    (@value ($of:ident, $($others:tt)*) $member:ident) => { $crate::document::part(&$of.$member) };
    (@value $of:ident $member:ident) => { $crate::document::part(&$of.$member) };
}

pub(crate) use documents;

/// A form in which a value of type `V` stands in a document: a reference, a number, a [`Word`] of a closed list, or a
/// struct of [`documents!`] that is made of it. Options and lists convert what they contain.
pub(crate) trait Part<'a, V: ?Sized>: Sized {
    /// The value in this form.
    fn of(value: &'a V) -> Self;
}

/// A value in the form that its place in a document asks for.
pub(crate) fn part<'a, V: ?Sized, P: Part<'a, V>>(value: &'a V) -> P {
    P::of(value)
}

/// Says that these types stand in documents as they are.
macro_rules! copied {
    ($($type:ty),+) => {
        $(impl Part<'_, Self> for $type {
            fn of(value: &Self) -> Self {
                *value
            }
        })+
    };
}

copied!(bool, i32, u32, u64, usize, f64, JobNumber);

impl<'a, T: ?Sized> Part<'a, T> for &'a T {
    fn of(value: &'a T) -> Self {
        value
    }
}

impl<'a> Part<'a, String> for &'a str {
    fn of(value: &'a String) -> Self {
        value
    }
}

impl<'a, T> Part<'a, Vec<T>> for &'a [T] {
    fn of(value: &'a Vec<T>) -> Self {
        value
    }
}

/// Memory is written in MiB.
impl Part<'_, Memory> for u64 {
    fn of(value: &Memory) -> Self {
        value.0
    }
}

impl Part<'_, Timestamp> for TimePart {
    fn of(value: &Timestamp) -> Self {
        Self(*value)
    }
}

impl<T: Copy> Part<'_, T> for Word<T> {
    fn of(value: &T) -> Self {
        Self(*value)
    }
}

impl<'a, V, P: Part<'a, V>> Part<'a, Option<V>> for Option<P> {
    fn of(value: &'a Option<V>) -> Self {
        value.as_ref().map(P::of)
    }
}

impl<'a, V, P: Part<'a, V>> Part<'a, [V]> for Vec<P> {
    fn of(value: &'a [V]) -> Self {
        value.iter().map(P::of).collect()
    }
}

impl<'a, V, P: Part<'a, V>> Part<'a, Vec<V>> for Vec<P> {
    fn of(value: &'a Vec<V>) -> Self {
        value.iter().map(P::of).collect()
    }
}
