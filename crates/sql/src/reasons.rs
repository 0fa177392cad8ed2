//! Declares enums of reasons.

/// Declares an enum of reasons with labels, sentences, and the list of all.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $label:literal, $sentence:literal;)* }) => {
        $(#[$meta])*
        #[allow(clippy::doc_markdown, reason = "the sentences are printed as plain text")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $sentence] $(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The label for logs and metrics, in `snake_case`.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $label,)* }
            }

            /// A sentence for people.
            pub fn describe(self) -> &'static str {
                match self { $($name::$variant => $sentence,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use reasons;
