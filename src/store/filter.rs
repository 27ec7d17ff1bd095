//! The part of the page that a query string selects: `?name[]=`, `?project=`, `?app=`.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use url::form_urlencoded;

use pds_exposition::Family;
use pds_ledger::Owner;

use super::TargetState;

/// The requested part of the page. A series must match one value of each list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Names of families, including the exporter's own; empty means all.
    pub names: Vec<String>,
    /// Only series of these projects; empty means all.
    pub projects: Vec<String>,
    /// Only series of these apps; empty means all.
    pub apps: Vec<String>,
}

impl Filter {
    /// Parses a query string. A repeated parameter matches any of its values. Other parameters are ignored, as
    /// Prometheus sends all of its `params`.
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
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether series without a target are requested.
    pub fn spans_targets(&self) -> bool {
        self.projects.is_empty() && self.apps.is_empty()
    }

    /// Whether the family is requested by its name, the name of its samples, or its OpenMetrics name.
    pub fn wants(&self, family: &Family) -> bool {
        let bare = |name: &String| {
            let of_histogram =
                ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
            of_histogram.unwrap_or(name) == family.name
        };
        self.names.is_empty() || self.names.iter().any(|name| bare(name) || name == family.base_name())
    }

    /// Whether series of this app are requested.
    pub(super) fn wants_app(&self, owner: &Owner) -> bool {
        let has = |list: &[String], id: &str| list.is_empty() || list.iter().any(|wanted| wanted == id);
        has(&self.projects, &owner.project) && has(&self.apps, &owner.app)
    }

    /// The selected apps, in the order of the cells. `apps` are all apps, sorted by their own id.
    pub(super) fn select<'a>(&'a self, apps: &'a [Arc<Owner>]) -> Vec<Selector<'a>> {
        let projects: HashSet<&str> = self.projects.iter().map(String::as_str).collect();
        let mut selectors: Vec<Selector<'_>> = if self.spans_targets() {
            vec![Selector::default()]
        } else if self.apps.is_empty() {
            projects.into_iter().map(|project| Selector { project: Some(project), app: None }).collect()
        } else {
            let named = self.apps.iter().flat_map(|app| {
                let from = apps.partition_point(|owner| *owner.app < **app);
                apps.iter().skip(from).take_while(move |owner| *owner.app == **app)
            });
            let of_project = |owner: &&Arc<Owner>| projects.is_empty() || projects.contains(&*owner.project);
            let selector =
                |owner: &'a Arc<Owner>| Selector { project: Some(&*owner.project), app: Some(&*owner.app) };
            named.filter(of_project).map(selector).collect()
        };
        selectors.sort_unstable();
        selectors.dedup();
        selectors
    }
}

/// The cells of one app, of a project and its apps, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Selector<'a> {
    project: Option<&'a str>,
    app: Option<&'a str>,
}

impl Selector<'_> {
    /// Whether `cell` is before, among or behind the selected cells.
    fn place(self, cell: &TargetState) -> Ordering {
        let compare =
            |name: &str, wanted: Option<&str>| wanted.map_or(Ordering::Equal, |wanted| name.cmp(wanted));
        let owner = &cell.key.owner;
        compare(&owner.project, self.project).then_with(|| compare(&owner.app, self.app))
    }

    /// Removes the selected cells and those before them from the front of `cells`; returns the selected cells.
    pub(super) fn take<'c>(self, cells: &mut &'c [Arc<TargetState>]) -> &'c [Arc<TargetState>] {
        let (_, from) = split(cells, |cell| self.place(cell).is_lt());
        let (selected, rest) = split(from, |cell| self.place(cell).is_eq());
        *cells = rest;
        selected
    }
}

/// Splits `items` behind the leading items for which `holds` is true, by binary search.
fn split<T>(items: &[T], holds: impl Fn(&T) -> bool) -> (&[T], &[T]) {
    let mut end = 1;
    while items.get(end - 1).is_some_and(&holds) {
        end *= 2;
    }
    items.split_at(items.get(..end).unwrap_or(items).partition_point(holds))
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
    fn a_histogram_is_wanted_by_the_name_of_any_of_its_samples() {
        let family = Family::histogram("pds_x_seconds", &[], "help");
        for (sample, wanted) in [("bucket", true), ("count", true), ("sum", true), ("max", false)] {
            let filter = Filter::parse(Some(&format!("name[]=pds_x_seconds_{sample}")));
            assert_eq!(filter.wants(&family), wanted, "{sample}");
        }
    }

    #[test]
    fn without_our_parameters_the_page_is_whole() {
        for query in [None, Some(""), Some("module=x"), Some("&&=&%")] {
            assert!(Filter::parse(query).is_empty(), "{query:?}");
        }
    }

    #[test]
    fn a_selection_takes_logarithmic_time() {
        let (items, asked): (Vec<u32>, _) = ((0..100_000).collect(), std::cell::Cell::new(0));
        for size in [0, 1, 2, 3, 1_000, 99_999, 100_000, 200_000] {
            asked.set(0);
            let (first, rest) = split(&items, |item| {
                asked.set(asked.get() + 1);
                *item < size
            });
            assert_eq!(
                (first.len(), first.len() + rest.len()),
                (items.len().min(size as usize), items.len())
            );
            assert!(asked.get() <= 2 * (size.max(1).ilog2() + 2), "{} looks for {size}", asked.get());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_read(query in ".*") {
            let _ = Filter::parse(Some(&query));
        }
    }
}
