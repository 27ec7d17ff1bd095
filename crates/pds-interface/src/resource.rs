//! Resources: the polled calls, by their place in the table.

use std::fmt;
use std::sync::LazyLock;

use super::CALLS;
use super::call::Call;
use super::polled::Polled;

/// A polled call: the index of its row in [`CALLS`], where the polled rows come first. Ordered as the families are on
/// the page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u8);

impl Resource {
    /// How many there are.
    pub const COUNT: usize = {
        let mut count = 0;
        while count < CALLS.len() && CALLS[count].polled.is_some() {
            count += 1;
        }
        let mut rest = count;
        while rest < CALLS.len() {
            assert!(CALLS[rest].polled.is_none(), "the polled calls stand first in the table");
            rest += 1;
        }
        count
    };

    /// The resource of a polled call's row. For constants: a call that is not polled does not compile.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the table is shorter than 256 rows")]
    pub const fn of(call: &Call) -> Self {
        let mut index = 0;
        while !is_same(CALLS[index].id, call.id) {
            index += 1;
        }
        assert!(index < Self::COUNT, "the call is not polled");
        Self(index as u8)
    }

    /// All of them, in the order of their families on the page.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + Clone {
        #[expect(clippy::cast_possible_truncation, reason = "the table is shorter than 256 rows")]
        (0..const { Self::COUNT as u8 }).map(Self)
    }

    /// All of them as a TOML array of their names: what is polled by default.
    #[must_use]
    pub fn all_as_toml() -> &'static str {
        static ALL: LazyLock<String> = LazyLock::new(|| {
            let names: Vec<String> =
                Resource::all().map(|resource| format!("{:?}", resource.as_str())).collect();
            format!("[{}]", names.join(", "))
        });
        &ALL
    }

    /// The resource of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|resource| resource.as_str() == name)
    }

    /// Its place, below [`Resource::COUNT`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The row.
    #[must_use]
    pub fn call(self) -> &'static Call {
        CALLS[self.index()]
    }

    /// How it is polled.
    #[must_use]
    pub fn polled(self) -> &'static Polled {
        POLLED[self.index()]
    }

    /// The resource as a label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.polled().resource
    }
}

/// Whether two ids are the same, at compile time.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How each resource is polled.
static POLLED: [&Polled; Resource::COUNT] = {
    let mut rows = [polled(0); Resource::COUNT];
    let mut index = 0;
    while index < Resource::COUNT {
        rows[index] = polled(index);
        index += 1;
    }
    rows
};

#[expect(clippy::panic, reason = "evaluated at compile time only")]
const fn polled(row: usize) -> &'static Polled {
    match &CALLS[row].polled {
        Some(polled) => polled,
        None => panic!("the row is not polled"),
    }
}
