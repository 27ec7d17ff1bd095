//! Texts that are kept in files: compared, or written anew with `UPDATE_GOLDEN=1`, to be read before committing.

use std::path::Path;

/// Fails where the file at `path` does not hold `text`.
pub(crate) fn assert_golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs; UPDATE_GOLDEN=1 writes it anew\n--- kept\n{kept}\n--- now\n{text}",
        path.display()
    );
}
