//! Web configuration files, judged by us and by promtool. `good` and `bad` are judged alike; `newer` holds keys
//! that came after the promtool of the tests; `stricter` is what we refuse though promtool does not, see the page
//! of `pds_exporter::web::webconfig`.

use std::error::Error;
use std::path::{Path, PathBuf};

use pds_exporter::web::webconfig::{self, ClientAuth, Summary};

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

async fn promtool_accepts(file: &Path) -> bool {
    run("promtool", &["check", "web-config", file.to_str().unwrap()]).await.status.success()
}

/// Our verdict; what is wrong with all its sources in one line.
fn ours(file: &Path) -> Result<Summary, String> {
    webconfig::check(file).map_err(|error| {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    })
}

/// Asserts that we refuse with what the file's first line says.
fn assert_refused(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let expected = text.lines().next().unwrap().strip_prefix("# refused: ").unwrap();
    let refusal = ours(file).unwrap_err();
    assert!(refusal.contains(expected), "{}: {refusal}", file.display());
}

#[tokio::test]
async fn good_files_are_good_to_both() {
    let authority = Authority::new();
    for file in files(&authority, "good") {
        assert!(promtool_accepts(&file).await, "{}", file.display());
        assert!(ours(&file).is_ok(), "{}: {:?}", file.display(), ours(&file));
    }
}

#[tokio::test]
async fn bad_files_are_bad_to_both_and_we_say_why() {
    let authority = Authority::new();
    for file in files(&authority, "bad") {
        assert!(!promtool_accepts(&file).await, "{}", file.display());
        assert_refused(&file);
    }
}

#[tokio::test]
async fn what_would_not_do_what_it_seems_to_is_refused_by_us_alone() {
    let authority = Authority::new();
    for file in files(&authority, "stricter") {
        assert!(promtool_accepts(&file).await, "{}", file.display());
        assert_refused(&file);
    }
}

#[test]
fn keys_newer_than_the_promtool_of_the_tests_are_known() {
    let authority = Authority::new();
    for file in files(&authority, "newer") {
        assert!(ours(&file).is_ok(), "{}: {:?}", file.display(), ours(&file));
    }
}

#[test]
fn what_has_no_effect_is_reported() {
    let authority = Authority::new();
    files(&authority, "good");
    let summary = ours(&authority.path("tls_all.yml")).unwrap();
    assert!(summary.tls && summary.http2 && summary.users == 0);
    assert_eq!(summary.client_auth, ClientAuth::RequireAndVerifyClientCert);
    assert_eq!(
        summary.ignored,
        [
            "cipher_suites TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: not offered, it is not safe enough",
            "curve_preferences CurveP521: not available",
        ]
    );
    let old = ours(&authority.path("old_min_version.yml")).unwrap();
    assert!(old.ignored[0].contains("min_version TLS10"), "{:?}", old.ignored);
}

#[test]
fn certificates_may_stand_in_the_file_itself() {
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
    std::fs::write(&file, text.replace("cert: |", "cert: |\n    x")).unwrap();
    let refusal = ours(&file);
    assert!(refusal.is_ok() || !refusal.unwrap_err().contains("BEGIN"));
}
