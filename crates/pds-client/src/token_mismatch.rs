//! Tokens that state another project than they are set for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::account::Account;
use pds_core::units::count;

/// The accounts of `projects` whose token states another project, by name; the text names both projects.
pub(super) fn of(projects: &HashMap<Arc<str>, Account>) -> BTreeMap<String, String> {
    let mut set_for: BTreeMap<&str, (&Account, BTreeSet<&str>)> = BTreeMap::new();
    for (project, account) in projects {
        set_for.entry(account.name()).or_insert((account, BTreeSet::new())).1.insert(project);
    }
    let other = |(name, (account, set_for)): (&str, (&Account, BTreeSet<&str>))| {
        let own = account.project()?;
        let first = set_for.first().filter(|_| !set_for.contains(&*own))?;
        let more = match set_for.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        Some((name.to_owned(), format!("it is for {own}, and set for {first}{more}")))
    };
    set_for.into_iter().filter_map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shared, TokenSource, Unobserved};
    use pds_core::clock::Clock;
    use pds_core::secret::Secret;

    #[tokio::test]
    async fn a_token_is_for_another_project_if_it_is_set_for_none_that_it_states() {
        // {"project_id":"p-b"}
        let token = TokenSource::Inline(Secret::new("e30.eyJwcm9qZWN0X2lkIjoicC1iIn0.c2ln"));
        let shared = Shared::new(Arc::new(Unobserved), Clock::system());
        let account = Account::new("p-a".into(), Some(token), &shared);
        let said = |projects: &[&str]| {
            let projects = projects.iter().map(|id| (Arc::from(*id), account.clone())).collect();
            of(&projects).into_values().collect::<Vec<_>>()
        };
        assert_eq!(said(&["p-a"]), ["it is for p-b, and set for p-a"]);
        assert_eq!(said(&["p-a", "p-c", "p-d"]), ["it is for p-b, and set for p-a and 2 more"]);
        assert_eq!(said(&["p-a", "p-b"]), [""; 0]);
    }
}
