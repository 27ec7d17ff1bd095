//! The part of the page a query asks for: `?name[]=`, `?project=`, `?app=`.

use url::form_urlencoded;

/// Which samples a scrape wants. The same parameter given twice means either; different ones must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Family names (`name[]`), as in text 0.0.4; empty is all of them.
    pub names: Vec<String>,
    /// Values of the label `project`; empty is all samples, those without the label included.
    pub projects: Vec<String>,
    /// Values of the label `app`; empty is all samples, those without the label included.
    pub apps: Vec<String>,
}

impl Filter {
    /// Reads a query string (`None`: there is none). Other parameters are none of our business: Prometheus
    /// sends what its `params` say.
    #[must_use]
    pub fn parse(query: Option<&str>) -> Self {
        let mut filter = Self::default();
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let list = match &*key {
                "name[]" => &mut filter.names,
                "project" => &mut filter.projects,
                "app" => &mut filter.apps,
                _ => continue,
            };
            list.push(value.into_owned());
        }
        for list in [&mut filter.names, &mut filter.projects, &mut filter.apps] {
            list.sort_unstable();
            list.dedup();
        }
        filter
    }

    /// Whether the whole page is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.projects.is_empty() && self.apps.is_empty()
    }

    /// Whether the family of that full name (as in text 0.0.4) is asked for.
    #[must_use]
    pub fn wants_family(&self, name: &str) -> bool {
        wants(&self.names, Some(name))
    }

    /// Whether samples with these values of `project` and `app` (`None`: they have no such label) are asked for.
    #[must_use]
    pub fn wants_target(&self, project: Option<&str>, app: Option<&str>) -> bool {
        wants(&self.projects, project) && wants(&self.apps, app)
    }
}

fn wants(list: &[String], value: Option<&str>) -> bool {
    list.is_empty() || value.is_some_and(|value| list.iter().any(|wanted| wanted == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_what_is_named_and_nothing_else() {
        let filter =
            Filter::parse(Some("name[]=pds_up&name%5B%5D=pds_app_info&project=p-1&x=y&name[]=pds_up"));
        assert_eq!(filter.names, ["pds_app_info", "pds_up"]);
        assert!(filter.wants_family("pds_up") && !filter.wants_family("pds_app_gpus"));
        assert!(filter.wants_target(Some("p-1"), None) && filter.wants_target(Some("p-1"), Some("a")));
        assert!(!filter.wants_target(Some("p-2"), None) && !filter.wants_target(None, None));
    }

    #[test]
    fn no_parameter_of_ours_is_the_whole_page() {
        for query in [None, Some(""), Some("module=x"), Some("&&=&%")] {
            let filter = Filter::parse(query);
            assert!(
                filter.is_empty() && filter.wants_family("x") && filter.wants_target(None, None),
                "{query:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_read(query in ".*") {
            let _ = Filter::parse(Some(&query));
        }
    }
}
