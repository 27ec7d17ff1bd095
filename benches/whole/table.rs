//! The figures of a run, and the table they are printed as.

/// Rounds of one figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure(Vec<f64>);

impl Figure {
    pub(crate) fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        Self(rounds)
    }

    pub(crate) fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// `median (lowest-highest)`.
    fn text(&self, digits: usize) -> String {
        let (low, high) = (self.0[0], self.0[self.0.len() - 1]);
        let median = self.median();
        if self.0.len() == 1 {
            return format!("{median:.digits$}");
        }
        format!("{median:.digits$} ({low:.digits$}-{high:.digits$})")
    }
}

impl From<f64> for Figure {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

/// The path of the target.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// For orientation.
    None,
}

/// Prints the head of the table, as Markdown.
pub(crate) fn head() {
    println!("| what | measured | target | of |\n| --- | --- | --- | --- |");
}

/// Prints a row as soon as it is measured, so that a group that fails takes none of the others with it: what, its figure
/// with so many digits, its target, and a note (what it is made of).
pub(crate) fn row(what: &str, figure: impl Into<Figure>, digits: usize, target: Target, note: &str) {
    let figure = figure.into();
    let median = figure.median();
    let verdict = match target {
        Target::AtMost(most) if median <= most => format!("<= {most}"),
        Target::AtMost(most) => format!("<= {most} MISSED"),
        Target::AtLeast(least) if median >= least => format!(">= {least}"),
        Target::AtLeast(least) => format!(">= {least} MISSED"),
        Target::None => String::new(),
    };
    println!("| {what} | {} | {verdict} | {note} |", figure.text(digits));
}
