//! Answers to the calls about code: branches and files of repositories, and contents of build archives.

use serde_json::{Map, Value, json};

use pds_interface::Number;
use pds_interface::branches::{Branch, BranchesReply};
use pds_interface::file_tree::FileTreeReply;
use pds_interface::zip_contents::ZipContentsReply;

use super::answer::{Answer, Answered};
use super::blueprint;
use super::chance::hash;
use super::routes::CallRequest;

/// The owner of the repositories. Each app has one, named like the app without its project.
pub(super) const OWNER: &str = "acme";

/// The branches of a repository: name, and whether protected. The first is the default.
const BRANCHES: [(&str, bool); 3] = [("main", true), ("develop", false), ("feature/tail-latency", false)];

/// The files of a repository.
const FILES: [&str; 7] = [
    "README.md",
    "pyproject.toml",
    "src/__init__.py",
    "src/main.py",
    "src/model/load.py",
    "src/model/predict.py",
    "tests/test_main.py",
];

/// The number of the repository's app.
fn repository(request: &CallRequest) -> Answered<usize> {
    let id = format!("{}-{}", request.project, request.id("repo"));
    let app =
        request.world.state(|state| state.projects.get(&request.project)?.apps.get(id.as_str()).copied());
    match app.filter(|_| request.id("owner") == OWNER) {
        Some(app) => Ok(app.number),
        None => Err(Answer::no_such("repository")),
    }
}

/// The newest commit of a branch.
fn sha(request: &CallRequest, repository: usize, branch: usize) -> String {
    let start = [request.world.settings().seed, 10, repository as u64, branch as u64];
    let part = |part: u64| format!("{:016x}", hash(&[hash(&start), part]));
    let mut sha: String = (0..3).map(part).collect();
    sha.truncate(40);
    sha
}

pub(super) fn branches(request: &CallRequest) -> Answered<BranchesReply> {
    let repository = repository(request)?;
    let branch = |(index, (name, protected)): (usize, &(&str, bool))| Branch {
        name: (*name).into(),
        protected: Value::Bool(*protected),
        default: Value::Bool(index == 0),
        sha: sha(request, repository, index).into(),
    };
    let branches = BRANCHES.iter().enumerate().map(branch).collect();
    Ok(BranchesReply { branches })
}

pub(super) fn file_tree(request: &CallRequest) -> Answered<FileTreeReply> {
    let repository = repository(request)?;
    if let Some(wanted) = request.value("ref") {
        let mut known = BRANCHES.iter().enumerate();
        if !known.any(|(index, (name, _))| *name == wanted || sha(request, repository, index) == wanted) {
            return Err(Answer::no_such("branch or commit"));
        }
    }
    let (tree, count) = match request.value("path").unwrap_or_default().trim_matches('/') {
        "" => tree(""),
        directory => tree(&format!("{directory}/")),
    };
    if count == 0 {
        return Err(Answer::no_such("directory"));
    }
    let total_count = Number::Value(f64::from(count));
    Ok(FileTreeReply { tree, total_count, truncated: Some(false) })
}

/// Entries of a directory (`src/`; empty for the root), and their number at any depth.
fn tree(directory: &str) -> (Vec<Value>, u32) {
    let mut paths: Vec<_> = FILES.iter().filter_map(|path| path.strip_prefix(directory)).collect();
    paths.dedup_by_key(|path| path.split('/').next());
    let mut count = 0;
    let entry = |path: &str| {
        let (name, is_directory) = path.split_once('/').map_or((path, false), |(name, _)| (name, true));
        let path = format!("{directory}{name}");
        count += 1;
        if !is_directory {
            return json!({ "name": name, "path": path, "type": "file" });
        }
        let (children, inside) = tree(&format!("{path}/"));
        count += inside;
        json!({ "name": name, "path": path, "type": "directory", "children": children })
    };
    (paths.into_iter().map(entry).collect(), count)
}

pub(super) fn zip_contents(request: &CallRequest) -> Answered<ZipContentsReply> {
    let (app, id) = (request.app()?, request.id("build_id"));
    let builds = blueprint::builds(request.world.settings().seed, app.number);
    let Some(age) = builds.iter().position(|build| build == id) else {
        return Err(Answer::no_such("build"));
    };
    // Older builds had fewer files.
    let files = FILES.iter().take(FILES.len() - age).enumerate();
    let zip_files: Map<String, Value> =
        files.map(|(index, path)| ((*path).to_owned(), json!({ "size": 400 * (index + 1) }))).collect();
    Ok(ZipContentsReply { id: id.into(), zip_files })
}
