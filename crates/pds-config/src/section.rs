//! Reading of sections of the configuration, and declaration of their keys.
//!
//! A section is a struct whose fields are rows: `field: Type = row`. A row is a function that reads the field's keys from a
//! table. It gives a key its reader (with bounds), default and help. [`section!`] turns the rows into the struct and
//! the code that reads it. Reading also declares the keys and explains their values.

use config::{FileFormat, Format as _, ValueKind};

use super::key::{Key, Preset, join};
use super::raw::Table;
use super::reader::{Reader, file, token};
use pds_client::TokenSource;

/// Declares a section.
///
/// `struct` also declares the type; `for` reads into an existing one. The block after `check` runs once all rows are
/// read. There each field is an `Option`: `None` if its row has a problem.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty = $row:expr,)*
        }
        $(check($table:ident) $check:block)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $($(#[$field_meta])* $vis $field: $type,)*
        }
        section! {
            for $name { $($field: $type = $row,)* }
            $(check($table) $check)?
        }
    };
    (
        for $name:ident {
            $($field:ident: $type:ty = $row:expr,)*
        }
        $(check($table:ident) $check:block)?
    ) => {
        impl $crate::section::Section for $name {
            fn read(table: &$crate::raw::Table<'_>) -> Option<Self> {
                let ($($field,)*): ($(Option<$type>,)*) = ($($row(table, stringify!($field)),)*);
                $({
                    let $table = table;
                    $check
                })?
                Some(Self { $($field: $field?,)* })
            }
        }
    };
}
pub(super) use section;

/// A section, made of rows by [`section!`].
pub(super) trait Section: Sized {
    /// Reads the section; `None` if a row has a problem.
    fn read(table: &Table<'_>) -> Option<Self>;
}

/// A field of a section: reads the keys of a name in a table; `None` if one has a problem.
pub(super) trait Row<T>: FnOnce(&Table<'_>, &'static str) -> Option<T> {}

impl<T, R: FnOnce(&Table<'_>, &'static str) -> Option<T>> Row<T> for R {}

/// A key with a default, written in TOML.
pub(super) fn default<T: 'static>(reader: Reader<T>, toml: &'static str, help: &'static str) -> impl Row<T> {
    move |table, name| key(reader, Preset::Default(toml), help, table, name)?
}

/// A required key with an example.
pub(super) fn required<T: 'static>(
    reader: Reader<T>,
    example: &'static str,
    help: &'static str,
) -> impl Row<T> {
    move |table, name| {
        key(reader, Preset::Required(example), help, table, name)?
            .or_else(|| table.position(name).refuse(format!("required; set it, for example to {example}")))
    }
}

/// An optional key with an example.
pub(super) fn optional<T: 'static>(
    reader: Reader<T>,
    example: &'static str,
    help: &'static str,
) -> impl Row<Option<T>> {
    move |table, name| key(reader, Preset::Unset(example), help, table, name)
}

/// An optional key that is empty if not set.
pub(super) fn or_empty<T: Default + 'static>(
    reader: Reader<T>,
    example: &'static str,
    help: &'static str,
) -> impl Row<T> {
    move |table, name| key(reader, Preset::Unset(example), help, table, name).map(Option::unwrap_or_default)
}

/// Declares the key `name`, and reads and explains its value if it is set.
fn key<T: 'static>(
    reader: Reader<T>,
    preset: Preset,
    help: &'static str,
    table: &Table<'_>,
    name: &'static str,
) -> Option<Option<T>> {
    if let Some(keys) = &mut table.shared.found.borrow_mut().keys {
        keys.push(Key { path: join(&table.key, name), preset, kind: reader.kind.clone(), help });
    }
    let set = table.get(name);
    let default = match preset {
        Preset::Default(toml) if set.is_none() => {
            FileFormat::Toml.parse(None, &format!("{name} = {toml}")).ok()
        }
        _ => None,
    };
    let default = default.as_ref().and_then(|table| table.get(name));
    let Some(raw) = set.or(default) else { return Some(None) };
    let position = table.position(name);
    position.explain(raw, set.is_none(), &reader.kind, help);
    reader.read(raw, &position).map(Some)
}

/// Source of a bearer token: `token_file` (an example and its help) or `token` (its help), never both.
pub(super) fn tokens(
    (example, file_help): (&'static str, &'static str),
    inline_help: &'static str,
) -> impl Row<Option<TokenSource>> {
    const FILE: &str = "token_file";
    const INLINE: &str = "token";
    move |table, _| {
        if table.get(FILE).and(table.get(INLINE)).is_some() {
            let from = table.position(FILE).variable;
            let from = from.map(|name| format!(" (token_file is set by {name})")).unwrap_or_default();
            let message = format!("conflicts with token_file; set only one of the two{from}");
            return table.position(INLINE).refuse(message);
        }
        let path = optional(file(), example, file_help)(table, FILE);
        let token = optional(token(), "\"...\"", inline_help)(table, INLINE);
        Some(path?.map(TokenSource::File).or(token?.map(TokenSource::Inline)))
    }
}

/// A section inside a section.
pub(super) fn inner<S: Section>(table: &Table<'_>, name: &'static str) -> Option<S> {
    if table.get(name).is_some_and(|value| !matches!(value.kind, ValueKind::Table(_))) {
        let position = table.position(name);
        position.refuse::<()>(format!("must be a table; write [{}] and its keys below it", position.key));
    }
    read_strictly(&table.inner(name))
}

/// Reads a section that has no other keys than its own.
pub(super) fn read_strictly<S: Section>(table: &Table<'_>) -> Option<S> {
    let section = S::read(table);
    table.refuse_unknown();
    section
}

/// Declares the keys of the tables in the list `name`.
pub(super) fn declare_entries<S: Section>(table: &Table<'_>, name: &str) {
    if table.shared.found.borrow().keys.is_some() {
        S::read(&Table::new(format!("{}[]", join(&table.key, name)), None, table.shared));
    }
}

/// A field without a key, which starts with this value.
pub(super) fn fixed<T>(value: T) -> impl Row<T> {
    move |_, _| Some(value)
}
