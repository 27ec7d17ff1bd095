//! The source of the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::mem;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Duration, Instant};

use crate::poll::{Context, Plan};
use crate::store::Filter;
use pds_config::{Explained, Web};
use pds_exposition::Format;

use super::detail::{self, Detail};
use super::document::Status;
use super::incidents::{LOOK, Observed};
use super::view::View;
use crate::store::What;
use pds_diagnosis::{Reason, Verdict};

/// How long a reading of the model is kept, however many readers there are.
const FRESH: Duration = Duration::from_secs(1);

/// The source of the model. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Context,
    started: Timestamp,
    in_force: RwLock<Arc<InForce>>,
    refused: Mutex<Option<Refused>>,
    observed: Arc<Observed>,
    read: Mutex<Option<Reading>>,
}

/// The model as it was read.
#[derive(Debug)]
struct Reading {
    /// When the reading ended: a hundred thousand apps take a while.
    at: Instant,
    in_force: Arc<InForce>,
    status: Arc<Status>,
}

/// A reload that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When it was refused.
    pub at: Timestamp,
    /// All problems, as text.
    pub problems: String,
}

#[derive(Debug)]
struct InForce {
    plan: Arc<Plan>,
    explained: Arc<[Explained]>,
}

impl Source {
    /// The model of what `plan` polls, started now; `explained` is the configuration behind it
    /// ([`pds_config::Loaded::explained`]).
    pub fn new(context: Context, plan: Arc<Plan>, explained: Vec<Explained>) -> Self {
        let started = context.clock.now();
        let in_force = RwLock::new(Arc::new(InForce { plan, explained: explained.into() }));
        let observed = Arc::new(Observed::default());
        observed.note(What::Restart, started);
        let (refused, read) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { context, started, in_force, refused, observed, read }))
    }

    /// Switches to another plan, as the poller does at a reload.
    pub fn set_plan(&self, plan: Arc<Plan>, explained: Vec<Explained>) {
        let in_force = Arc::new(InForce { plan, explained: explained.into() });
        *self.0.in_force.write() = in_force;
    }

    /// Records a reload, and why it was refused, if it was.
    pub fn reloaded(&self, refused: Option<Refused>) {
        match &refused {
            Some(refused) => self.0.observed.note(What::ReloadRefused, refused.at),
            None => self.0.observed.note(What::Reload, self.now()),
        }
        *self.0.refused.lock() = refused;
    }

    /// The configured links to other programs.
    pub(crate) fn web(&self) -> Web {
        self.in_force().plan.config.web.clone()
    }

    /// The model, read at most a second ago. Reads thousands of cells, so it must not run on an I/O thread.
    pub fn status(&self) -> Arc<Status> {
        // Held while the model is read, so that concurrent readers share one reading.
        let mut read = self.0.read.lock();
        let in_force = self.in_force();
        if let Some(last) = &*read
            && Arc::ptr_eq(&last.in_force, &in_force)
            && Instant::now() < last.at + FRESH
        {
            return Arc::clone(&last.status);
        }
        let view = Arc::new(self.view());
        let status = Arc::new(view.status(self.0.started).0);
        *read = Some(Reading { at: Instant::now(), in_force, status: Arc::clone(&status) });
        status
    }

    /// Records incidents every half minute, and logs the reasons of the verdict: after the first round of polls, or a
    /// minute, as the first failures alone may have another cause.
    pub async fn watch(self) {
        let mut log = ReasonLog::default();
        let mut pause = Duration::from_secs(1);
        loop {
            tokio::time::sleep(pause).await;
            let is_certain = pause == LOOK || self.0.context.store.is_complete();
            pause = LOOK.min(pause * 2);
            let source = self.clone();
            // After a panic, the next check tries again.
            match tokio::task::spawn_blocking(move || source.look()).await {
                Ok(reasons) if is_certain => log.report(&reasons),
                _ => {}
            }
        }
    }

    /// Records the incidents of the service and its tokens. Returns the reasons of the verdict.
    pub(crate) fn look(&self) -> Vec<Reason> {
        let view = Arc::new(self.view());
        let (status, going_on) = view.status(self.0.started);
        self.0.observed.record(going_on, view.now);
        // A reading of another plan would keep its targets and accounts until somebody opens a page.
        self.0.read.lock().take_if(|last| !Arc::ptr_eq(&last.in_force.plan, &view.plan));
        status.summary.reasons
    }

    /// One app in full; `None` if it is not configured. Its replies are kept from now on.
    pub(crate) fn detail(&self, project: &str, app: &str) -> Option<Detail> {
        detail::detail(&self.view(), project, app)
    }

    /// The active configuration, and the last reload if it was refused.
    pub(crate) fn configuration(&self) -> (Arc<[Explained]>, Option<Refused>) {
        (Arc::clone(&self.in_force().explained), self.0.refused.lock().clone())
    }

    /// The time against which ages are computed.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.context.clock.now()
    }

    /// A sample line by family name, for each of the families `names` that has a series: from the first app, else from
    /// its project or the first polled project.
    pub(crate) fn examples(&self, names: &[&str]) -> HashMap<String, String> {
        let context = &self.0.context;
        let mut found = HashMap::new();
        let read = |found: &mut HashMap<String, String>, filter: &Filter| {
            let snapshot = context.store.snapshot(Instant::now(), filter);
            let Ok(()) = snapshot.write(Format::Text, &mut |chunk: &[u8]| {
                add_examples(found, chunk);
                Ok::<(), Infallible>(())
            });
        };
        let status = self.status();
        // Another shard may poll the app's project itself.
        let polled = status.projects.iter().find(|project| !project.resources.is_empty());
        let mut projects: Vec<String> = polled.map(|project| project.id.to_string()).into_iter().collect();
        if let Some(app) = status.apps.first() {
            let (project, apps) = (app.project.to_string(), vec![app.id.to_string()]);
            read(&mut found, &Filter { projects: vec![project.clone()], apps, ..Filter::default() });
            projects.push(project);
        }
        let missing = names.iter().filter(|name| !found.contains_key(**name));
        let names: Vec<String> = missing.map(|name| (*name).to_owned()).collect();
        // Without names, the filter would select the whole projects.
        if !names.is_empty() {
            read(&mut found, &Filter { names, projects, ..Filter::default() });
        }
        let mut telemetry = Vec::new();
        context.telemetry.write(&mut telemetry, Format::Text, |_| true);
        add_examples(&mut found, &telemetry);
        found
    }

    fn view(&self) -> View {
        let Inner { context, observed, refused, .. } = &*self.0;
        let refused = refused.lock().as_ref().map(|refused| refused.problems.clone());
        View::new(Arc::clone(&self.in_force().plan), context.clone(), Arc::clone(observed), refused)
    }

    fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.0.in_force.read())
    }
}

/// Records the first line of each family in `page`.
fn add_examples(found: &mut HashMap<String, String>, page: &[u8]) {
    for line in String::from_utf8_lossy(page).lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        if !found.contains_key(name) {
            found.insert(name.to_owned(), line.to_owned());
        }
    }
}

/// The verdicts of reasons, by their codes.
type Known = BTreeMap<Cow<'static, str>, Verdict>;

/// Logs when the reasons of the verdict appear, become more or less severe, and end.
#[derive(Debug, Default)]
struct ReasonLog(Known);

impl ReasonLog {
    /// Logs how `reasons` differ from those of the last call. Waiting is not logged.
    fn report(&mut self, reasons: &[Reason]) {
        let (new, gone) = self.changes(reasons);
        for Reason { code, verdict, detail, remedy, text, .. } in new {
            let detail = detail.as_deref();
            tracing::warn!(code = &**code, verdict = verdict.as_str(), detail, remedy, "{text}");
        }
        for code in gone.keys() {
            tracing::info!(code = &**code, "a reason of the verdict has ended");
        }
    }

    /// The reasons that did not have their verdict before, and the last ones that are gone.
    fn changes<'a>(&mut self, reasons: &'a [Reason]) -> (Vec<&'a Reason>, Known) {
        let mut gone = mem::take(&mut self.0);
        let mut new = Vec::new();
        for reason in reasons.iter().filter(|reason| reason.verdict != Verdict::Waiting) {
            self.0.insert(reason.code.clone(), reason.verdict);
            if gone.remove(&reason.code) != Some(reason.verdict) {
                new.push(reason);
            }
        }
        (new, gone)
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use pds_diagnosis::{Cause, cause};

    use super::super::tests::fixture::fixture;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_former_plan_is_not_kept_until_somebody_reads_the_status() {
        let (old, new) = (fixture(1).await, fixture(1).await);
        old.source.status();
        let former = Arc::downgrade(&old.plan);
        old.source.set_plan(new.plan, Vec::new());
        drop(old.plan);
        assert!(former.upgrade().is_some());
        old.source.look();
        assert!(former.upgrade().is_none());
    }

    #[test]
    fn a_reason_is_logged_when_it_appears_and_when_it_is_gone() {
        let reason =
            |cause: &Cause| Reason { code: cause.code.into(), verdict: cause.verdict, ..Reason::default() };
        let (late, refused) = (reason(&cause::POLLS_LATE), reason(&cause::CONFIG_REFUSED));
        let mut log = ReasonLog::default();
        let mut changes = |reasons: &[Reason]| {
            let (new, gone) = log.changes(reasons);
            let new = new.iter().map(|reason| reason.code.to_string()).collect::<Vec<_>>();
            (new, gone.into_keys().collect::<Vec<_>>())
        };
        let both = [late.clone(), refused.clone()];
        assert_eq!(changes(&[late, reason(&cause::WAITING)]), (vec!["polls_late".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec!["config_refused".to_owned()], vec![]));
        assert_eq!(changes(&both), (vec![], vec![]), "what lasts is logged once");
        assert_eq!(changes(slice::from_ref(&refused)), (vec![], vec!["polls_late".into()]));
        let severe = Reason { verdict: Verdict::Problem, ..refused };
        assert_eq!(
            changes(slice::from_ref(&severe)),
            (vec!["config_refused".to_owned()], vec![]),
            "more severe"
        );
        assert_eq!(changes(&[severe]), (vec![], vec![]));
        assert_eq!(changes(&[]), (vec![], vec!["config_refused".into()]));
    }
}
