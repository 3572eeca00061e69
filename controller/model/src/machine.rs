//! What the state machines of Jig share: words with a stable text form, and the forms in which a
//! table of transitions is printed.

/// Names the forms in which a table of transitions can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderFormat {
    /// A Mermaid state diagram.
    Mermaid,
    /// One line per transition.
    Csv,
    /// One object with states, events and transitions.
    Json,
}

/// Says that a text is not one of a machine's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {noun}")]
pub struct UnknownName {
    /// What the text should have named.
    pub noun: &'static str,
    /// The text.
    pub text: String,
}

/// Declares an enumeration whose variants have a stable text form, in which records, tables and
/// scripts hold them. The words are checked by nothing but the compiler's rule on equal patterns.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $noun:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Lists all of them, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stable text form.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::machine::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::machine::UnknownName { noun: $noun, text: text.to_owned() }),
                }
            }
        }
    };
}
