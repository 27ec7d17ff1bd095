//! Completion in real shells, loaded as packages install it.

use std::path::{Path, PathBuf};

use super::terminal::Terminal;
use super::{pdstool, stdout};
use crate::tools::tool;

const CONFIG: &str = r#"
[api]
base_url = "https://api.example.com"
token = "t"
[[projects]]
id = "p-first"
apps = ["p-first-ranker", "p-first-embed"]
[[projects]]
id = "p-other"
apps = ["p-other-search"]
"#;

/// Shells by name, each with the program that a terminal runs and the file that a package installs.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "bash --norc -i", "pdstool"),
    ("zsh", "zsh -f -i", "_pdstool"),
    ("fish", "fish --private --no-config", "pdstool.fish"),
];

/// A shell in a folder with a configuration, with the completions where it looks for them.
struct Shell {
    terminal: Terminal,
    folder: tempfile::TempDir,
    /// Tabs after which alternatives are listed.
    tabs: usize,
}

impl Shell {
    fn start((name, program, file): (&str, &str, &str), config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("completions")).unwrap();
        let script = pdstool(&["completions", name]).output().unwrap().stdout;
        std::fs::write(at("completions").join(file), script).unwrap();
        std::fs::write(at("pds-exporter.toml"), config).unwrap();
        let program_file = crate::process::pdstool();
        let bin = Path::new(&program_file).parent().unwrap();
        let (program, options) = program.split_once(' ').unwrap();
        let program: PathBuf = tool(program);
        let command = format!(
            "cd {folder}; export HOME={folder} PS1='$ ' LANG=C.UTF-8 PATH={bin}:$PATH; exec {program} {options}",
            folder = folder.path().display(),
            bin = bin.display(),
            program = program.display(),
        );
        let terminal = Terminal::of_size(&format!("{name}-{}", config.len()), &command, 160, 40);
        // As bash-completion, zsh's compinit and fish load it: on demand by the command's name.
        let load = match name {
            "bash" => "load() { . completions/$1; return 124; }; complete -D -F load; PS1='$ '; echo loaded",
            "zsh" => {
                "fpath=($PWD/completions $fpath); autoload -U compinit; compinit -u; PS1='$ '; echo loaded"
            }
            _ => {
                "set -p fish_complete_path $PWD/completions; function fish_prompt; echo -n '$ '; end; echo loaded"
            }
        };
        terminal.types(load);
        terminal.keys(&["Enter"]);
        terminal.wait_for("the prompt", |screen| screen.lines().any(|line| line.trim() == "loaded"));
        Self { terminal, folder, tabs: if name == "bash" { 2 } else { 1 } }
    }

    /// Types `line` and Tab on a clear screen, and waits for what is wanted.
    fn completes(&self, line: &str, tabs: usize, wanted: impl Fn(&str) -> bool) -> String {
        self.terminal.keys(&["C-u", "C-l"]);
        let typed = format!("$ {line}");
        self.terminal.wait_for("an empty line", |screen| screen.trim() == "$");
        self.terminal.types(line);
        self.terminal.wait_for(line, |screen| screen.contains(&typed));
        self.terminal.keys(&["Tab"; 2][..tabs]);
        self.terminal.wait_for(&format!("completion of {line}"), wanted)
    }
}

#[test]
fn shells_complete_the_ids_of_the_configuration() {
    for shell in SHELLS {
        let shell = Shell::start(shell, CONFIG);
        for (line, offered) in [
            ("pdstool check token --project p-f", &["--project p-first"][..]),
            ("pdstool call app get p-", &["p-first-ranker", "p-first-embed", "p-other-search"]),
            ("pdstool check token --project p-other --app p-", &["--app p-other-search"]),
            ("pdstool backfill --app p-first-r", &["--app p-first-ranker"]),
            ("pdstool apps --filter p-o", &["--filter p-other"]),
            ("pdstool apps p-first-r", &["apps p-first-ranker"]),
            ("pdstool check web-con", &["check web-config"]),
            ("pdstool status --ou", &["--output"]),
        ] {
            let tabs = if offered.len() > 1 { shell.tabs } else { 1 };
            shell.completes(line, tabs, |screen| offered.iter().all(|offered| screen.contains(offered)));
        }
        let other = shell.folder.path().join("other.toml");
        std::fs::write(other, CONFIG.replace("p-first", "p-moved")).unwrap();
        let line = "pdstool doctor --config.file oth";
        shell.completes(line, 1, |screen| screen.contains("--config.file other.toml"));
        let line = "pdstool check token --config.file other.toml --project p-m";
        shell.completes(line, 1, |screen| screen.contains("--project p-moved"));
    }
}

#[test]
fn a_broken_configuration_offers_no_ids_and_leaves_the_line_alone() {
    for shell in SHELLS {
        let shell = Shell::start(shell, "[api\nbase_url = 5");
        shell.completes("pdstool call app get p-", 1, |_| true);
        shell.terminal.types("END");
        let screen = shell.terminal.wait_for("the line", |screen| screen.contains("p-END"));
        assert!(!screen.contains("error") && !screen.contains("base_url"), "{screen}");
    }
}

#[test]
fn the_daemon_has_its_own_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let daemon = stdout(&pdstool(&["completions", shell, "--of", "pds-exporter"]).output().unwrap());
        assert!(daemon.contains("web.listen-address") && !daemon.contains("pdstool"), "{shell}: {daemon}");
        let tool = stdout(&pdstool(&["completions", shell]).output().unwrap());
        assert!(tool.contains("PDSTOOL_COMPLETE"), "{shell}: {tool}");
    }
    assert_eq!(pdstool(&["completions", "no-shell"]).output().unwrap().status.code(), Some(2));
}
