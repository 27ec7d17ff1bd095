//! Settings in the environment of the running exporter.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use super::{TOKEN, ended};
use crate::process::{Alone, Exporter};

const ANOTHER: u32 = 65_534;

#[test]
fn the_variables_of_the_running_exporter_apply_to_its_file() {
    for (user, code) in [(None, 0), (Some(ANOTHER), 78)] {
        let alone = Alone::new();
        std::fs::set_permissions(alone.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
        let [file, other] = ["pds-exporter.toml", "other.toml"].map(|name| alone.path(name));
        for file in [&file, &other] {
            std::fs::write(file, "[[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n").unwrap();
        }
        let mut daemon = alone.daemon();
        daemon.arg("--config.file").arg(&file);
        daemon
            .env("PDS_EXPORTER__API__BASE_URL", "http://127.0.0.1:1")
            .env("PDS_EXPORTER__API__TOKEN", TOKEN);
        if let Some(user) = user {
            daemon.uid(user).gid(user);
        }
        let _daemon = Exporter::of(daemon);
        let run = |args: &[&str], file: &std::path::Path| {
            let output = alone.pdstool(args).arg(file).current_dir("/").output().unwrap();
            (output.status.code(), ended(&output))
        };
        let (found, said) = run(&["check", "config"], &file);
        assert_eq!(found, Some(code), "{said}");
        assert_eq!(
            said.contains("may set keys in its environment: run pdstool as its user"),
            code != 0,
            "{said}"
        );
        let (_, said) = run(&["doctor", "--config.file"], &file);
        assert_eq!(said.contains("pds-exporter.toml is valid"), code == 0, "{said}");
        assert_eq!(
            said.contains("If the environment of the running exporter sets this key"),
            code != 0,
            "{said}"
        );
        let (found, said) = run(&["check", "config"], &other);
        assert!(found == Some(78) && !said.contains("its environment"), "another file: {said}");
    }
}
