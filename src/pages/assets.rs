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

const fn asset(name: &'static str, content_type: &'static str, content: &'static str) -> Asset {
    Asset { name, content_type, content }
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(super) const STYLE: Asset =
    asset("style.css", "text/css; charset=utf-8", include_str!("assets/style.css"));
pub(super) const SCRIPT: Asset = asset("script.js", JAVASCRIPT, include_str!("assets/script.js"));
/// Runs before the first paint, so that a page never flashes in the other theme.
pub(super) const THEME: Asset = asset("theme.js", JAVASCRIPT, include_str!("assets/theme.js"));
pub(super) const ICON: Asset = asset("icon.svg", SVG, include_str!("assets/icon.svg"));
/// The icon of a page that is not up to date.
pub(super) const TROUBLE: Asset = asset("trouble.svg", SVG, include_str!("assets/trouble.svg"));

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
