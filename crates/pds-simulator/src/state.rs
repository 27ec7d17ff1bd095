//! State that calls change: domains, keys, plans, deleted apps; and service accounts with their tokens.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use pds_core::secret::Secret;
use pds_interface::change_plan::PLANS;
use pds_interface::volume_alerts::THRESHOLDS;

use super::blueprint;
use super::chance::{hash, hash_text, pick, word};
use super::settings::Settings;

/// The mutable state of a world.
#[derive(Debug)]
pub(super) struct State {
    /// The service accounts by their issued tokens. Only these are valid.
    pub(super) accounts: HashMap<Secret, Account>,
    pub(super) projects: BTreeMap<Arc<str>, Project>,
    /// Whether late data has arrived.
    pub(super) late_data_ended: bool,
}

/// A service account.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Account {
    /// The project it belongs to.
    pub(super) project: Arc<str>,
    /// When its token expires, if ever.
    pub(super) expires: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Project {
    pub(super) name: String,
    pub(super) role: &'static str,
    /// Index into [`PLANS`].
    pub(super) plan: usize,
    /// The alert thresholds that are on.
    pub(super) alerts: Vec<u8>,
    /// Number of created API keys.
    pub(super) keys: u64,
    pub(super) domains: BTreeMap<String, Domain>,
    pub(super) apps: HashMap<Arc<str>, App>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct App {
    /// Its number in the world, which determines its other properties.
    pub(super) number: usize,
    /// When it was deleted.
    pub(super) deleted: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Domain {
    /// The item as call 11 lists it.
    pub(super) item: Value,
    /// Validations that fail before its DNS record is found.
    failures_left: u32,
}

impl Domain {
    /// Looks up the DNS record. Returns whether it exists.
    pub(super) fn validate(&mut self, now: Timestamp) -> bool {
        let found = self.failures_left == 0;
        self.failures_left = self.failures_left.saturating_sub(1);
        self.item["validationStatus"] = if found { "validated" } else { "failed" }.into();
        self.item["updatedAt"] = json!(now);
        found
    }

    /// The app it is assigned to.
    pub(super) fn app(&self) -> Option<&str> {
        self.item["appId"].as_str()
    }

    pub(super) fn unassign(&mut self) {
        self.item["appId"] = Value::Null;
    }
}

/// Names of projects, used in turn; the last one is full of special characters.
const NAMES: [&str; 3] = ["Search", "Assistants", "R&D \"night\" <b>\\lab</b> 🧪"];

impl State {
    /// The initial state.
    pub(super) fn new(settings: &Settings) -> Self {
        let seed = settings.seed;
        let mut projects = BTreeMap::new();
        for number in 0..settings.projects {
            let id: Arc<str> = project_id(seed, number).into();
            let apps: Vec<(Arc<str>, App)> = settings
                .apps_of(number)
                .map(|app| (blueprint::id(&id, app).into(), App { number: app, deleted: None }))
                .collect();
            projects.insert(id, Project::new(seed, number, apps));
        }
        Self { accounts: HashMap::new(), projects, late_data_ended: false }
    }

    /// The token of the account of `project` that expires at `expires`; the same each time.
    pub(super) fn issue(&mut self, seed: u64, project: &Arc<str>, expires: Option<Timestamp>) -> Secret {
        let mut claims = json!({ "sub": format!("sa-{project}"), "project_id": &**project });
        if let Some(expires) = expires {
            claims["exp"] = expires.as_second().into();
        }
        let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        // 32 bytes that only look like a signature: a token is valid because it was issued.
        let start = hash_text(seed, &signed);
        let signature: Vec<u8> = (0..4).flat_map(|part| hash(&[start, part]).to_be_bytes()).collect();
        let token = Secret::new(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)));
        self.accounts.insert(token.clone(), Account { project: Arc::clone(project), expires });
        token
    }

    /// The account that an `Authorization` header names, if its token was issued and is not expired at `now`.
    pub(super) fn account(
        &self,
        authorization: Option<&str>,
        now: Timestamp,
    ) -> Result<&Account, &'static str> {
        let text = authorization.ok_or("authorization is missing")?;
        let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or("authorization must be a bearer token")?;
        match self.accounts.get(&Secret::new(token.trim())) {
            None => Err("the token is not valid"),
            Some(account) if account.expires.is_some_and(|expires| expires <= now) => {
                Err("the token has expired")
            }
            Some(account) => Ok(account),
        }
    }
}

/// The id of project number `number`.
pub(super) fn project_id(seed: u64, number: usize) -> String {
    format!("p-{}", word(hash(&[seed, 4, number as u64]), 8))
}

impl Project {
    fn new(seed: u64, number: usize, apps: Vec<(Arc<str>, App)>) -> Self {
        let chance = |what: u64| hash(&[seed, 5, number as u64, what]);
        let name = NAMES[number % NAMES.len()];
        let name = match number / NAMES.len() {
            0 => name.to_owned(),
            round => format!("{name} {}", round + 1),
        };
        let first = apps.first().map(|(id, _)| &**id);
        let domains = (0..(number as u64 + 2) % 4).map(|index| {
            // One assigned and validated, one ready to be validated, one whose DNS record appears later.
            let (status, failures_left, app) = match index {
                0 => ("validated", 0, first),
                1 => ("pending", 0, None),
                _ => ("failed", 1, None),
            };
            let id = format!("d-{}", word(chance(40 + index), 8));
            let name = format!("{}.customer-{}.example.com", word(chance(10 + index), 4), number + 1);
            let created = blueprint::created(chance(20 + index));
            let item = json!({
                "id": id,
                "name": name,
                "validationStatus": status,
                "dnsValidation": {
                    "type": "CNAME",
                    "name": format!("_pds.{name}"),
                    "value": format!("{id}.validate.example.com"),
                },
                "appId": app,
                "region": pick(&["us-east-1", "eu-west-2"], chance(30 + index)),
                "createdAt": created,
                "updatedAt": created + SignedDuration::from_hours(1),
            });
            (id, Domain { item, failures_left })
        });
        Self {
            name,
            role: ["owner", "developer", "viewer"][number % 3],
            plan: (number + 1) % PLANS.len(),
            alerts: THRESHOLDS.into_iter().skip(number % (THRESHOLDS.len() + 1)).collect(),
            keys: 0,
            domains: domains.collect(),
            apps: apps.into_iter().collect(),
        }
    }

    /// The app, unless it was deleted.
    pub(super) fn app(&self, id: &str) -> Option<App> {
        self.apps.get(id).copied().filter(|app| app.deleted.is_none())
    }
}

/// The secret value of a new API key.
pub(super) fn api_key(seed: u64, project: &str, number: u64) -> Secret {
    let start = hash_text(hash(&[seed, number]), project);
    Secret::new(&format!("pk-{:016x}{:016x}", hash(&[start, 0]), hash(&[start, 1])))
}
