//! The answer to each call, and its effect.

use serde_json::{Value, json};

use pds_interface::change_plan::{PLAN, PLANS};
use pds_interface::create_api_key::{DEFAULT_NAME, NEVER};
use pds_interface::{
    Number, Service, branches, change_plan, create_api_key, delete_app, delete_domain, file_tree, get_app,
    list_domains, list_projects, payment_url, response_time, run_execution_time, unassign_domain,
    validate_domain, volume_alerts, zip_contents,
};

use super::answer::{Answer, Answered};
use super::chance::{hash, hash_text, word};
use super::routes::CallRequest;
use super::state::Domain;
use super::{blueprint, metrics, repository, tokens};

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
            api_key: tokens::api_key(seed, &self.project, number),
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
        repository::branches(self)
    }

    fn file_tree(&self) -> Answered<file_tree::Reply> {
        repository::file_tree(self)
    }

    fn zip_contents(&self) -> Answered<zip_contents::Reply> {
        repository::zip_contents(self)
    }
}

/// The page that completes a payment.
fn checkout(request: &CallRequest) -> String {
    let session = hash(&[request.world.settings().seed, 9, request.now.as_second().unsigned_abs()]);
    format!("https://checkout.example.com/pay/{}-{}", request.project, word(session, 12))
}
