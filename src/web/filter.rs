//! The part of the page a query asks for: `?name[]=`, `?project=`, `?app=`.

use url::form_urlencoded;

use crate::store::Filter;

/// Reads a query string, if there is one. A parameter given twice means either value. Other parameters are ignored:
/// Prometheus sends whatever its `params` say.
#[must_use]
pub fn parse(query: Option<&str>) -> Filter {
    let mut filter = Filter::default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_holds_the_named_values_only() {
        let query = "name[]=pds_up&name%5B%5D=pds_app_info&project=p-1&x=y&name[]=pds_up";
        let filter = parse(Some(query));
        assert_eq!(filter.names, ["pds_app_info", "pds_up"]);
        assert_eq!(filter.projects, ["p-1"]);
        assert!(filter.apps.is_empty() && !filter.is_empty());
    }

    #[test]
    fn without_our_parameters_the_page_is_whole() {
        for query in [None, Some(""), Some("module=x"), Some("&&=&%")] {
            assert!(parse(query).is_empty(), "{query:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_read(query in ".*") {
            let _ = parse(Some(&query));
        }
    }
}
