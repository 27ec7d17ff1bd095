//! Texts kept in files: compared, or rewritten with `UPDATE_GOLDEN=1` and reviewed before the commit.

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
    let path = path.display();
    assert!(kept == text, "{path} differs; UPDATE_GOLDEN=1 writes it anew\n{}", difference(&kept, text));
}

/// The first difference of two texts: five lines of each.
fn difference(kept: &str, now: &str) -> String {
    let same = kept.lines().zip(now.lines()).take_while(|(kept, now)| kept == now).count();
    let lines = |sign: &str, text: &str| -> String {
        text.lines().skip(same).take(5).map(|line| format!("{sign} {line}\n")).collect()
    };
    format!("line {}\n{}{}", same + 1, lines("-", kept), lines("+", now))
}

/// The text before, between and after the markers `<!-- name: begin -->` and `<!-- name: end -->`.
pub(crate) fn between<'a>(page: &'a str, name: &str) -> (&'a str, &'a str, &'a str) {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (inside, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    (before, inside, after)
}

/// Fails where the part `name` of `file` is not what is generated, or writes it anew.
pub(crate) fn assert_current(file: &str, name: &str, generated: &str) {
    let kept = std::fs::read_to_string(file).unwrap();
    let (before, inside, after) = between(&kept, name);
    if inside == generated {
        return;
    }
    assert!(
        is_updating(),
        "the part {name} of {file} is out of date; UPDATE_GOLDEN=1 writes it anew\n{}",
        difference(inside, generated)
    );
    let kept = format!("{before}<!-- {name}: begin -->\n{generated}<!-- {name}: end -->{after}");
    std::fs::write(file, kept).unwrap();
}
