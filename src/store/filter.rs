//! The part of the page a query asks for: `?name[]=`, `?project=`, `?app=`.

use url::form_urlencoded;

use pds_exposition::Family;

/// The requested part of the page. A series must match one value of each list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Families by name, those of the exporter itself included; empty is all.
    pub names: Vec<String>,
    /// Only series of these projects; empty is all.
    pub projects: Vec<String>,
    /// Only series of these apps; empty is all.
    pub apps: Vec<String>,
}

impl Filter {
    /// Reads a query string, if there is one. A parameter given twice means either value. Other parameters are ignored:
    /// Prometheus sends whatever its `params` say.
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

    /// Whether the whole page is requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether series without a target are requested.
    #[must_use]
    pub fn spans_targets(&self) -> bool {
        self.projects.is_empty() && self.apps.is_empty()
    }

    /// Whether the family is requested: by its name, that of its samples, or its OpenMetrics name.
    #[must_use]
    pub fn wants(&self, family: &Family) -> bool {
        let bare = |name: &String| name.strip_suffix("_bucket").unwrap_or(name) == family.name;
        self.names.is_empty() || self.names.iter().any(|name| bare(name) || name == family.base_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_holds_the_named_values_only() {
        let query = "name[]=pds_up&name%5B%5D=pds_app_info&project=p-1&x=y&name[]=pds_up";
        let filter = Filter::parse(Some(query));
        assert_eq!(filter.names, ["pds_app_info", "pds_up"]);
        assert_eq!(filter.projects, ["p-1"]);
        assert!(filter.apps.is_empty() && !filter.is_empty());
    }

    #[test]
    fn without_our_parameters_the_page_is_whole() {
        for query in [None, Some(""), Some("module=x"), Some("&&=&%")] {
            assert!(Filter::parse(query).is_empty(), "{query:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_read(query in ".*") {
            let _ = Filter::parse(Some(&query));
        }
    }
}
