//! The answers of an engine, compared with the truth.

use serde_json::Value;

use super::truth::{About, Bounds, figure, window};
use super::{Counted, MINUTE, Recording};

/// How far a rate or ratio may be off in steady traffic.
const STEADY: f64 = 0.01;
/// Rounding of floats.
const ROUNDING: f64 = 1e-6;

/// One engine over the scrapes of one interval, with the worst error of rates and ratios in steady traffic.
pub(super) struct Matrix<'a> {
    recording: &'a Recording,
    counted: &'a [Counted],
    pub(super) worst: f64,
    pub(super) judged: usize,
    pub(super) wrong: Vec<String>,
}

impl<'a> Matrix<'a> {
    pub(super) fn of(recording: &'a Recording, counted: &'a [Counted]) -> Self {
        Self { recording, counted, worst: 0.0, judged: 0, wrong: Vec::new() }
    }

    /// Compares one answer of a query with the truth.
    pub(super) fn judge(&mut self, query: &str, row: &Value) {
        let about = About::of(query);
        if about == About::Else {
            return;
        }
        let window = window(query);
        let meant = self.meant(query, row);
        for point in row["values"].as_array().unwrap() {
            let (at, value) =
                (point[0].as_f64().unwrap() as i64, point[1].as_str().unwrap().parse::<f64>().unwrap());
            let of_each =
                meant.iter().map(|counted| counted.bounds(at, window, |minutes| figure(about, minutes)));
            // A sum is that of all or not to be compared.
            let of_each: Option<Vec<Bounds>> = of_each.collect();
            let Some(of_each) = of_each.filter(|each| each.len() == 1 || each.iter().all(|one| one.within))
            else {
                if meant.len() == 1 {
                    self.wrong.push(format!("{query}: {value} at {at}, where nothing was counted"));
                }
                continue;
            };
            let sum = |part: fn(&Bounds) -> f64| of_each.iter().map(part).sum::<f64>();
            let (least, most) = (sum(|b| b.least), sum(|b| b.most));
            let (whole, wider) = (sum(|b| b.whole), sum(|b| b.wider));
            let requests = sum(|b| b.requests);
            let late = late_of(self.recording.late * sum(|b| b.busiest));
            // Buckets hold whole requests, and an increase is that of one counted range more or less.
            let slack = match about {
                About::Slow => (2.0 + 2.0 * late) / requests,
                About::Increase => f64::INFINITY,
                _ => ROUNDING * most + late / window as f64,
            };
            let told = format!(
                "{query}\n{row_of} at {at}, scraped every {} s: {value}, not {least} to {most}",
                self.recording.scrape,
                row_of = row["metric"]
            );
            if !(least - slack..=most + slack).contains(&value) {
                self.wrong.push(told);
                continue;
            }
            if at < self.recording.steady && !meant.iter().any(|counted| counted.is_new(at - window)) {
                let away = (value - whole).abs().min((value - wider).abs());
                let stretched = of_each.iter().map(|bounds| bounds.stretched(window)).sum::<f64>();
                let off = match about {
                    About::Increase => {
                        let away = away.min((value - stretched).abs());
                        (away - self.extended(&meant)).max(0.0) / whole.max(1.0)
                    }
                    About::Slow => (away - slack).max(0.0),
                    _ => away / whole.max(ROUNDING),
                };
                if off > STEADY {
                    self.wrong.push(format!("{told}: {off} off {whole}"));
                }
                self.worst = self.worst.max(off);
            }
            self.judged += 1;
        }
    }

    /// The counters that an answer of a query speaks of.
    fn meant(&self, query: &str, row: &Value) -> Vec<&'a Counted> {
        let label = |name: &str| row["metric"][name].as_str();
        let is_meant = |counted: &&Counted| {
            let here = |given: Option<&str>, of: &str| given.is_none_or(|given| given == of);
            here(label("app"), &counted.app)
                && here(label("project"), &counted.project)
                && (!query.contains(&self.recording.project) || counted.project == self.recording.project)
        };
        self.counted.iter().filter(is_meant).collect()
    }

    /// The most requests of a counted range, and of a scrape at each end, to which `increase` extends what it saw.
    fn extended(&self, meant: &[&Counted]) -> f64 {
        let most = |counted: &&Counted| counted.truth.values().map(|truth| truth.requests).max().unwrap();
        let minutes = 1.0 + 2.2 * self.recording.scrape as f64 / MINUTE as f64;
        meant.iter().map(most).sum::<u64>() as f64 * minutes
    }
}

/// How much of `mean` late requests there may be by chance.
fn late_of(mean: f64) -> f64 {
    if mean > 0.0 { mean + 5.0 * mean.sqrt() + 1.0 } else { 0.0 }
}
