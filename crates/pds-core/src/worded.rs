//! Enums whose variants have words: label values, verdicts and states.

/// Declares an enum with `ALL`, `WORDS` and `as_str`, in the order of its variants. The words of serde and clap are
/// separate.
///
/// ```
/// pds_core::worded! {
///     /// A direction.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Direction {
///         /// Towards larger numbers.
///         Up = "up",
///         /// Towards smaller numbers.
///         Down = "down",
///     }
/// }
/// assert_eq!(Direction::WORDS, ["up", "down"]);
/// assert_eq!(Direction::ALL.map(Direction::as_str), Direction::WORDS);
/// ```
#[macro_export]
macro_rules! worded {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            /// All variants, in order.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Their words.
            $vis const WORDS: [&str; [$($word),+].len()] = [$($word),+];

            /// The word for it.
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}
