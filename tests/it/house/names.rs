//! Names that stand in one place: those of calls and of metric families.

use super::{assert_none, house, without_comments};

/// Where a call may be named apart from its own file and its line in the table, each with the reason.
const NAMES_A_CALL: &[(&str, &str)] = &[
    ("crates/pds-simulator/src/calls.rs", "the simulator's answer to each call"),
    ("crates/pds-simulator/src/metrics.rs", "the answers of the metrics calls"),
    ("crates/pds-simulator/src/repository.rs", "the answers about code"),
    ("crates/pds-simulator/src/state.rs", "what calls change starts as the types of their replies"),
    ("crates/pds-simulator/src/blueprint.rs", "an app's settings are a reply"),
    ("crates/pdstool/src/call/show/", "replies that deserve more than a list of their fields"),
    ("crates/pdstool/src/check/service/", "what the metrics calls heed is found by asking them"),
    ("crates/pdstool/src/init/", "a first configuration has the projects and apps that the service knows"),
    ("crates/pdstool/src/service.rs", "a token is described by the projects that it lists"),
    ("src/status/overview.rs", "the columns of the overview are picked from several replies"),
    ("src/status/detail.rs", "an app's page plots response times and runs"),
    (
        "src/status/view.rs",
        "an id that the service does not know is compared with those that the token lists",
    ),
    ("src/status/judge.rs", "an app's own error is a reason"),
    ("src/status/settings.rs", "an app's settings are grouped by meaning"),
    ("src/store/mod.rs", "the more apps have response times, the shorter their history"),
    ("src/store/target_state.rs", "the trend of the overview follows response times"),
    ("src/store/six_hours.rs", "a point of the trend is picked from response times"),
];

/// Whether `code` names the module of a call: in a path, or where the interface is imported.
fn names_call(code: &str, id: &str) -> bool {
    let is_word = |at: usize, len: usize| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        !code[..at].ends_with(part) && !code[at + len..].starts_with(part)
    };
    code.match_indices(id).any(|(at, id)| {
        let statement = code[..at].rfind([';', '}']).map_or(code, |end| &code[end + 1..]).trim_start();
        let imported =
            ["use pds_interface::", "use crate::"].iter().any(|start| statement.starts_with(start));
        is_word(at, id.len()) && (imported || code[at + id.len()..].starts_with("::"))
    })
}

#[test]
fn a_call_is_named_in_its_file_its_line_its_answer_and_where_it_is_special() {
    let mut complaints = Vec::new();
    let mut needless: Vec<_> = NAMES_A_CALL.iter().map(|(path, _)| *path).collect();
    for source in house() {
        let test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        if test || source.path.ends_with("fixture.rs") {
            continue;
        }
        let code = without_comments(source.before_tests());
        let exempt = NAMES_A_CALL.iter().find(|(path, _)| source.path.starts_with(path));
        for call in pds_interface::CALLS {
            let resource = call.polled.map(|polled| polled.resource).filter(|name| name.contains('_'));
            let quoted = resource.is_some_and(|resource| code.contains(&format!("\"{resource}\"")));
            let folder = format!("crates/pds-interface/src/{}", call.id);
            let own = source.path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with(['.', '/']));
            if own || !(quoted || names_call(&code, call.id)) {
                continue;
            }
            match exempt {
                Some((path, _)) => needless.retain(|other| other != path),
                None => complaints.push(format!("{}: {}", source.path, call.id)),
            }
        }
    }
    assert_none("a call is named apart from where it belongs", &complaints);
    assert!(needless.is_empty(), "exempt, but name no call: {needless:?}");
}

#[test]
fn a_call_that_is_named_is_found_in_every_form() {
    for code in [
        "use pds_interface::get_app;",
        "use pds_interface::{\n    Number, get_app,\n};",
        "fn f() {}\nuse pds_interface::{get_app, Number};",
        "fn f() { pds_interface::get_app::CALL.id }",
        "let x = &get_app::RESOURCE;",
    ] {
        assert!(names_call(code, "get_app"), "{code}");
    }
    for code in ["struct S { get_app: u8 }", "forget_app::x()", "get_apps::x()", "let get_app = 1;"] {
        assert!(!names_call(code, "get_app"), "{code}");
    }
}

#[test]
fn the_name_of_a_family_is_only_in_its_declaration() {
    let groups = pds_telemetry::catalogue::catalogue();
    let names: Vec<String> = groups
        .iter()
        .flat_map(|group| &group.families)
        .filter(|family| family.name.starts_with("pds_"))
        .map(|family| format!("\"{}\"", family.name))
        .collect();
    let mut complaints = Vec::new();
    let mut declared = 0;
    for source in house() {
        if source.path.ends_with("tests.rs") || source.path.contains("/tests/") {
            continue;
        }
        // Prometheus is asked for series by name.
        if source.path.starts_with("crates/pds-ledger/src/restore/") {
            continue;
        }
        let code = without_comments(source.before_tests());
        let is_layer_of_families = ["interface", "telemetry", "store", "ledger"]
            .contains(&source.modules().first().copied().unwrap_or_default());
        for name in names.iter().filter(|name| code.contains(name.as_str())) {
            match is_layer_of_families && code.matches(name.as_str()).count() == 1 {
                true => declared += 1,
                false => complaints.push(format!("{}: {name}", source.path)),
            }
        }
    }
    assert_none("use the constant of the family", &complaints);
    assert_eq!(declared, names.len(), "each name stands once");
}
