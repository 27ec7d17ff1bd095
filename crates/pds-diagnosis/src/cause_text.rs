//! The texts of causes, about the tokens, addresses and ids at fault.

use pds_config::key::nearest;
use pds_core::units;
use pds_http::host_and_port;

use super::cause::{Cause, Scope};

impl Cause {
    /// The clause that states the problem, about these tokens.
    pub fn says_of(&self, tokens: &[&str]) -> String {
        let token = match *tokens {
            [] => "the token".to_owned(),
            ["default"] => "the default token".to_owned(),
            [token] => format!("the token of {token}"),
            [first, second] => format!("the tokens of {first} and {second}"),
            [first, second, ..] => {
                let [all, more] = [tokens.len(), tokens.len() - 2].map(units::count);
                format!("{all} tokens ({first}, {second} and {more} more)")
            }
        };
        self.says.replace("{token}", &token)
    }

    /// The address at fault, in brackets: the proxy's, or the service's.
    pub fn place(&self, api: &pds_client::Config) -> String {
        let address = match self.scope {
            Scope::Proxy => api.reached().proxy(),
            Scope::Network => host_and_port(&api.base_url),
            _ => None,
        };
        address.map(|address| format!(" ({address})")).unwrap_or_default()
    }

    /// The remedy for the token of this name, which is in `file`, or in the configuration.
    pub fn remedy_for(&self, token: &str, file: Option<&str>) -> String {
        match (file, token) {
            (Some(_), _) => self.remedy_at(file),
            (None, "default") => self.remedy_in("api.token", "then reload the configuration"),
            (None, project) => {
                self.remedy_in(&format!("token of project {project}"), "then reload the configuration")
            }
        }
    }

    fn remedy_in(&self, place: &str, then: &str) -> String {
        self.remedy.replace("{file}", place).replace("{then}", then)
    }

    /// The remedy if the token is in `file`; `None` stands for several tokens, or an unknown one.
    pub fn remedy_at(&self, file: Option<&str>) -> String {
        let loaded = file.and_then(|file| file.strip_prefix("/run/credentials/")?.split_once('/'));
        let (file, then) = match (file, loaded) {
            (None, _) => (
                "the token file".to_owned(),
                "a systemd unit with LoadCredential then needs a restart, and the kubelet updates a Secret's file within \
                 two minutes"
                    .to_owned(),
            ),
            (_, Some((unit, name))) => (
                format!("the file of LoadCredential={name} in {unit}"),
                format!("then run systemctl restart {unit}"),
            ),
            (Some(file), None) if file.starts_with("/run/secrets/") => (
                format!("{file} (on Kubernetes, its Secret)"),
                "no restart is needed, and the kubelet updates the file within two minutes".to_owned(),
            ),
            (Some(file), None) => (file.to_owned(), "no restart is needed".to_owned()),
        };
        self.remedy_in(&file, &then)
    }
}

/// How far the service's clock is ahead of this machine's, or behind it.
pub fn clock_difference(skew: f64) -> String {
    let side = if skew < 0.0 { "behind" } else { "ahead of" };
    format!("the service's is {} {side} this machine's", units::seconds(skew.abs().round()))
}

/// The likely mistake in an id that the service does not know: the id of an app begins with the id of its project, and
/// the id of a project is among those `listed` for the token. Further projects are `configured`.
pub fn mistake_in_id<'a>(
    project: &str,
    app: &str,
    configured: impl Iterator<Item = &'a str>,
    listed: impl FnOnce() -> Option<Vec<String>>,
) -> Option<String> {
    let listed = listed();
    let of_token = || listed.iter().flatten().map(String::as_str);
    let is_of = |id: &str| app.strip_prefix(id).is_some_and(|rest| rest.starts_with('-'));
    if app == project || of_token().any(|id| id == app) {
        return Some(format!("{app} is a project"));
    }
    if !app.is_empty() && !is_of(project) {
        let mut others: Vec<&str> = configured.filter(|id| is_of(id)).collect::<Vec<_>>();
        others.extend(of_token().filter(|id| is_of(id)));
        if let Some(other) = others.iter().max_by_key(|id| id.len()) {
            return Some(format!("{app} belongs to project {other}"));
        }
        let parts: Vec<&str> = app.split('-').take(project.split('-').count()).collect();
        let unknown = format!("{app} begins with no known project");
        // All ids of projects have the same first part.
        let has_project =
            app.split('-').next() == project.split('-').next() && app.split('-').count() > parts.len();
        return Some(match nearest(&parts.join("-"), [project].into_iter().chain(of_token())) {
            Some(near) => format!("{unknown}; the nearest is {near}"),
            None if has_project => unknown,
            None => format!("{app} is short for {project}-{app}"),
        });
    }
    if of_token().any(|id| id == project) {
        return None;
    }
    listed.as_ref()?;
    let near = nearest(project, of_token());
    let near = near.map(|near| format!("; the nearest is {near}")).unwrap_or_default();
    Some(format!("the token knows no project {project}{near}"))
}

#[cfg(test)]
mod tests {
    use super::mistake_in_id;
    use crate::cause::TOKEN_REFUSED;

    #[test]
    fn a_mistake_in_an_id_is_named() {
        let listed = ["p-vbq86i4m", "p-lsvmo7ah"];
        for (project, app, mistake) in [
            ("p-vbq86i4m", "ranker", Some("ranker is short for p-vbq86i4m-ranker")),
            ("p-vbq86i4m", "p-lsvmo7ah-chat", Some("p-lsvmo7ah-chat belongs to project p-lsvmo7ah")),
            ("p-vbq86i4m", "p-2-chat", Some("p-2-chat belongs to project p-2")),
            (
                "p-vbq86i4m",
                "p-vbq86i4n-ranker",
                Some("p-vbq86i4n-ranker begins with no known project; the nearest is p-vbq86i4m"),
            ),
            ("p-vbq86i4m", "p-other123-chat", Some("p-other123-chat begins with no known project")),
            ("p-vbq86i4m", "p-vbq86i4m", Some("p-vbq86i4m is a project")),
            ("p-vbq86i4m", "p-lsvmo7ah", Some("p-lsvmo7ah is a project")),
            ("p-vbq86i4m", "p-vbq86i4m-ranker", None),
            ("p-lsvmo7a", "", Some("the token knows no project p-lsvmo7a; the nearest is p-lsvmo7ah")),
        ] {
            let listed = || Some(listed.map(str::to_owned).to_vec());
            let found = mistake_in_id(project, app, [project, "p-2"].into_iter(), listed);
            assert_eq!(found.as_deref(), mistake);
        }
    }

    #[test]
    fn a_remedy_depends_on_the_source_of_the_token() {
        for (file, part) in [
            (
                None,
                "replace the token file; a systemd unit with LoadCredential then needs a restart, and the kubelet",
            ),
            (Some("/etc/pds/token"), "replace /etc/pds/token; no restart is needed."),
            (
                Some("/run/secrets/pds/token"),
                "(on Kubernetes, its Secret); no restart is needed, and the kubelet",
            ),
            (
                Some("/run/credentials/pds-exporter.service/token"),
                "LoadCredential=token in pds-exporter.service; then run systemctl restart pds-exporter.service.",
            ),
        ] {
            let remedy = TOKEN_REFUSED.remedy_at(file);
            assert!(remedy.contains(part), "{remedy}");
        }
        for (token, part) in [("default", "api.token"), ("p-1", "token of project p-1")] {
            let remedy = TOKEN_REFUSED.remedy_for(token, None);
            assert!(remedy.ends_with(&format!("replace {part}; then reload the configuration.")), "{remedy}");
        }
    }

    #[test]
    fn a_token_is_named_as_people_say_it() {
        let says = |tokens: &[&str]| TOKEN_REFUSED.says_of(tokens);
        assert_eq!(says(&["default"]), "the service refuses the default token");
        assert_eq!(says(&["p-1"]), "the service refuses the token of p-1");
        assert_eq!(says(&["p-1", "p-2"]), "the service refuses the tokens of p-1 and p-2");
        assert_eq!(says(&["a", "b", "c", "d"]), "the service refuses 4 tokens (a, b and 2 more)");
    }
}
