//! One request of a poll: sends it and publishes the reply's samples.

use std::sync::Arc;

use crate::store::Variant;
use pds_interface::polled::{Reading, Terms};
use pds_interface::{Arguments, Cadence, Subject, Tally, TimeRange, Window};
use pds_ledger::Owner;

use super::error::PollError;
use super::plan::Poll;

impl<'a> Poll<'a> {
    /// Sends one request and reads its reply for each of `subjects`. Returns it with the service's time.
    pub(super) async fn request(
        self,
        range: Option<TimeRange>,
        container: Option<&str>,
        subjects: &[Subject<'_>],
    ) -> Result<(Reading, Option<jiff::Timestamp>), PollError> {
        let Self { context, plan, target, turn } = self;
        let resource = target.key.resource;
        let mut arguments = Arguments::about(&target.key.owner.project, &target.key.owner.app)
            .in_container(container)
            .at_resolution(plan.config.poll.resolution);
        if let Some(range) = range {
            arguments = arguments.in_range_to(range, plan.config.accounting.range_end);
        }
        let request = resource.call().request(&arguments, &plan.config.api.query_names)?;
        let endpoint = target.endpoint;
        let Owner { project, app, .. } = &*target.key.owner;
        let terms = plan.config.terms(plan.app_of(target), range);
        let terms = Terms { project: Arc::clone(project), app: Arc::clone(app), ..terms };
        let decode = move |body: &[u8]| endpoint.decode(body, &terms);
        let (read, fetched) = plan.client.read(turn, resource, &request, decode).await?;
        // A cache may answer for settings, with a Date of the past; it is no evidence once the time is known.
        let is_evidence = range.is_some() || plan.watermark.now().is_none();
        let step = is_evidence.then(|| plan.watermark.observe(fetched.date)).flatten();
        if let (Some(step), Some(date), Some(_)) = (step, fetched.date, range) {
            return Err(PollError::Clock { date, step });
        }
        // A metrics call keeps the reply for the first window.
        if subjects.iter().any(|subject| subject.window.is_none_or(|of| of.first && of.container.is_none())) {
            let lossy = |_| String::from_utf8_lossy(&fetched.body).into_owned();
            let text = || std::str::from_utf8(&fetched.body).map_or_else(lossy, str::to_owned);
            let now = context.clock.now();
            context.store.replies().keep(&target.key, now, fetched.body.len(), text);
        }
        let mut reading = read(subjects);
        if let Some(answered) = reading.tally.as_mut().and_then(|tally| tally.range.as_mut()) {
            *answered = plan.config.accounting.range_end.covered_range(*answered);
        }
        Ok((reading, fetched.date))
    }

    /// Requests the total of `range`, and nothing else.
    pub(super) async fn tally(self, range: TimeRange) -> Result<(Tally, Option<jiff::Timestamp>), PollError> {
        let (reading, date) = self.request(Some(range), None, &[]).await?;
        Ok((reading.tally.unwrap_or_default(), date))
    }

    /// Replaces the series of each subject with those of `reading`.
    pub(super) fn show(self, reading: Reading, variant: &Variant) {
        let Self { context, plan, target, .. } = self;
        if !reading.unexpected.is_empty() {
            let (key, label) = (&target.key, reading.unexpected_label.as_deref());
            context.telemetry.unexpected(key.resource, &reading.unexpected, &key.to_string(), label);
        }
        if plan.is_replaced() {
            return;
        }
        // The reply that is kept is that of settings, or of the window shown first.
        if target.endpoint.cadence == Cadence::Settings || *variant == plan.shown() {
            context.store.replies().accept(&target.key);
        }
        if let [subject] = &*target.subjects {
            subject.cell.set_message(reading.message);
        }
        for (subject, sink) in target.subjects.iter().zip(reading.sinks) {
            subject.cell.replace(variant, sink);
        }
    }

    /// Subjects a reply describes: all of them, or for metrics calls the app if a `window` shows it.
    pub(super) fn subjects(self, window: Option<Window<'a>>) -> Vec<Subject<'a>> {
        let Self { plan, target, .. } = self;
        let is_shown = window.is_some() || target.endpoint.cadence == Cadence::Settings;
        let subjects = target.subjects.iter().filter(|_| is_shown);
        subjects.filter_map(|subject| plan.subject(subject, window)).collect()
    }
}
