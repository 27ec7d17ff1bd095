//! What the calls about apps, keys, domains and plans answer, and what they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::interface::Number;
use crate::interface::change_plan::{PlanChange, PlanChanged};
use crate::interface::create_api_key::{ApiKey, DEFAULT_NAME, NEVER, check_future};
use crate::interface::list_domains::Domains;
use crate::interface::list_projects;
use crate::interface::validate_domain::Validation;
use crate::interface::volume_alerts::Alerts;

use super::chance::{hash, word};
use super::routes::{Answer, Asked, ErrorReply, date};
use super::state::{Domain, Project};
use super::{blueprint, tokens};

impl Asked<'_> {
    /// Reads or changes the project.
    fn with_project<T>(
        &self,
        read: impl FnOnce(&mut Project) -> Result<T, ErrorReply>,
    ) -> Result<T, ErrorReply> {
        self.world.state(|state| match state.projects.get_mut(&self.project) {
            Some(project) => read(project),
            None => Err(ErrorReply::new(404, "there is no such project")),
        })
    }

    /// Reads or changes the domain in the path.
    fn with_domain<T>(
        &self,
        read: impl FnOnce(&mut Domain) -> Result<T, ErrorReply>,
    ) -> Result<T, ErrorReply> {
        self.with_project(|project| match project.domains.get_mut(self.route.id("domain_id")) {
            Some(domain) => read(domain),
            None => Err(ErrorReply::new(404, "there is no such domain")),
        })
    }
}

pub(super) fn create_api_key(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let expires = asked.query("expiresAt").map(|text| date("expiresAt", text)).transpose()?;
    if let Some(expires) = expires {
        let today = asked.now.to_zoned(TimeZone::UTC).date();
        check_future(expires, today).map_err(|broken| ErrorReply::new(400, broken.to_string()))?;
    }
    let number = asked.with_project(|project| {
        project.keys += 1;
        Ok(project.keys)
    })?;
    let seed = asked.world.settings().seed;
    let text = |name: &str, default: &str| asked.query(name).unwrap_or(default).to_owned();
    Answer::json(&ApiKey {
        api_key: tokens::api_key(seed, &asked.project, number),
        id: format!("k-{}", word(hash(&[seed, 8, number]), 10)),
        name: text("name", DEFAULT_NAME),
        description: text("description", ""),
        project_id: asked.project.to_string(),
        source: "api".to_owned(),
        status: "active".to_owned(),
        created_at: asked.now.to_string(),
        updated_at: asked.now.to_string(),
        expires_at: expires.map_or(NEVER.to_owned(), |date| format!("{date}T00:00:00Z")),
        extra: BTreeMap::new(),
    })
}

pub(super) fn change_plan(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let change: PlanChange = serde_json::from_slice(asked.body)
        .map_err(|_| ErrorReply::new(400, "planCode must be hobby, standard or enterprise"))?;
    let upgraded = asked.with_project(|project| {
        let before = std::mem::replace(&mut project.plan, change.plan_code);
        Ok(change.plan_code > before)
    })?;
    // Only what costs more needs a payment.
    let redirect_url = if upgraded { checkout(asked) } else { String::new() };
    Answer::json(&PlanChanged { redirect_url, extra: BTreeMap::new() })
}

/// Where a payment is completed.
fn checkout(asked: &Asked<'_>) -> String {
    let session = hash(&[asked.world.settings().seed, 9, asked.now.as_second().unsigned_abs()]);
    format!("https://checkout.example.com/pay/{}-{}", asked.project, word(session, 12))
}

pub(super) fn payment_url(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    Ok(Answer::text(checkout(asked)))
}

pub(super) fn get_app(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let (app, id) = (asked.app()?, asked.route.id("app_id"));
    Answer::json(&blueprint::settings(asked.world.settings().seed, app.number, id, &asked.project))
}

pub(super) fn delete_app(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let (id, now) = (asked.route.id("app_id"), asked.now.as_second());
    asked.with_project(|project| {
        let app = project.apps.get_mut(id).filter(|app| app.deleted.is_none());
        let app = app.ok_or_else(|| ErrorReply::new(404, "there is no such app"))?;
        app.deleted = Some(now);
        for domain in project.domains.values_mut() {
            domain.app.take_if(|assigned| **assigned == *id);
        }
        Ok(Answer::text(format!("app {id} was deleted")))
    })
}

/// A service account belongs to one project, so that is all it is shown.
pub(super) fn list_projects(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let project = asked.with_project(|project| {
        let (id, name, role) = (asked.project.to_string(), project.name.clone(), project.role.to_owned());
        Ok(list_projects::Project { id, name, role, extra: BTreeMap::new() })
    })?;
    Answer::json(&[project])
}

pub(super) fn volume_alerts(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let on = asked.with_project(|project| Ok(project.alerts.clone()))?;
    let thresholds = on.into_iter().map(|threshold| Number::Value(f64::from(threshold))).collect();
    Answer::json(&Alerts { thresholds: Some(thresholds), extra: BTreeMap::new() })
}

pub(super) fn list_domains(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let domains = asked
        .with_project(|project| Ok(project.domains.iter().map(|(id, domain)| domain.item(id)).collect()))?;
    Answer::json(&Domains { domains: Some(domains), extra: BTreeMap::new() })
}

pub(super) fn validate_domain(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let success = asked.with_domain(|domain| {
        domain.status = if domain.configured { "validated" } else { "failed" };
        domain.updated = asked.now;
        Ok(domain.configured)
    })?;
    let message = if success { "domain validated" } else { "the DNS record was not found" };
    Answer::json(&Validation { message: message.to_owned(), success: Some(success), extra: BTreeMap::new() })
}

pub(super) fn unassign_domain(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    asked.with_domain(|domain| match domain.app.take() {
        Some(_) => {
            domain.updated = asked.now;
            Ok(Answer::empty())
        }
        None => Err(ErrorReply::new(409, "the domain is not assigned to an app")),
    })
}

pub(super) fn delete_domain(asked: &Asked<'_>) -> Result<Answer, ErrorReply> {
    let assigned: Option<Arc<str>> = asked.with_domain(|domain| Ok(domain.app.clone()))?;
    if let Some(app) = assigned {
        return Err(ErrorReply::new(409, format!("the domain is assigned to app {app}; unassign it first")));
    }
    asked.with_project(|project| {
        project.domains.remove(asked.route.id("domain_id"));
        Ok(Answer::empty())
    })
}
