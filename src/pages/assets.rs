//! Styles, scripts and icons, under names that change with their content, so that browsers may cache them forever.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::links::Links;

/// A file that pages refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asset {
    name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) content: &'static str,
}

pub(super) const STYLE: Asset = Asset {
    name: "style.css",
    content_type: "text/css; charset=utf-8",
    content: include_str!("assets/style.css"),
};
pub(super) const SCRIPT: Asset = Asset {
    name: "script.js",
    content_type: "text/javascript; charset=utf-8",
    content: include_str!("assets/script.js"),
};
/// Runs before the first paint, so that a page never flashes in the other theme.
pub(super) const THEME: Asset = Asset {
    name: "theme.js",
    content_type: "text/javascript; charset=utf-8",
    content: include_str!("assets/theme.js"),
};
pub(super) const ICON: Asset =
    Asset { name: "icon.svg", content_type: "image/svg+xml", content: include_str!("assets/icon.svg") };
/// The icon of a page that is not up to date.
pub(super) const TROUBLE: Asset =
    Asset { name: "trouble.svg", content_type: "image/svg+xml", content: include_str!("assets/trouble.svg") };

/// Where assets are, below the prefix.
pub(super) const FOLDER: &str = "/static/";

impl Asset {
    /// Its name for this content: `style-0123456789abcdef.css`.
    fn file(&self) -> String {
        let (stem, extension) = self.name.split_once('.').unwrap_or((self.name, ""));
        format!("{stem}-{}.{extension}", hash(self.content.as_bytes()))
    }

    /// Its address.
    pub(super) fn link(&self, links: &Links) -> String {
        links.to(&format!("{FOLDER}{}", self.file()))
    }

    /// The asset whose name is `file`.
    pub(super) fn named(file: &str) -> Option<Self> {
        [STYLE, SCRIPT, THEME, ICON, TROUBLE].into_iter().find(|asset| asset.file() == file)
    }
}

/// A hash of content for names and ETags; it need not withstand attackers.
pub(super) fn hash(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
