//! The doctor tries the state file and its folder as the daemon uses them.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use super::super::{Service, ended, pdstool};
use super::{Patient, WELL, answering, polling};
use crate::client::server::ok;
use crate::process::{Alone, Exporter, assert_has, mounted};

/// A configuration with a state file whose service cannot be reached.
const UNREACHABLE: &str = "[api]\nbase_url = \"http://127.0.0.1:1\"\ntoken = \"hunter2-the-token\"\n[state]\npath = \"state\"\n\
                           [[projects]]\nid = \"p-1\"\napps = [\"p-1-a\"]\n";

#[test]
fn a_state_file_that_no_daemon_could_use_is_a_problem() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let file = patient.path("state");
    let text = polling(&service, "[state]\npath = \"state\"\n");
    let absent = patient.examined(&text);
    assert_eq!(absent.code, Some(0), "{:#}", absent.json);
    absent.says("state file", "does not exist yet");
    let is_root = rustix::process::geteuid().is_root();
    let proves_nothing = absent.json.to_string().contains("root may read and write it");
    assert_eq!(proves_nothing, is_root, "{:#}", absent.json);
    let homeless = patient.examined(&text.replace("\"state\"", "\"nowhere/state\""));
    assert!(homeless.only().1.ends_with("/nowhere does not exist"), "{:#}", homeless.json);
    std::fs::write(&file, "not a database").unwrap();
    let found = patient.examined(&text);
    assert!(found.only().1.contains("is damaged"), "{:#}", found.json);
    assert_eq!(std::fs::read(&file).unwrap(), b"not a database", "nothing is changed");
    std::fs::remove_file(&file).unwrap();
    let web = patient.path("web.yml");
    std::fs::write(&web, "tls_server_config: 3\n").unwrap();
    let found = patient.examined_by(&text, |command| command.arg("--web.config.file").arg(&web));
    let (check, said, remedy) = found.only();
    assert!(check == "web configuration" && said.contains("web.yml"), "{said}");
    assert_eq!(remedy, pds_diagnosis::cause::WEB_CONFIG_REFUSED.remedy);
    let elsewhere = patient.path("elsewhere");
    let mut command = pdstool(&["doctor", "-o", "json", "--exporter", &patient.exporter.url()]);
    command.arg("--config.file").arg(patient.path("pds-exporter.toml")).arg("--state.path").arg(&elsewhere);
    let output = ended(&command.output().unwrap());
    assert!(output.contains("elsewhere does not exist yet"), "the flag of the daemon counts: {output}");
}

#[test]
fn a_locked_state_file_is_a_problem_unless_a_daemon_that_uses_it_answers() {
    let service = Service::start(answering);
    let text = polling(&service, "[state]\npath = \"state\"\n");
    let other = WELL.replacen('{', r#"{"service":{"base_url":"https://other/"},"#, 1);
    for (status, is_held) in [(WELL.to_owned(), true), (other, false)] {
        let status: &str = status.leak();
        let patient = Patient { exporter: Service::start(move |_| ok(status)), ..Patient::new() };
        let lock = std::fs::File::create(patient.path("state.lock")).unwrap();
        lock.lock().unwrap();
        let found = patient.examined(&text);
        if is_held {
            found.says("state file", "is in use by a running daemon");
            assert_eq!(found.code, Some(0), "{:#}", found.json);
        } else {
            let (check, said, remedy) = found.only();
            assert!(check == "state file" && said.contains("is in use by another process"), "{said}");
            assert!(remedy.starts_with("Stop the process"), "{remedy}");
        }
    }
}

#[test]
fn a_daemon_with_another_configuration_is_another_process() {
    let alone = Alone::new();
    let [file, other] = ["one.toml", "other.toml"].map(|name| alone.path(name));
    for file in [&file, &other] {
        std::fs::write(file, UNREACHABLE).unwrap();
    }
    let mut daemon = alone.daemon();
    daemon.arg("--config.file").arg(&file);
    let daemon = Exporter::of(daemon);
    let doctor = ["doctor", "--config.file"];
    for (file, part) in [(&file, "is in use by a running daemon"), (&other, "is in use by another process")] {
        let said = ended(&alone.pdstool(&doctor).arg(file).args(["-o", "json"]).output().unwrap());
        assert!(said.contains(part), "{said}");
    }
    drop(daemon);
    let lock = std::fs::File::open(alone.path("state.lock")).unwrap();
    lock.lock().unwrap();
    let said = ended(&alone.pdstool(&doctor).arg(&file).output().unwrap());
    assert!(said.contains("in use by another process") && said.contains("no daemon at "), "{said}");
}

#[test]
fn the_daemon_with_this_configuration_is_preferred_to_one_that_started_before() {
    let alone = Alone::new();
    let daemons = ["one", "two"].map(|name| {
        let file = alone.path(&format!("{name}.toml"));
        std::fs::write(&file, UNREACHABLE.replace("\"state\"", &format!("\"{name}\""))).unwrap();
        let mut daemon = alone.daemon();
        daemon.arg("--config.file").arg(&file);
        (file, Exporter::of(daemon))
    });
    for (file, _) in &daemons {
        let said = ended(&alone.pdstool(&["doctor", "--config.file"]).arg(file).output().unwrap());
        assert_has(&said, &["is in use by a running daemon"]);
    }
}

#[test]
fn the_state_file_of_the_running_daemon_is_that_of_its_flag() {
    let alone = Alone::new();
    let file = alone.path("pds-exporter.toml");
    std::fs::write(&file, UNREACHABLE).unwrap();
    let lock = std::fs::File::create(alone.path("state.lock")).unwrap();
    lock.lock().unwrap();
    let mut daemon = alone.daemon();
    daemon.args(["--state.path", "other"]).current_dir(alone.path(""));
    let _daemon = Exporter::of(daemon);
    let examined = |args: &[&str]| {
        let mut doctor = alone.pdstool(&["doctor", "-o", "json", "--config.file"]);
        ended(&doctor.arg(&file).args(args).output().unwrap())
    };
    let [other, state] = ["other", "state"].map(|name| alone.path(name).display().to_string());
    assert_has(&examined(&[]), &[&format!("{other} is in use by a running daemon")]);
    assert_has(&examined(&["--state.path", &other]), &[&format!("{other} is in use by a running daemon")]);
    assert_has(&examined(&["--state.path", &state]), &[&format!("{state} is in use by another process")]);
}

#[test]
fn a_folder_where_no_file_can_be_created_is_a_problem() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let text = polling(&service, "[state]\npath = \"/proc/state\"\n");
    let found = patient.examined(&text);
    assert_eq!(found.only().0, "state file", "{:#}", found.json);
    let folder = patient.path("disk");
    std::fs::create_dir(&folder).unwrap();
    let fill = "mount -t tmpfs -o nr_inodes=2 tmpfs \"$0\" && touch \"$0/full\"";
    let found = patient.examined_by(&text.replace("/proc/state", "disk/state"), |command| {
        *command = mounted(fill, &folder, command);
        command
    });
    let (_, said, remedy) = found.only();
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(remedy, "Free space and inodes on that disk.");
}

#[test]
fn an_unwritable_folder_is_not_reported_as_a_full_disk() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let folder = patient.path("theirs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(patient.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = polling(&service, "[state]\npath = \"theirs/state\"\n");
    // Root may write everywhere; the daemon's user may not.
    let found = patient.examined_by(&text, |command| command.uid(65_534).gid(65_534));
    let (check, text, remedy) = found.only();
    let said = format!("the folder {} cannot be written: Permission denied (os error 13)", folder.display());
    assert_eq!((check, text), ("state file", &*said));
    assert!(remedy.starts_with("Make it writable for the daemon's user"), "{remedy}");
}

#[test]
fn a_full_disk_is_not_reported_as_missing_permissions() {
    let patient = Patient::new();
    let service = Service::start(answering);
    let folder = patient.path("disk");
    std::fs::create_dir(&folder).unwrap();
    let text = polling(&service, "[state]\npath = \"disk/state\"\n");
    let fill = "mount -t tmpfs -o size=8k tmpfs \"$0\" && head -c 8192 /dev/zero >\"$0/full\"";
    let found = patient.examined_by(&text, |command| {
        *command = mounted(fill, &folder, command);
        command
    });
    let said = format!("no space is left for {}: 0 bytes", folder.display());
    assert_eq!(found.only(), ("state file", &*said, "Free space on that disk."));
}

#[test]
fn an_exporter_of_another_service_is_named_and_its_problems_are_not_ours() {
    let other = r#"{"service":{"base_url":"https://other/"},"summary":{"verdict":"problem","apps":{"all":1},"reasons":[{"code":"c","verdict":"problem","text":"t","remedy":"r"}]}}"#;
    let patient = Patient { exporter: Service::start(move |_| ok(other)), ..Patient::new() };
    let service = Service::start(answering);
    let found = patient.examined(&polling(&service, ""));
    assert_eq!((found.code, found.wrong()), (Some(0), vec![]), "{:#}", found.json);
    found.says("daemon", "polls another service, https://other/");
    let alone = Alone::new();
    let mut demo = alone.daemon();
    demo.arg("--demo");
    let _demo = Exporter::of(demo);
    let mut doctor = alone.pdstool(&["doctor", "--config.file"]);
    let said = ended(&doctor.arg(patient.path("pds-exporter.toml")).output().unwrap());
    assert_has(&said, &["exit code 0\n", "is a demo and polls another service"]);
    let unconfigured = alone.pdstool(&["doctor", "--config.file", "nowhere.toml"]).output().unwrap();
    assert_has(&ended(&unconfigured), &["is a demo and polls another service"]);
}
