//! The number of requests that a configuration needs, and whether its limits allow them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Api, App, Config};
use pds_core::units;
use pds_interface::{Cadence, Counted, Scope};
use pds_ledger::recheck::Ages;

const HOUR: Duration = Duration::from_secs(3600);

/// Thresholds of a service that sends `1ms` through `1hr`.
const USUAL_THRESHOLDS: usize = 25;
/// Memory that is worth a sentence, in bytes.
const MUCH_MEMORY: f64 = 5e6;

/// Expected requests per minute, without retries.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Per app.
    pub apps: Vec<AppDemand>,
    /// Per project, including its apps.
    pub projects: Vec<(Arc<str>, f64)>,
    /// In total, including one list of projects per service account.
    pub total: f64,
}

/// Requests about an app.
#[derive(Clone, Debug, PartialEq)]
pub struct AppDemand {
    /// The project's id.
    pub project: Arc<str>,
    /// The app's id.
    pub app: Arc<str>,
    /// Requests per minute.
    pub rate: f64,
}

/// The limit to set, as a multiple of the needed rate: a tenth more, to catch up.
pub const HEADROOM: f64 = 1.1;

impl Demand {
    /// Excess over the limit of `api`, if any: the value to set, [`HEADROOM`] times the needed rate, and both figures.
    pub fn overload(&self, api: &Api) -> Option<String> {
        let (needed, allowed) = (self.total / 60.0, api.max_requests_per_second?.get());
        (needed > allowed.into()).then(|| {
            // Without groups of digits: it is to be copied.
            let set = (needed * HEADROOM).ceil();
            let [needed, allowed] = [needed.ceil(), allowed.into()].map(units::rounded);
            format!("set api.max_requests_per_second = {set} ({needed} a second needed, {allowed} allowed)")
        })
    }
}

impl Config {
    /// The expected requests to the service per minute.
    pub fn requests_per_minute(&self) -> Demand {
        let mut demand = Demand { apps: Vec::new(), projects: Vec::new(), total: 0.0 };
        let mut accounts = HashSet::new();
        for project in &self.projects {
            let mut sum = if project.polled { self.requests(Scope::Project, None) } else { 0.0 };
            for app in &project.apps {
                let rate = self.requests(Scope::App, Some(app));
                let (project, app) = (Arc::clone(&project.id), Arc::clone(&app.id));
                demand.apps.push(AppDemand { project, app, rate });
                sum += rate;
            }
            demand.total += sum;
            demand.projects.push((Arc::clone(&project.id), sum));
            if project.polled && accounts.insert(project.token.as_ref().or(self.api.token.as_ref())) {
                demand.total += self.requests(Scope::Account, None);
            }
        }
        demand
    }

    /// A sentence about the memory of the hours that are kept until their last recheck, if it is much.
    pub fn memory_of_rechecks(&self) -> Option<String> {
        let accounting = &self.accounting;
        let ages = accounting.recheck_after.iter().filter_map(|age| i64::try_from(age.as_secs()).ok());
        let (ages, longest) = (Ages::new(ages), accounting.recheck_after.iter().max()?);
        let thresholds = match self.poll.thresholds.len() {
            0 => USUAL_THRESHOLDS,
            some => some,
        };
        let counted = self.poll.resources.iter().filter_map(|resource| resource.polled().counted);
        let per_app = counted.map(|counted| match counted {
            Counted::Requests => ages.kept_bytes(thresholds),
            Counted::Runs => ages.kept_bytes(0),
        });
        let apps: usize = self.projects.iter().map(|project| project.apps.len()).sum();
        let bytes = (apps * per_app.sum::<usize>()) as f64;
        (accounting.enabled && bytes > MUCH_MEMORY).then(|| {
            format!(
                "the hours that accounting.recheck_after keeps for {} take about {} of memory and of the state file",
                humantime::format_duration(*longest),
                units::bytes(bytes)
            )
        })
    }

    /// How many requests per minute the polled calls of this scope make about one account, project or app.
    fn requests(&self, scope: Scope, app: Option<&App>) -> f64 {
        let polled = self.poll.resources.iter().map(|resource| resource.polled());
        let polled = polled.filter(|polled| polled.scope == scope);
        let rates = polled.map(|polled| match polled.cadence {
            Cadence::Settings => rate(self.poll.settings_interval),
            Cadence::Metrics => self.ranges_per_minute(app, polled.counted.is_some()),
        });
        rates.sum()
    }

    /// Ranges that one metrics call requests per minute: every window, for the app and for each of its containers. A
    /// counted call also requests each step of accounting, unless the replies of a window of that length, polled once
    /// per step, serve both; and each hour again at each recheck age.
    fn ranges_per_minute(&self, app: Option<&App>, counted: bool) -> f64 {
        let interval = app.and_then(|app| app.interval).unwrap_or(self.poll.interval);
        let filters = 1 + app.map_or(0, |app| app.containers.len());
        let windows = u32::try_from(self.poll.windows.len() * filters).unwrap_or(u32::MAX);
        let step = self.accounting.step;
        let shared = interval == step && self.poll.windows.contains(&step);
        let steps = self.accounting.enabled && counted && !shared;
        let ages = u32::try_from(self.accounting.recheck_after.len()).unwrap_or(u32::MAX);
        let rechecks = if self.accounting.enabled && counted { f64::from(ages) * rate(HOUR) } else { 0.0 };
        f64::from(windows) * rate(interval) + rechecks + if steps { rate(step.max(interval)) } else { 0.0 }
    }
}

/// How often per minute an interval elapses.
fn rate(interval: Duration) -> f64 {
    60.0 / interval.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::path::Path;

    use super::*;
    use crate::{Project, TokenSource};
    use pds_core::secret::Secret;

    const SECOND: Duration = Duration::from_secs(1);

    fn app(id: &str, interval: Option<Duration>, containers: &[&str]) -> App {
        let containers = containers.iter().map(|id| Arc::from(*id)).collect();
        App { id: Arc::from(id), interval, containers, labels: Vec::new(), objective: None }
    }

    fn project(id: &str, token: Option<&str>, apps: Vec<App>) -> Project {
        let token = token.map(|text| TokenSource::Inline(Secret::new(text)));
        Project { id: Arc::from(id), token, labels: Vec::new(), apps, polled: true, objective: None }
    }

    /// Polls six calls every minute, one window of 5 minutes, steps of 1 minute, at most 1 request a second.
    fn config(projects: Vec<Project>) -> Config {
        let text = "[api]\nbase_url = \"http://127.0.0.1\"\ntoken = \"default\"\nmax_requests_per_second = 1\n\
            [poll]\nsettings_interval = \"60s\"\nresources = [\"app\", \"response_time\", \"run_execution_time\", \
            \"volume_alerts\", \"domains\", \"projects\"]\n[accounting]\nrecheck_after = []\n[[projects]]\nid = \"p\"\n";
        let config = crate::load_text(Path::new("test.toml"), text).unwrap().config;
        Config { projects, ..config }
    }

    #[test]
    fn an_app_requests_its_windows_its_steps_and_its_settings() {
        let apps = vec![app("plain", None, &[]), app("fast", Some(15 * SECOND), &["c-1", "c-2"])];
        let demand = config(vec![project("p", None, apps)]).requests_per_minute();
        // 2 calls x (1 window + 1 step) + 1 app; 2 calls x (3 filters x 4 polls + 1 step) + 1 app.
        assert_eq!(demand.apps.iter().map(|app| app.rate).collect::<Vec<_>>(), [5.0, 27.0]);
        assert_eq!(demand.projects, [(Arc::from("p"), 34.0)]);
        assert_eq!(demand.total, 35.0);
    }

    #[test]
    fn resources_that_are_not_polled_cost_nothing() {
        let mut config = config(vec![project("p", None, vec![app("a", None, &[])])]);
        let mut cost = |without: &str| {
            config.poll.resources.retain(|resource| resource.as_str() != without);
            config.requests_per_minute().total
        };
        let left = ["run_execution_time", "projects", "domains", "volume_alerts", "app"].map(&mut cost);
        assert_eq!(left, [6.0, 5.0, 4.0, 3.0, 2.0]);
    }

    #[test]
    fn each_age_at_which_hours_are_counted_again_adds_two_requests_an_hour() {
        let mut config = config(vec![project("p", None, vec![app("a", None, &[])])]);
        let before = config.requests_per_minute().total;
        config.accounting.recheck_after = vec![3600 * SECOND, 86_400 * SECOND];
        assert!((config.requests_per_minute().total - before - 4.0 / 60.0).abs() < 1e-9);
    }

    #[test]
    fn the_memory_of_hours_that_are_counted_again_is_stated_where_it_is_much() {
        let apps = (0..10_000).map(|n| app(&n.to_string(), None, &[])).collect();
        let mut config = config(vec![project("p", None, apps)]);
        let mut megabytes = |hours: &[u32]| {
            config.accounting.recheck_after = hours.iter().map(|hours| *hours * HOUR).collect();
            let said = config.memory_of_rechecks()?;
            said.split_once(" take about ")?.1.split_once(" MB of memory")?.0.parse::<f64>().ok()
        };
        let [none, hour, day, days] = [&[][..], &[1], &[24, 1], &[72]].map(&mut megabytes);
        assert_eq!((none, hour), (None, None));
        assert!(day.is_some_and(|day| (12.0..16.0).contains(&day)), "{day:?}");
        assert!(days.is_some_and(|days| (36.0..44.0).contains(&days)), "{days:?}");
        config.accounting.enabled = false;
        assert_eq!(config.memory_of_rechecks(), None);
    }

    #[test]
    fn a_window_as_long_as_a_step_serves_both() {
        let mut config = config(vec![project("p", None, vec![app("a", None, &[])])]);
        config.poll.windows = vec![60 * SECOND, 300 * SECOND];
        assert_eq!(config.requests_per_minute().apps[0].rate, 5.0);
        config.accounting.enabled = false;
        assert_eq!(config.requests_per_minute().apps[0].rate, 5.0);
        config.poll.windows = vec![300 * SECOND];
        assert_eq!(config.requests_per_minute().apps[0].rate, 3.0);
    }

    #[test]
    fn each_service_account_lists_its_projects_once() {
        let projects = [("p-1", None), ("p-2", None), ("p-3", Some("own")), ("p-4", Some("own"))];
        let projects = projects.map(|(id, token)| project(id, token, Vec::new())).to_vec();
        assert_eq!(config(projects).requests_per_minute().total, 4.0 * 2.0 + 2.0);
    }

    #[test]
    fn a_demand_beyond_the_limit_is_reported_with_both_figures() {
        let apps = (0..12).map(|i| app(&i.to_string(), None, &[])).collect();
        let mut config = config(vec![project("p", None, apps)]);
        let overload = config.requests_per_minute().overload(&config.api).unwrap();
        assert_eq!(overload, "set api.max_requests_per_second = 2 (2 a second needed, 1 allowed)");
        config.api.max_requests_per_second = NonZeroU32::new(2);
        assert_eq!(config.requests_per_minute().overload(&config.api), None);
        config.api.max_requests_per_second = None;
        assert_eq!(config.requests_per_minute().overload(&config.api), None);
    }
}
