//! Texts that are kept in files: compared, or written anew with `UPDATE_GOLDEN=1`, to be read before committing.

use std::path::Path;

/// Whether files are to be written anew.
pub(crate) fn is_updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|wanted| !wanted.is_empty())
}

/// Fails where the file at `path` does not hold `text`.
pub(crate) fn assert_golden(path: &Path, text: &str) {
    if is_updating() {
        std::fs::write(path, text).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs; UPDATE_GOLDEN=1 writes it anew\n--- kept\n{kept}\n--- now\n{text}",
        path.display()
    );
}
