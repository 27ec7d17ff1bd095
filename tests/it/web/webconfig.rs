//! Web configuration files, checked by us and by promtool. On `good` and `bad` both agree; `newer` holds keys that
//! the promtool of the tests does not know; `stricter` holds files that only we refuse, see
//! `pds_web::webconfig`. The good ones cover what exporter-toolkit's own examples do.

use std::path::{Path, PathBuf};

use pds_core::error_chain::with_sources;
use pds_web::webconfig::{self, Demands, Summary};

use super::certificates::Authority;
use super::run;

/// The files of one folder, beside certificates they may name.
fn files(authority: &Authority, folder: &str) -> Vec<PathBuf> {
    authority.sign_server();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/web/webconfig").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(source)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let file = authority.path(entry.file_name().to_str().unwrap());
            std::fs::copy(entry.path(), &file).unwrap();
            file
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Our result; an error with all its sources in one line.
fn ours(file: &Path) -> Result<Summary, String> {
    webconfig::check(file).map_err(|error| with_sources(&error))
}

#[tokio::test]
async fn files_are_good_or_bad_to_promtool_and_to_us_who_say_why() {
    let authority = Authority::new();
    for (folder, is_refused, promtool) in [
        ("good", false, Some(true)),
        ("bad", true, Some(false)),
        ("stricter", true, Some(true)),
        ("newer", false, None),
    ] {
        for file in files(&authority, folder) {
            let (name, text) = (file.display(), std::fs::read_to_string(&file).unwrap());
            // The first line of a file that we refuse says why.
            let refused = text.strip_prefix("# refused: ").and_then(|why| why.lines().next());
            let refused = refused.filter(|_| is_refused);
            match (ours(&file), refused) {
                (Ok(_), None) => assert!(!is_refused, "{name}"),
                (Err(refusal), Some(expected)) => assert!(refusal.contains(expected), "{name}: {refusal}"),
                (ours, _) => panic!("{name}: {ours:?}"),
            }
            if let Some(accepted) = promtool {
                let checked = run("promtool", &["check", "web-config", file.to_str().unwrap()]).await;
                assert_eq!(checked.status.success(), accepted, "{name}");
            }
        }
    }
}

#[test]
fn settings_without_effect_are_reported() {
    let authority = Authority::new();
    files(&authority, "good");
    let summary = ours(&authority.path("tls_all.yml")).unwrap();
    assert!(summary.tls && summary.http2 && summary.users == 0);
    let required = Demands { requested: true, mandatory: true, verified: true, own_ca: true, named: false };
    assert_eq!(summary.demands, required);
    assert_eq!(
        summary.notes,
        [
            "cipher_suites TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: not offered, because it is not secure enough",
            "curve_preferences CurveP521: not available",
        ]
    );
    for (file, said) in [
        ("verify_without_ca.yml", "without a client CA, the system's CAs verify"),
        ("any_with_ca.yml", "with a client CA, certificates are verified"),
    ] {
        let notes = ours(&authority.path(file)).unwrap().notes.join("\n");
        assert!(notes.contains(said), "{file}: {notes}");
    }
    authority.set_mode("server.key", 0o644);
    let exposed = ours(&authority.path("tls.yml")).unwrap().notes;
    assert_eq!(exposed, ["key_file: every user of this machine can read the file"]);
    let old = ours(&authority.path("old_min_version.yml")).unwrap();
    assert!(old.notes.iter().any(|note| note.contains("min_version TLS10")), "{:?}", old.notes);
}

#[test]
fn certificates_may_be_inline() {
    let authority = Authority::new();
    authority.sign_server();
    let inline = |key: &str, name: &str| {
        let pem = std::fs::read_to_string(authority.path(name)).unwrap();
        format!("  {key}: |\n{}", pem.lines().map(|line| format!("    {line}\n")).collect::<String>())
    };
    let file = authority.path("inline.yml");
    let text = format!(
        "tls_server_config:\n  client_auth_type: VerifyClientCertIfGiven\n{}{}{}",
        inline("cert", "server.crt"),
        inline("key", "server.key"),
        inline("client_ca", "ca.crt"),
    );
    std::fs::write(&file, &text).unwrap();
    assert!(ours(&file).unwrap().tls);
    std::fs::write(&file, text.replace("CERTIFICATE-----", "CERTIFICATE----")).unwrap();
    let refusal = ours(&file).unwrap_err();
    assert!(refusal.contains("not PEM") && !refusal.contains('['), "quotes nothing: {refusal}");
}
