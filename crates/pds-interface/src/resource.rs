//! Resources: the polled calls, by their place in the table.

use std::fmt;
use std::sync::LazyLock;

use super::call::Call;
use super::polled::Polled;
use super::{CALLS, Place};

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
        count
    };

    /// The resource of a polled call. In a constant, a call that is not polled does not compile.
    pub(super) const fn of(call: Place) -> Self {
        assert!((call as usize) < Self::COUNT, "the call is not polled");
        Self(call as u8)
    }

    /// All of them, in the order of their families on the page.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + Clone {
        #[expect(clippy::cast_possible_truncation, reason = "the table is shorter than 256 rows")]
        (0..const { Self::COUNT as u8 }).map(Self)
    }

    /// All of them as a TOML array of their names: the default of `poll.resources`.
    pub fn all_as_toml() -> &'static str {
        static ALL: LazyLock<String> =
            LazyLock::new(|| format!("{:?}", Resource::all().map(Resource::as_str).collect::<Vec<_>>()));
        &ALL
    }

    /// The resource of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|resource| resource.as_str() == name)
    }

    /// Its place, below [`Resource::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The row.
    pub fn call(self) -> &'static Call {
        CALLS[self.index()]
    }

    /// Its polling.
    pub fn polled(self) -> &'static Polled {
        match &self.call().polled {
            Some(polled) => polled,
            None => unreachable!("the call is not polled"),
        }
    }

    /// The resource as a label value.
    pub fn as_str(self) -> &'static str {
        self.polled().resource
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
