//! How a section of the configuration is declared and read.
//!
//! A section is a struct whose fields are rows: `field: Type = row`. A row gives a key its reader
//! (with bounds), default and help. [`section!`] turns the rows into the struct, the declarations behind
//! [`super::keys`], and the code that reads the section.

use std::marker::PhantomData;

use super::key::{Key, Preset, join};
use super::raw::Table;
use super::reader::Reader;

/// Declares a section.
///
/// `struct` also declares the type; `for` reads into an existing one. The block after `check` runs once all rows are
/// read. There each field is an `Option`: `None` if its row has a problem.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty = $row:expr,)*
        }
        $(check($table:ident) $check:block)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
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
        impl $crate::config::section::Section for $name {
            fn declare(path: &str, keys: &mut Vec<$crate::config::key::Key>) {
                use $crate::config::section::{Row as _, typed};
                $(typed::<$type, _>($row).declare(path, stringify!($field), keys);)*
            }

            fn read(table: &$crate::config::raw::Table<'_>) -> Option<Self> {
                use $crate::config::section::{Row as _, typed};
                $(let $field = typed::<$type, _>($row).read(table, stringify!($field));)*
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

/// A section, declared by [`section!`].
pub(super) trait Section: Sized {
    /// Adds the keys of the section at `path` to `keys`.
    fn declare(path: &str, keys: &mut Vec<Key>);

    /// Reads the section; `None` if a row has a problem.
    fn read(table: &Table<'_>) -> Option<Self>;
}

/// One field of a section.
pub(super) trait Row {
    /// The field's type.
    type Value;

    /// Adds the keys of the field `name` of the section at `path` to `keys`.
    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>);

    /// Reads the field; `None` if it has a problem.
    fn read(&self, table: &Table<'_>, name: &str) -> Option<Self::Value>;
}

/// Returns `row`; infers its type from the field's type `T`.
pub(super) fn typed<T, R: Row<Value = T>>(row: R) -> R {
    row
}

/// A key that always has a value.
#[derive(Debug)]
pub(super) struct Set<R> {
    reader: R,
    preset: Preset,
    why: &'static str,
}

/// An optional key.
#[derive(Debug)]
pub(super) struct Optional<R>(Set<R>);

/// A key with a default, written in TOML.
pub(super) fn default<R: Reader>(reader: R, toml: &'static str, why: &'static str) -> Set<R> {
    Set { reader, preset: Preset::Default(toml), why }
}

/// A required key with an example.
pub(super) fn required<R: Reader>(reader: R, example: &'static str, why: &'static str) -> Set<R> {
    Set { reader, preset: Preset::Required(example), why }
}

/// An optional key.
pub(super) fn optional<R: Reader>(reader: R, example: &'static str, why: &'static str) -> Optional<R> {
    Optional(Set { reader, preset: Preset::Unset(example), why })
}

impl<R: Reader> Set<R> {
    fn read_if_set(&self, table: &Table<'_>, name: &str) -> Option<Option<R::Value>> {
        match table.get(name) {
            Some(raw) => self.reader.read(raw, &table.position(name)).map(Some),
            None => Some(None),
        }
    }
}

impl<R: Reader> Row for Set<R> {
    type Value = R::Value;

    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>) {
        keys.push(Key {
            path: join(path, name),
            preset: self.preset,
            kind: self.reader.kind(),
            why: self.why,
        });
        self.reader.declare_below(&join(path, name), keys);
    }

    fn read(&self, table: &Table<'_>, name: &str) -> Option<R::Value> {
        let value = self.read_if_set(table, name)?;
        value.or_else(|| {
            table.position(name).refuse(format!("required; set it, for example to {}", self.preset.example()))
        })
    }
}

impl<R: Reader> Row for Optional<R> {
    type Value = Option<R::Value>;

    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>) {
        self.0.declare(path, name, keys);
    }

    fn read(&self, table: &Table<'_>, name: &str) -> Option<Self::Value> {
        self.0.read_if_set(table, name)
    }
}

/// An optional key that is empty if not set.
#[derive(Debug)]
pub(super) struct OrEmpty<R>(Set<R>);

/// An optional key that is empty if not set.
pub(super) fn or_empty<R: Reader>(reader: R, example: &'static str, why: &'static str) -> OrEmpty<R> {
    OrEmpty(Set { reader, preset: Preset::Unset(example), why })
}

impl<R: Reader<Value: Default>> Row for OrEmpty<R> {
    type Value = R::Value;

    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>) {
        self.0.declare(path, name, keys);
    }

    fn read(&self, table: &Table<'_>, name: &str) -> Option<Self::Value> {
        self.0.read_if_set(table, name).map(Option::unwrap_or_default)
    }
}

/// A section inside a section.
#[derive(Debug)]
pub(super) struct Inner<S>(PhantomData<S>);

/// A section inside a section.
pub(super) fn inner<S: Section>() -> Inner<S> {
    Inner(PhantomData)
}

impl<S: Section> Row for Inner<S> {
    type Value = S;

    fn declare(&self, path: &str, name: &str, keys: &mut Vec<Key>) {
        S::declare(&join(path, name), keys);
    }

    fn read(&self, table: &Table<'_>, name: &str) -> Option<S> {
        S::read(&table.inner(name))
    }
}

/// A field without a key, which starts with this value.
#[derive(Debug)]
pub(super) struct Fixed<T>(pub(super) T);

impl<T: Clone> Row for Fixed<T> {
    type Value = T;

    fn declare(&self, _: &str, _: &str, _: &mut Vec<Key>) {}

    fn read(&self, _: &Table<'_>, _: &str) -> Option<T> {
        Some(self.0.clone())
    }
}
