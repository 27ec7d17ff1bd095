//! Enums whose variants have words: label values, verdicts and states.

/// Declares an enum from its variants, each with its word.
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
/// assert_eq!(Direction::ALL.map(Direction::as_str), ["up", "down"]);
/// ```
#[macro_export]
macro_rules! worded {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            /// All variants, in order.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it.
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}
