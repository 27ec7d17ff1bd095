//! The answer to each call, and its effect. `metrics` answers calls 4 and 5.

use serde_json::{Map, Value, json};

use pds_interface::change_plan::{PLAN, PLANS};
use pds_interface::create_api_key::{DEFAULT_NAME, NEVER};
use pds_interface::wire::Flag;
use pds_interface::{
    Number, Service, branches, change_plan, create_api_key, delete_app, delete_domain, file_tree, get_app,
    list_domains, list_projects, payment_url, response_time, run_execution_time, unassign_domain,
    validate_domain, volume_alerts, zip_contents,
};

use super::answer::{Answer, Answered};
use super::chance::{hash, hash_text, word};
use super::routes::CallRequest;
use super::state::{Domain, api_key};
use super::{blueprint, metrics};

impl Service for CallRequest {
    type Error = Answer;

    fn create_api_key(&self) -> Answered<create_api_key::Reply> {
        let number = self.with_project(|project| {
            project.keys += 1;
            Ok(project.keys)
        })?;
        let seed = self.world.settings().seed;
        let text = |name: &str, default: &str| self.value(name).unwrap_or(default).into();
        Ok(create_api_key::ApiKey {
            api_key: api_key(seed, &self.project, number),
            id: format!("k-{}", word(hash_text(hash(&[seed, 8, number]), &self.project), 10)).into(),
            name: text("name", DEFAULT_NAME),
            description: text("description", ""),
            project_id: self.project.to_string().into(),
            source: "api".into(),
            status: "active".into(),
            created_at: self.now.to_string().into(),
            updated_at: self.now.to_string().into(),
            expires_at: self
                .value("expiresAt")
                .map_or(NEVER.into(), |date| format!("{date}T00:00:00Z").into()),
        })
    }

    fn change_plan(&self) -> Answered<change_plan::Reply> {
        let wanted = PLANS.iter().position(|plan| Some(*plan) == self.value(PLAN.name)).unwrap_or(0);
        let before = self.with_project(|project| Ok(std::mem::replace(&mut project.plan, wanted)))?;
        // Only an upgrade needs a payment.
        let redirect_url = if wanted > before { checkout(self).into() } else { "".into() };
        Ok(change_plan::PlanChanged { redirect_url })
    }

    fn payment_url(&self) -> Answered<payment_url::Reply> {
        Ok(pds_interface::payment_url::Checkout(checkout(self)))
    }

    fn get_app(&self) -> Answered<get_app::Reply> {
        let (app, id) = (self.app()?, self.id("app_id"));
        Ok(blueprint::settings(self.world.settings().seed, app.number, id, &self.project))
    }

    fn delete_app(&self) -> Answered<delete_app::Reply> {
        let (id, now) = (self.id("app_id"), self.now.as_second());
        self.with_project(|project| {
            let app = project.apps.get_mut(id).filter(|app| app.deleted.is_none());
            let app = app.ok_or_else(|| Answer::no_such("app"))?;
            app.deleted = Some(now);
            let domains = project.domains.values_mut();
            domains.filter(|domain| domain.app() == Some(id)).for_each(Domain::unassign);
            Ok(format!("app {id} was deleted"))
        })
    }

    /// A service account sees only its own project.
    fn list_projects(&self) -> Answered<list_projects::Reply> {
        self.with_project(|project| {
            let (id, name, role) = ((*self.project).into(), (*project.name).into(), project.role.into());
            Ok(vec![list_projects::Project { id, name, role }])
        })
    }

    fn volume_alerts(&self) -> Answered<volume_alerts::Reply> {
        let on = self.with_project(|project| Ok(project.alerts.clone()))?;
        let thresholds = on.into_iter().map(|threshold| Number::Value(f64::from(threshold))).collect();
        Ok(volume_alerts::Alerts { thresholds: Some(thresholds) })
    }

    fn list_domains(&self) -> Answered<list_domains::Reply> {
        let domains: Value = self.with_project(|project| {
            Ok(project.domains.values().map(|domain| domain.item.clone()).collect())
        })?;
        Ok(serde_json::from_value(json!({ "domains": domains }))?)
    }

    fn validate_domain(&self) -> Answered<validate_domain::Reply> {
        let success = self.with_domain(|domain| Ok(domain.validate(self.now)))?;
        let message = if success { "domain validated" } else { "the DNS record was not found" };
        let (message, success) = (message.into(), Some(success));
        Ok(validate_domain::Validation { message, success })
    }

    fn unassign_domain(&self) -> Answered<unassign_domain::Reply> {
        self.with_domain(|domain| {
            domain.app().ok_or_else(|| Answer::refusal(409, "the domain is not assigned to an app"))?;
            domain.unassign();
            domain.item["updatedAt"] = json!(self.now);
            Ok(())
        })
    }

    fn delete_domain(&self) -> Answered<delete_domain::Reply> {
        self.with_domain(|domain| match domain.app() {
            Some(app) => {
                let message = format!("the domain is assigned to app {app}; unassign it first");
                Err(Answer::refusal(409, message))
            }
            None => Ok(()),
        })?;
        self.with_project(|project| {
            project.domains.remove(self.id("domain_id"));
            Ok(())
        })
    }

    fn response_time(&self) -> Answered<response_time::Reply> {
        metrics::response_time(self)
    }

    fn run_execution_time(&self) -> Answered<run_execution_time::Reply> {
        metrics::run_execution_time(self)
    }

    fn branches(&self) -> Answered<branches::Reply> {
        let repository = repository(self)?;
        let branch = |(index, (name, protected)): (usize, &(&str, bool))| branches::Branch {
            name: (*name).into(),
            protected: Value::Bool(*protected),
            default: Value::Bool(index == 0),
            sha: sha(self, repository, index).into(),
        };
        let branches = BRANCHES.iter().enumerate().map(branch).collect();
        Ok(branches::Reply { branches })
    }

    fn file_tree(&self) -> Answered<file_tree::Reply> {
        let repository = repository(self)?;
        if let Some(wanted) = self.value("ref") {
            let mut known = BRANCHES.iter().enumerate();
            if !known.any(|(index, (name, _))| *name == wanted || sha(self, repository, index) == wanted) {
                return Err(Answer::no_such("branch or commit"));
            }
        }
        let (tree, count) = match self.value("path").unwrap_or_default().trim_matches('/') {
            "" => tree(""),
            directory => tree(&format!("{directory}/")),
        };
        if count == 0 {
            return Err(Answer::no_such("directory"));
        }
        let total_count = Number::Value(f64::from(count));
        Ok(file_tree::Reply { tree, total_count, truncated: Flag::Value(false) })
    }

    fn zip_contents(&self) -> Answered<zip_contents::Reply> {
        let (app, id) = (self.app()?, self.id("build_id"));
        let builds = blueprint::builds(self.world.settings().seed, app.number);
        let Some(age) = builds.iter().position(|build| build == id) else {
            return Err(Answer::no_such("build"));
        };
        // Older builds had fewer files.
        let files = FILES.iter().take(FILES.len() - age).enumerate();
        let zip_files: Map<String, Value> =
            files.map(|(index, path)| ((*path).to_owned(), json!({ "size": 400 * (index + 1) }))).collect();
        Ok(zip_contents::Reply { id: id.into(), zip_files })
    }
}

/// The page that completes a payment.
fn checkout(request: &CallRequest) -> String {
    let session = hash(&[request.world.settings().seed, 9, request.now.as_second().unsigned_abs()]);
    format!("https://checkout.example.com/pay/{}-{}", request.project, word(session, 12))
}

/// The owner of the repositories. Each app has one, named like the app without its project.
const OWNER: &str = "acme";

/// The branches of a repository: name, and whether protected. The first is the default.
const BRANCHES: [(&str, bool); 3] = [("main", true), ("develop", false), ("feature/tail-latency", false)];

/// The files of a repository.
const FILES: [&str; 7] = [
    "README.md",
    "pyproject.toml",
    "src/__init__.py",
    "src/main.py",
    "src/model/load.py",
    "src/model/predict.py",
    "tests/test_main.py",
];

/// The number of the repository's app.
fn repository(request: &CallRequest) -> Answered<usize> {
    let id = format!("{}-{}", request.project, request.id("repo"));
    let app =
        request.world.state(|state| state.projects.get(&request.project)?.apps.get(id.as_str()).copied());
    match app.filter(|_| request.id("owner") == OWNER) {
        Some(app) => Ok(app.number),
        None => Err(Answer::no_such("repository")),
    }
}

/// The newest commit of a branch.
fn sha(request: &CallRequest, repository: usize, branch: usize) -> String {
    let start = [request.world.settings().seed, 10, repository as u64, branch as u64];
    let part = |part: u64| format!("{:016x}", hash(&[hash(&start), part]));
    let mut sha: String = (0..3).map(part).collect();
    sha.truncate(40);
    sha
}

/// Entries of a directory (`src/`; empty for the root), and their number at any depth.
fn tree(directory: &str) -> (Vec<Value>, u32) {
    let mut paths: Vec<_> = FILES.iter().filter_map(|path| path.strip_prefix(directory)).collect();
    paths.dedup_by_key(|path| path.split('/').next());
    let mut count = 0;
    let entry = |path: &str| {
        let (name, is_directory) = path.split_once('/').map_or((path, false), |(name, _)| (name, true));
        let path = format!("{directory}{name}");
        count += 1;
        if !is_directory {
            return json!({ "name": name, "path": path, "type": "file" });
        }
        let (children, inside) = tree(&format!("{path}/"));
        count += inside;
        json!({ "name": name, "path": path, "type": "directory", "children": children })
    };
    (paths.into_iter().map(entry).collect(), count)
}
