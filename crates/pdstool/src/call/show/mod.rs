//! Replies for people: facts and tables with their units, a bar for a distribution.
//!
//! [`view`] has a line for each call whose reply deserves more than a list of its fields. No field is lost: a view takes
//! the fields that it shows out of the reply, and the rest follows unchanged.

mod app;
pub(super) mod fields;
mod metrics;

use crate::output::{Block, Table};
use pds_core::units;
use pds_interface::{Call, DecodeError, ReplyBody as _, payment_url, response_time, run_execution_time};

use super::raw::Raw;
use fields::further;

/// A longer text is a file's content, not a fact about it.
const FACT: usize = 60;

/// The reply of `call` for people.
///
/// # Errors
/// If the reply violates the interface.
pub fn view(call: &Call, body: &[u8]) -> Result<Vec<Block>, DecodeError> {
    let mut fields = Raw::of(body);
    Ok(match call.id {
        "list_projects" => {
            let columns = [("ID", &["id"][..]), ("NAME", &["name"]), ("ROLE", &["role"])];
            listed(fields, "", columns, "no projects")
        }
        // The interface names no field of a domain.
        "list_domains" => {
            let columns = [
                ("DOMAIN", &["domain", "name", "hostname"][..]),
                ("STATUS", &["validationStatus", "validation_status", "status", "state"]),
                ("APP", &["appId", "app_id", "app"]),
                ("ID", &["id"]),
            ];
            listed(fields, "domains", columns, "no custom domains")
        }
        "volume_alerts" => volume_alerts(fields),
        "get_app" => app::view(fields),
        "delete_app" => match &*String::decode(body)? {
            "" => text("The app was deleted."),
            message => text(message),
        },
        "response_time" => {
            metrics::response_time(&response_time::Reply::decode(body)?.data, fields.inside("data"))
        }
        "run_execution_time" => {
            metrics::run_execution_time(&run_execution_time::Reply::decode(body)?.data, fields.inside("data"))
        }
        "change_plan" => change_plan(fields),
        // The checkout URL alone, so that it can be passed on.
        "payment_url" => text(&payment_url::Reply::decode(body)?.0),
        "zip_contents" => zip_contents(fields),
        "file_tree" => file_tree(fields),
        "branches" => {
            let columns = [
                ("BRANCH", &["name"][..]),
                ("DEFAULT", &["default"]),
                ("PROTECTED", &["protected"]),
                ("SHA", &["sha"]),
            ];
            listed(fields, "branches", columns, "no branches")
        }
        "validate_domain" => {
            let message = Block::Text(fields.text("message"));
            fields.without(&["success"]).after(vec![message])
        }
        "unassign_domain" => text("The domain was unassigned."),
        "delete_domain" => text("The domain was deleted."),
        _ => fields.all(),
    })
}

/// The reason, if the call succeeded but its action did not.
pub fn failure(call: &Call, body: &[u8]) -> Option<&'static str> {
    let is_refused = call.id == "validate_domain" && Raw::of(body).text("success") == "false";
    is_refused.then_some("the domain is not validated")
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.to_owned())]
}

/// The entries of the field `list`, or of the reply itself, in these columns: each with possible field names in order of
/// preference. Their other fields follow.
fn listed<const N: usize>(
    mut fields: Raw,
    list: &str,
    columns: [(&'static str, &[&str]); N],
    empty: &'static str,
) -> Vec<Block> {
    let entries = if list.is_empty() { std::mem::take(&mut fields) } else { fields.take(list) };
    let mut others = Vec::new();
    let row = |(at, entry): (usize, &Raw)| {
        let mut entry = entry.clone();
        let mut first = |(_, names): (_, &[&str])| {
            let texts = names.iter().map(|name| entry.text(name));
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
        };
        let row = columns.map(&mut first).to_vec();
        let number = format!("#{}", at + 1);
        let owner = row.iter().find(|cell| !cell.is_empty()).unwrap_or(&number);
        others.extend(entry.flat().into_iter().map(|(name, value)| (format!("{owner} {name}"), value)));
        row
    };
    let rows: Vec<_> = entries.each().iter().enumerate().map(row).collect();
    let table = Table::of_texts(columns.map(|(title, _)| title), rows, empty);
    others.extend(fields.flat());
    further(vec![Block::Table(table)], others)
}

/// The percentages at which the owner gets an email.
fn volume_alerts(mut fields: Raw) -> Vec<Block> {
    let percentage = |threshold: &Raw| threshold.number().map_or("?".to_owned(), |v| format!("{v} %"));
    let sentence = match fields.take("thresholds").each() {
        [] => "Alerts are disabled.".to_owned(),
        thresholds => {
            let percentages = thresholds.iter().map(percentage).collect::<Vec<_>>().join(", ");
            format!("The project's owner gets an email when storage use reaches {percentages}.")
        }
    };
    fields.after(vec![Block::Text(sentence)])
}

fn change_plan(mut fields: Raw) -> Vec<Block> {
    let sentence = match &*fields.text("redirectUrl") {
        "" => "The plan was changed; no payment is due.".to_owned(),
        url => format!("To complete the payment, open\n{url}"),
    };
    fields.after(vec![Block::Text(sentence)])
}

fn zip_contents(mut fields: Raw) -> Vec<Block> {
    let heading = Block::Heading(format!("Build {}", fields.text("id")));
    let table = Table::of_texts(["FILE", "CONTENT"], files("", &fields.take("zipFiles")), "no files");
    fields.after(vec![heading, Block::Table(table)])
}

/// The files of a build's archive. Their structure is unknown, so nested objects are treated as folders.
fn files(folder: &str, entries: &Raw) -> Vec<Vec<String>> {
    let rows = |(name, value): (&String, &Raw)| {
        let path = format!("{folder}{name}");
        match value {
            Raw::Fields(inside) if !inside.is_empty() => files(&format!("{path}/"), value),
            Raw::Text(text) if text.chars().count() > FACT || text.contains('\n') => {
                vec![vec![path, format!("{} bytes of text", text.len())]]
            }
            value => vec![vec![path, value.cell()]],
        }
    };
    entries.fields().into_iter().flatten().flat_map(rows).collect()
}

/// The paths of a repository's file tree, whether the reply nests its entries or lists their paths. The fields of its
/// entries are unknown: an entry without a path or name is shown as received.
fn file_tree(mut fields: Raw) -> Vec<Block> {
    let mut lines = Vec::new();
    add_paths(fields.take("tree").each(), "", &mut lines);
    let noun = |count: f64| if count == 1.0 { "entry" } else { "entries" };
    let count = fields.take("totalCount").number();
    let count = count.map(|count| format!("{} {}", units::rounded(count), noun(count)));
    let cut = (fields.text("truncated") == "true").then(|| "the service truncated the tree".to_owned());
    let summary = count.into_iter().chain(cut).collect::<Vec<_>>().join("; ");
    fields.after(vec![Block::Text(lines.join("\n")), Block::Text(summary)])
}

/// Adds the path of each entry and of the entries below it. A path may begin with the path of its `parent`.
fn add_paths(entries: &[Raw], parent: &str, lines: &mut Vec<String>) {
    for entry in entries {
        let text = |names: &[&str]| names.iter().find_map(|name| entry.text_of(name));
        let own =
            text(&["path", "name"]).map_or_else(|| entry.cell(), |path| path.trim_matches('/').to_owned());
        let is_whole =
            own.strip_prefix(parent).is_some_and(|rest| parent.is_empty() || rest.starts_with('/'));
        let path = if is_whole { own } else { format!("{parent}/{own}") };
        let below = ["children", "tree", "entries"].map(|name| entry.inside(name));
        let below = below.iter().find(|below| matches!(below, Raw::List(_)));
        let is_folder = matches!(text(&["type", "kind"]), Some("tree" | "dir" | "directory"));
        lines.push(format!("{path}{}", if is_folder || below.is_some() { "/" } else { "" }));
        add_paths(below.map_or(&[], Raw::each), &path, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::CALLS;
    use pds_interface::polled::Terms;

    #[test]
    fn a_reply_that_a_poll_can_read_can_be_shown() {
        for (call, polled) in CALLS.iter().filter_map(|call| Some((call, call.polled.as_ref()?))) {
            let field =
                |value: &str| ["domains", "thresholds", "data"].map(|name| format!("{{\"{name}\":{value}}}"));
            let fields = ["null", "[]", "{}", "8", "\"x\"", "[null]", "[{}]"].map(field).concat();
            let is_good = |reply: &&str| call.judge(reply.as_bytes(), &Terms::default()).is_ok();
            for reply in fields.iter().map(String::as_str).chain(["[]", polled.example]).filter(is_good) {
                assert!(view(call, reply.as_bytes()).is_ok(), "{} {reply}", call.id);
            }
        }
    }

    #[test]
    fn a_column_shows_the_first_field_that_has_a_value_and_others_follow() {
        let domains =
            r#"{"domains":[{"validationStatus":"","status":"valid","record":{"type":"TXT"}},{"x":1}]}"#;
        let branches = r#"{"branches":[{"name":"main","default":true,"url":"https://x"}],"page":1}"#;
        for (id, reply, rows, further) in [
            ("list_domains", domains, "|valid||/|||", "valid record.type|TXT/#2 x|1"),
            ("branches", branches, "main|true||", "main url|https://x/page|1"),
        ] {
            let call = CALLS.iter().find(|call| call.id == id).unwrap();
            let blocks = view(call, reply.as_bytes()).unwrap();
            let [Block::Table(table), Block::Heading(_), Block::Table(others)] = &blocks[..] else {
                panic!("{blocks:?}")
            };
            let text =
                |table: &Table| table.rows.iter().map(|row| row.join("|")).collect::<Vec<_>>().join("/");
            assert_eq!([text(table), text(others)], [rows, further], "{id}");
        }
    }

    #[test]
    fn names_and_paths_mix() {
        let tree = r#"[{"name":"src","type":"dir","children":[{"name":"io","children":[{"path":"src/io/load.py"},{"name":"a"},"b"]},
            {"path":"/src/main.py"}]},{"path":"src2/x"}]"#;
        let blocks = file_tree(Raw::of(format!("{{\"tree\":{tree}}}").as_bytes()));
        let paths = "src/\nsrc/io/\nsrc/io/load.py\nsrc/io/a\nsrc/io/b\nsrc/main.py\nsrc2/x";
        assert_eq!(blocks[0], Block::Text(paths.to_owned()));
    }
}
