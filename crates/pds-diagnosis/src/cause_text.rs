//! The texts of causes, about the tokens, addresses and ids at fault.

use pds_config::keys::nearest;
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
                let [all, more] = [tokens.len(), tokens.len() - 2].map(|count| units::count_of(count as u64));
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

    /// The remedy if the token is in `file`; `None` stands for several files, or for a token in the configuration.
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
        self.remedy.replace("{file}", &file).replace("{then}", &then)
    }
}

/// The likely mistake in an id that the service does not know: the id of an app begins with the id of its project, and
/// the id of a project is among those `listed` for the token.
pub fn mistake_in_id(
    project: &str,
    app: &str,
    listed: impl FnOnce() -> Option<Vec<String>>,
) -> Option<String> {
    let prefix = format!("{project}-");
    if !app.is_empty() && !app.starts_with(&prefix) {
        return Some(format!("{app} is short for {prefix}{app}"));
    }
    let listed = listed()?;
    if listed.iter().any(|id| id == project) {
        return None;
    }
    let near = nearest(project, listed.iter().map(String::as_str));
    let near = near.map(|near| format!("; the nearest is {near}")).unwrap_or_default();
    Some(format!("the token knows no project {project}{near}"))
}

#[cfg(test)]
mod tests {
    use crate::cause::TOKEN_REFUSED;

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
