//! How enums of reasons are declared.

/// Makes the reasons of another crate a [`Reason`].
macro_rules! adopt {
    ($name:ty, |$reason:ident| $ordinal:expr) => {
        impl Reason for $name {
            const ALL: &'static [Self] = &<$name>::ALL;

            fn as_str(self) -> &'static str {
                <$name>::as_str(self)
            }

            fn describe(self) -> &'static str {
                <$name>::describe(self)
            }

            fn ordinal(self) -> usize {
                let $reason = self;
                $ordinal
            }
        }
    };
}

/// Declares an enum of reasons: its sentences are also its documentation.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($variant:ident: $label:literal, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $(#[doc = $sentence] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// The stable label.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// What it means, in a sentence for operators.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
        }

        adopt!($name, |reason| reason as usize);
    };
}

pub(super) use {adopt, reasons};
