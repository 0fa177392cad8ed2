//! Reasons: why something wasn't cached, was dropped, was refused.
//!
//! Each set of them is an enum. A variant has a label, which metrics and logs show, and a sentence
//! for people. Both stand at the declaration, so they can't drift apart.

use std::fmt;

/// A set of reasons: an enum whose every variant has a label and a sentence.
pub trait Reason: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Every variant, in the order of declaration.
    const ALL: &'static [Self];
    /// The stable `snake_case` label.
    fn as_str(self) -> &'static str;
    /// What it means, in a sentence for operators.
    fn describe(self) -> &'static str;
    /// Its place in [`Reason::ALL`].
    fn ordinal(self) -> usize;
}

/// Declares enums of reasons. The sentence of a variant is its documentation, too.
///
/// ```
/// remora_reason::reasons! {
///     /// Why the lamp is dark.
///     Dark {
///         Unplugged: "unplugged", "It has no current.";
///         Broken: "broken", "The bulb is broken.";
///     }
/// }
/// assert_eq!(Dark::Broken.as_str(), "broken");
/// assert_eq!(Dark::ALL.len(), 2);
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $label:literal, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[allow(clippy::doc_markdown, reason = "the sentences are printed as plain text")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $(#[doc = $sentence] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The stable label.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $label,)+ }
            }

            /// What it means, in a sentence for operators.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => $sentence,)+ }
            }
        }

        impl $crate::Reason for $name {
            const ALL: &'static [$name] = <$name>::ALL;

            fn as_str(self) -> &'static str {
                <$name>::as_str(self)
            }

            fn describe(self) -> &'static str {
                <$name>::describe(self)
            }

            fn ordinal(self) -> usize {
                self as usize
            }
        }
    };
}
