//! Findings of checks, each with its remedy, and how they are printed.

use std::cmp::Reverse;

use serde::Serialize;

use crate::console::{Console, STRONG, style_of};
use crate::error::{Result, ToolError};
use crate::options::OutputFormat;
use crate::output::{self, Table, capitalized};
use pds_core::printable::plain;
use pds_core::units;
use pds_diagnosis::{Cause, Reason, Verdict};

/// The most subjects that a finding names.
const MAX_NAMED: usize = 5;

pds_core::worded! {
    /// The severity of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// Correct.
        Ok = "ok",
        /// Information only.
        Note = "note",
        /// Works, but badly or not for long.
        Warning = "warning",
        /// Does not work.
        Problem = "problem",
    }
}

/// A line of a configuration: section, key and value as TOML.
pub type Line = (&'static str, &'static str, String);

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[must_use]
pub struct Finding {
    /// The check; empty until it is reported.
    pub check: &'static str,
    /// Its severity.
    #[serde(rename = "state")]
    pub severity: Severity,
    /// The result.
    pub text: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// How long it took, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Configuration lines that correct it.
    #[serde(skip)]
    pub lines: Vec<Line>,
    /// The code of its cause.
    #[serde(skip)]
    pub cause: Option<String>,
}

impl Finding {
    fn new(severity: Severity, text: impl Into<String>, remedy: Option<String>) -> Self {
        Self { check: "", severity, text: text.into(), remedy, seconds: None, lines: Vec::new(), cause: None }
    }

    /// A success.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(Severity::Ok, text, None)
    }

    /// A note.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Severity::Note, text, None)
    }

    /// A warning.
    pub fn warning(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text, Some(remedy.into()))
    }

    /// A problem.
    pub fn problem(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Problem, text, Some(remedy.into()))
    }

    /// A finding with the severity of `cause`.
    pub fn of(cause: &Cause, text: String, remedy: String) -> Self {
        Self { cause: Some(cause.code.to_owned()), ..Self::new(cause.verdict.into(), text, Some(remedy)) }
    }

    /// The same, corrected by a line of the configuration: section, key and value as TOML.
    pub fn with(mut self, section: &'static str, key: &'static str, value: impl Into<String>) -> Self {
        self.lines.push((section, key, value.into()));
        self
    }
}

impl From<Verdict> for Severity {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Problem => Self::Problem,
            Verdict::Warning => Self::Warning,
            Verdict::Ok | Verdict::Waiting => Self::Note,
        }
    }
}

/// A reason of an exporter's verdict.
impl From<&Reason> for Finding {
    fn from(Reason { code, verdict, text, detail, remedy, .. }: &Reason) -> Self {
        let suffix = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let remedy = Some(remedy.to_string()).filter(|remedy| !remedy.is_empty());
        let finding = Self::new((*verdict).into(), format!("{text}{suffix}"), remedy);
        Self { cause: Some(code.to_string()), ..finding }
    }
}

/// All findings, in the order of the checks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Adds the findings of `other`.
    pub fn append(&mut self, other: Self) {
        self.findings.extend(other.findings);
    }

    /// Adds the findings of a check, each once.
    pub fn add(&mut self, check: &'static str, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            let finding = Finding { check, ..finding };
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }

    /// Whether another check has found the cause of `finding`.
    pub fn explains(&self, finding: &Finding) -> bool {
        finding.cause.is_some() && self.findings.iter().any(|known| known.cause == finding.cause)
    }

    /// The configuration lines that correct the findings.
    pub fn lines(&self) -> Vec<Line> {
        self.findings.iter().flat_map(|finding| finding.lines.clone()).collect()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Warnings and problems that no line corrects.
    pub fn left(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.severity >= Severity::Warning && finding.lines.is_empty())
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The last line: the number of problems and warnings.
    fn summary(&self) -> String {
        let counts = [Severity::Problem, Severity::Warning].map(|it| (it.as_str(), self.count(it)));
        let wrong = counts.into_iter().filter(|(_, count)| *count > 0);
        let wrong = wrong.map(|(word, count)| units::plural(count, word, &format!("{word}s")));
        let wrong = wrong.collect::<Vec<_>>().join(", ");
        if wrong.is_empty() { "no problems".to_owned() } else { wrong }
    }

    /// Prints all findings.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn print(&self, console: &mut Console, format: OutputFormat) -> Result<()> {
        match format {
            OutputFormat::Json => output::print_json(console, &self.json())?,
            OutputFormat::Csv => output::print_csv(console, &self.table())?,
            OutputFormat::Table | OutputFormat::Wide => {
                self.print_findings(console, "")?;
                // The error message counts the problems instead.
                if self.result().is_ok() {
                    console.print(&format!("\n{}", self.summary()))?;
                }
            }
        }
        Ok(console.out.flush()?)
    }

    /// Prints the verdict, then problems, warnings, and successful checks: their only success, or the number of
    /// successes, and notes. The format `wide` has all findings.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn print_verdict_first(&self, console: &mut Console, format: OutputFormat) -> Result<()> {
        if !format.is_for_people() {
            return self.print(console, format);
        }
        console.print(&console.styled(STRONG, &capitalized(&self.summary())))?;
        let (mut wrong, well): (Vec<_>, Vec<_>) =
            self.findings.iter().cloned().partition(|finding| finding.severity >= Severity::Warning);
        wrong.sort_by_key(|finding| Reverse(finding.severity));
        let well = match format {
            OutputFormat::Wide => well,
            _ => grouped(well.into_iter().map(|finding| (finding.check, finding)))
                .into_iter()
                .flat_map(folded)
                .collect(),
        };
        // The first finding explains the verdict, and follows it.
        let first = wrong.first().map_or("", |finding| finding.check);
        Self { findings: [wrong, well].concat() }.print_findings(console, first)
    }

    /// The findings for programs.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "problems": self.count(Severity::Problem),
            "warnings": self.count(Severity::Warning),
            "findings": self.findings,
        })
    }

    fn table(&self) -> Table {
        let rows = self.findings.iter().map(|Finding { check, severity, text, remedy, seconds, .. }| {
            let seconds = seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
            let remedy = remedy.as_deref().unwrap_or_default();
            [check, severity.as_str(), text, remedy, &seconds].map(str::to_owned).to_vec()
        });
        Table::of_texts(["CHECK", "STATE", "FINDING", "REMEDY", "SECONDS"], rows, "")
    }

    /// Prints the findings below the names of their checks, except `above` the first finding.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn print_findings(&self, console: &mut Console, above: &'static str) -> Result<()> {
        // The severity and the spaces around it.
        const INDENT: usize = 11;
        let width = console.width.saturating_sub(INDENT).max(40);
        let mut check = above;
        for finding in &self.findings {
            if finding.check != check {
                check = finding.check;
                console.print(&console.styled(STRONG, &capitalized(check)))?;
            }
            let mut text = finding.text.replace('\n', " ");
            if let Some(seconds) = finding.seconds {
                text += &format!(", {}", units::seconds(seconds));
            }
            let text = plain(&text);
            let severity = finding.severity.as_str();
            let severity = console.styled(style_of(severity), &format!("{severity:<7}"));
            let mut head = format!("  {severity}");
            for line in wrapped(&text, width) {
                console.print(&format!("{head}  {line}"))?;
                head = " ".repeat(9);
            }
            let mut arrow = "-> ";
            for line in finding.remedy.iter().flat_map(|remedy| wrapped(&plain(remedy), width - 3)) {
                console.print(&format!("{}{arrow}{line}", " ".repeat(INDENT)))?;
                arrow = "   ";
            }
        }
        Ok(console.out.flush()?)
    }

    /// Succeeds if there is no problem and no warning.
    ///
    /// # Errors
    /// If there is one.
    pub fn result(&self) -> Result<()> {
        if self.findings.iter().all(|finding| finding.severity < Severity::Warning) {
            return Ok(());
        }
        Err(ToolError::failed(self.summary()))
    }
}

/// The good findings of one check: the only success, or the number of successes; then notes.
fn folded((check, found): (&'static str, Vec<Finding>)) -> Vec<Finding> {
    let (mut well, notes): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.severity == Severity::Ok);
    if well.len() > 1 {
        let count = units::count(well.len());
        well = vec![Finding { check, ..Finding::ok(format!("all {count} are ok (-o wide)")) }];
    }
    [well, notes].concat()
}

/// The first few of `subjects` by name, the rest counted.
pub fn first_few(subjects: &[String]) -> String {
    let (named, rest) = subjects.split_at(subjects.len().min(MAX_NAMED));
    let named = named.join(", ");
    if rest.is_empty() { named } else { format!("{named} and {} more", units::count(rest.len())) }
}

/// The values of each key, with keys in the order of their first occurrence.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `text` in lines of at most `width` characters, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use pds_diagnosis::model::State;

    use super::*;

    #[test]
    fn a_word_is_the_same_in_json_and_in_text() {
        assert_eq!(serde_json::to_value(Severity::ALL).unwrap(), serde_json::json!(Severity::WORDS));
        assert_eq!(serde_json::to_value(Verdict::ALL).unwrap(), serde_json::json!(Verdict::WORDS));
        assert_eq!(serde_json::to_value(State::ALL).unwrap(), serde_json::json!(State::WORDS));
    }

    #[test]
    fn lines_break_between_words_and_a_long_word_keeps_its_line() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a https://api.example.com/ b", 10), ["a", "https://api.example.com/", "b"]);
    }

    #[test]
    fn notes_do_not_count_as_successes() {
        let texts = |found: Vec<Finding>| {
            folded(("calls", found)).into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        let [one, two] = ["one", "two"].map(Finding::ok);
        let note = Finding::note("few calls are made");
        assert_eq!(texts(vec![one.clone(), note.clone()]), ["one", "few calls are made"]);
        assert_eq!(texts(vec![note, one, two]), ["all 2 are ok (-o wide)", "few calls are made"]);
    }

    #[test]
    fn warnings_and_problems_fail_notes_do_not() {
        let mut report = Report::default();
        report.add("clock", [Finding::ok("it agrees")]);
        report.add("daemon", [Finding::note("none runs")]);
        assert!(report.result().is_ok());
        report.add("token", [Finding::warning("it expires", "Renew it.")]);
        report.add("token", [Finding::warning("it expires", "Renew it.")]);
        assert_eq!(report.result().map_err(|error| error.to_string()), Err("1 warning".to_owned()), "once");
    }
}
