//! The house's own rules, read from its sources: who may import whom, how long a file is, what needs a reason.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The layers from the ground up. A module imports from lower layers, and from those left of it in its own.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["printable", "error_chain", "clock", "plain_file", "secret", "units"],
    &["catalogue"],
    &["interface"],
    &["config"],
    &["telemetry"],
    &["client", "simulator"],
    &["store", "accounting"],
    &["restore"],
    &["poll"],
    &["status"],
    &["web"],
    &["app", "tool"],
    &["bin"],
];

/// Modules of one layer that do not see each other at all.
const STRANGERS: &[(&str, &str)] = &[("client", "simulator")];

/// What may read files and the environment; all else gets what it needs as an argument.
const READERS: &[(&str, &str)] = &[
    ("src/config/file", "the configuration file"),
    ("src/config/include", "the files it includes"),
    ("src/client/", "token files and trust anchors, which are read again when they change"),
    ("src/accounting/", "the state file"),
    ("src/telemetry/process", "what the system says of this process"),
    ("src/plain_file", "reads for those below"),
    ("src/web/", "the web configuration file and its certificates, read again when they change"),
    ("src/app", "builds everything"),
    ("src/tool", "a program of its own"),
    ("src/bin/", "hands over arguments and environment"),
];

/// Reads of files and of the environment.
const READS: &[&str] = &["std::env", "env::var", "std::fs", "tokio::fs", "fs::read", "File::open"];

/// The most lines of a file before its tests: what fits in the head, and a little more for one long table.
const MAX_FILE_LINES: usize = 380;

/// Words that have no place in sources, each with what to do instead. Put together here, as this file is a
/// source too.
const BANNED: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "do it, or leave it out"),
    (concat!("FIX", "ME"), "fix it"),
    (concat!("Mana", "ger"), "say what it does"),
    (concat!("Help", "er"), "say what it does"),
    (concat!("Ut", "ils"), "say what it does"),
    (concat!("mod com", "mon"), "say what the module is about"),
    (concat!("/wo", "rk/"), "no path of one machine"),
    (concat!("/ro", "ot/"), "no path of one machine"),
];

/// One source file.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The text before its tests.
    fn before_tests(&self) -> &str {
        let end = self.text.find("\n#[cfg(test)]\nmod tests {");
        end.map_or(self.text.as_str(), |end| &self.text[..end])
    }

    /// The modules from the crate's root down to this file: `["poll", "schedule"]`; empty for `lib.rs`.
    fn modules(&self) -> Vec<&str> {
        let inside = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut modules: Vec<_> = inside.split('/').collect();
        modules.retain(|module| !matches!(*module, "mod" | "lib"));
        modules
    }
}

/// All files below `folder` that end in `.rs`, by path.
fn sources(folder: &str) -> Vec<Source> {
    let mut folders = vec![PathBuf::from(folder)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push(Source { path: path.display().to_string(), text });
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!sources.is_empty());
    sources
}

/// Fails with all `complaints`, one a line.
fn assert_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}\n{}", complaints.join("\n"));
}

/// `text` with its comments blanked; lines and places stay.
fn without_comments(text: &str) -> String {
    let code = |line: &str| match line.trim_start().starts_with("//") {
        true => String::new(),
        false => line.split(" // ").next().unwrap_or("").to_owned(),
    };
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// The top-level modules that `text` names by `prefix` (`crate::`), each with its line.
fn named_after<'a>(text: &'a str, prefix: &str) -> Vec<(usize, &'a str)> {
    let mut named = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        if text[..at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before)) {
            continue;
        }
        let line = text[..at].matches('\n').count() + 1;
        let rest = &text[at + prefix.len()..];
        named.extend(first_names(rest).into_iter().map(|name| (line, name)));
    }
    named
}

/// The first segment of a path, or of each path in a group: `a::b` gives a; `{a, b::{c, d}}` gives a and b.
fn first_names(path: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else { return vec![&path[..name(path)]] };
    let mut names = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !c.is_whitespace() => {
                names.push(&group[at..at + name(&group[at..])]);
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// Where a module stands: its layer, and its place in it.
fn place(module: &str) -> Option<(usize, usize)> {
    LAYERS.iter().enumerate().find_map(|(layer, modules)| {
        modules.iter().position(|other| *other == module).map(|place| (layer, place))
    })
}

/// Why `from` must not import `to`, if so.
fn forbidden(from: &str, to: &str) -> Option<String> {
    let (lower, higher) = (place(to)?, place(from)?);
    let strangers = STRANGERS.iter().any(|pair| *pair == (from, to) || *pair == (to, from));
    if strangers {
        Some(format!("{from} and {to} never see each other"))
    } else if lower > higher {
        Some(format!("{from} stands below {to}, and layers import downwards only"))
    } else {
        None
    }
}

/// The complaints about the imports of one source.
fn bad_imports(source: &Source) -> Vec<String> {
    let modules = source.modules();
    let Some(&from) = modules.first() else { return Vec::new() };
    let code = without_comments(&source.text);
    let mut named = named_after(&code, "crate::");
    named.extend(named_after(&code, "pds_exporter::"));
    // So many steps up lead out of the top-level module, in a file as in a module inside it.
    for steps in [modules.len(), modules.len() + 1] {
        named.extend(named_after(&code, &"super::".repeat(steps)));
    }
    let complaint =
        |(line, to): &(usize, &str)| Some(format!("{}:{line}: {}", source.path, forbidden(from, to)?));
    named.iter().filter(|(_, to)| *to != from).filter_map(complaint).collect()
}

#[test]
fn layers_import_downwards_only() {
    let sources = sources("src");
    let unknown: Vec<_> = sources
        .iter()
        .filter_map(|source| source.modules().first().copied().filter(|module| place(module).is_none()))
        .collect();
    assert!(unknown.is_empty(), "modules without a layer: {unknown:?}");
    assert_none("imports against the layers", &sources.iter().flat_map(bad_imports).collect::<Vec<_>>());
}

#[test]
fn an_import_against_the_layers_is_found_in_every_form() {
    let complaints = |path: &str, text: &str| {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        bad_imports(&source)
    };
    for import in [
        "use crate::web::Page;",
        "use crate::{\n    clock::Clock,\n    web::{Page, Form},\n};",
        "fn f() { crate::web::serve() }",
        "use super::super::web::Page;",
        "mod tests { use super::super::super::web::Page; }",
    ] {
        let found = complaints("src/poll/schedule.rs", &format!("//! Page.\n{import}"));
        assert_eq!(
            found,
            ["src/poll/schedule.rs:2: poll stands below web, and layers import downwards only"],
            "{import}"
        );
    }
    assert_eq!(complaints("src/client/mod.rs", "use crate::simulator::Faults;").len(), 1);
    assert_eq!(complaints("src/simulator/mod.rs", "use crate::client::Client;").len(), 1);
    for fine in [
        "use crate::client::Client;",
        "// crate::web is above",
        "use super::web;",
        "use my_crate::web;",
        "use crate::poll::schedule;",
    ] {
        assert_eq!(complaints("src/poll/schedule.rs", fine), [""; 0], "{fine}");
    }
}

#[test]
fn files_fit_in_the_head() {
    let long = |source: &Source| {
        let lines = source.before_tests().lines().count();
        (lines > MAX_FILE_LINES).then(|| format!("{}: {lines} lines before its tests", source.path))
    };
    let complaints: Vec<_> = sources("src").iter().filter_map(long).collect();
    assert_none("files with more than one subject: divide them", &complaints);
}

/// Where a call may be named apart from its own file and its line in the table, each with the reason.
const NAMES_A_CALL: &[(&str, &str)] = &[
    ("src/simulator/calls.rs", "the simulator's answer to each call"),
    ("src/simulator/metrics.rs", "the answers of the metrics calls"),
    ("src/simulator/repository.rs", "the answers about code"),
    ("src/simulator/state.rs", "what calls change starts as the types of their replies"),
    ("src/simulator/blueprint.rs", "an app's settings are a reply"),
    ("src/tool/call/show/", "replies that deserve more than a list of their fields"),
    ("src/tool/top/source.rs", "without a daemon, top asks for settings and response times itself"),
    ("src/tool/check/service/", "what the metrics calls heed is found by asking them"),
    ("src/tool/check/token.rs", "a token is described by the projects that it lists"),
    ("src/status/overview.rs", "the columns of the overview are picked from several replies"),
    ("src/status/detail.rs", "an app's page plots response times and runs"),
    ("src/status/judge.rs", "an app's own error is a reason"),
    ("src/status/settings.rs", "an app's settings are grouped by meaning"),
    ("src/status/changes.rs", "a change of an app's build is a deploy"),
    ("src/store/mod.rs", "the more apps have response times, the shorter their history"),
    ("src/store/target_state/recent.rs", "the trend of the overview follows response times"),
    ("src/store/history.rs", "a point of the trend is picked from response times"),
];

/// Whether `code` names the module of a call: in a path, or where the interface is imported.
fn names_call(code: &str, id: &str) -> bool {
    let is_word = |at: usize, len: usize| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        !code[..at].ends_with(part) && !code[at + len..].starts_with(part)
    };
    code.match_indices(id).any(|(at, id)| {
        let statement = code[..at].rfind([';', '}']).map_or(code, |end| &code[end + 1..]).trim_start();
        let imported = statement.starts_with("use crate::interface::");
        is_word(at, id.len()) && (imported || code[at + id.len()..].starts_with("::"))
    })
}

#[test]
fn a_call_is_named_in_its_file_its_line_its_answer_and_where_it_is_special() {
    let mut complaints = Vec::new();
    let mut needless: Vec<_> = NAMES_A_CALL.iter().map(|(path, _)| *path).collect();
    for source in sources("src") {
        let test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        if test || source.path.ends_with("fixture.rs") {
            continue;
        }
        let code = without_comments(source.before_tests());
        let exempt = NAMES_A_CALL.iter().find(|(path, _)| source.path.starts_with(path));
        for call in pds_exporter::interface::CALLS {
            let resource = call.polled.map(|polled| polled.resource).filter(|name| name.contains('_'));
            let quoted = resource.is_some_and(|resource| code.contains(&format!("\"{resource}\"")));
            let folder = format!("src/interface/{}", call.id);
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
        "use crate::interface::get_app;",
        "use crate::interface::{\n    Number, get_app,\n};",
        "fn f() {}\nuse crate::interface::{get_app, Number};",
        "fn f() { crate::interface::get_app::CALL.id }",
        "let x = &get_app::RESOURCE;",
    ] {
        assert!(names_call(code, "get_app"), "{code}");
    }
    for code in ["struct S { get_app: u8 }", "forget_app::x()", "get_apps::x()", "let get_app = 1;"] {
        assert!(!names_call(code, "get_app"), "{code}");
    }
}

#[test]
fn every_file_opens_with_its_page() {
    let bare = |source: &Source| (!source.text.starts_with("//! ")).then(|| source.path.clone());
    let sources = sources("src").into_iter().chain(sources("tests"));
    let complaints: Vec<_> = sources.filter_map(|source| bare(&source)).collect();
    assert_none("files that do not begin by saying what they are about (//! ...)", &complaints);
}

#[test]
fn every_lint_exception_has_its_reason() {
    let mut complaints = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        let code = without_comments(&source.text);
        for attribute in ["allow", "expect"] {
            for opening in ["#[", "#!["] {
                let opening = format!("{opening}{attribute}(");
                for (at, _) in code.match_indices(&opening) {
                    let end = code[at..].find(")]").map_or(code.len(), |end| at + end);
                    if !code[at..end].contains("reason = ") {
                        let line = code[..at].matches('\n').count() + 1;
                        complaints.push(format!("{}:{line}: {attribute} without a reason", source.path));
                    }
                }
            }
        }
    }
    assert_none("lint exceptions say why", &complaints);
}

#[test]
fn only_the_named_parts_read_files_and_the_environment() {
    let mut complaints = Vec::new();
    for source in sources("src") {
        if READERS.iter().any(|(path, _)| source.path.starts_with(path)) {
            continue;
        }
        let code = without_comments(source.before_tests());
        for (number, line) in code.lines().enumerate() {
            if let Some(read) = READS.iter().find(|read| line.contains(*read)) {
                complaints.push(format!("{}:{}: {read}", source.path, number + 1));
            }
        }
    }
    let mut rule = "files and environment are read only by".to_owned();
    for (path, what) in READERS {
        write!(rule, "\n  {path}: {what}").unwrap();
    }
    assert_none(&rule, &complaints);
}

#[test]
fn no_source_holds_a_banned_word() {
    let mut texts = sources("src");
    texts.extend(sources("tests"));
    let pages = [".", "docs"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    for page in pages.map(|entry| entry.unwrap().path()) {
        let name = page.strip_prefix("./").unwrap_or(&page);
        if name.extension().is_some_and(|extension| extension == "md" || extension == "toml") {
            let text = std::fs::read_to_string(Path::new(name)).unwrap();
            texts.push(Source { path: name.display().to_string(), text });
        }
    }
    let mut complaints = Vec::new();
    for source in &texts {
        for (number, line) in source.text.lines().enumerate() {
            for (word, instead) in BANNED.iter().filter(|(word, _)| line.contains(word)) {
                complaints.push(format!("{}:{}: {word}: {instead}", source.path, number + 1));
            }
        }
    }
    assert_none("words that have no place here", &complaints);
}
