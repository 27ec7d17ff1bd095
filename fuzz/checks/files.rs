//! Configuration files.

use pds_web::webconfig;

/// Any file as the configuration: no panic; what is refused says why, what is followed asks for something.
pub(crate) fn configuration(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the file");
    let path = dir.path().join("pds-exporter.toml");
    std::fs::write(&path, data).expect("the file can be written");
    match pds_config::load(&path, []) {
        Ok(loaded) => {
            assert!(!loaded.config.projects.is_empty());
            let load = loaded.config.requests_per_minute().total;
            assert!(load > 0.0 && load.is_finite(), "{load} requests a minute");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Any file as the web configuration: no panic, and what is refused says why.
pub(crate) fn web_configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = webconfig::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}
