//! The known word nearest to a mistyped one.

/// Minimum similarity for a suggestion (Damerau-Levenshtein, 1 = equal): half of the letters.
const ALIKE: f64 = 0.5;

/// The word of `known` that is nearest to `word`, if any is near; the first of equally near ones.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let mut best = None;
    for candidate in known {
        let likeness = strsim::normalized_damerau_levenshtein(&word, &candidate.to_lowercase());
        if likeness >= ALIKE && best.is_none_or(|(_, most)| likeness > most) {
            best = Some((candidate, likeness));
        }
    }
    best.map(|(candidate, _)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        assert_eq!(nearest("intervall", ["timeout", "interval"]), Some("interval"));
        assert_eq!(nearest("polling", ["state", "poll"]), Some("poll"));
        assert_eq!(nearest("TIMEOUT", ["timeout", "interval"]), Some("timeout"));
        assert_eq!(nearest("colour", ["timeout", "interval"]), None);
    }
}
