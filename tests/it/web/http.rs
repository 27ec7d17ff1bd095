//! Routes, methods, forms of the page.

use std::io::Read as _;
use std::sync::atomic::Ordering;

use pds_web::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Running, curl};
use crate::process::assert_has;

#[tokio::test]
async fn the_page_has_the_negotiated_format_and_coding() {
    let server = Running::start(Config::default());
    let metrics = server.url("/metrics");
    let text = curl(&[&metrics]).await;
    assert_eq!((text.status, text.header("vary")), (200, Some("Accept, Accept-Encoding")));
    assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(text.text().ends_with("pds_up 1\n"));
    let asked =
        "Accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.7,text/plain;q=0.4";
    let open = curl(&["-H", asked, &metrics]).await;
    let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";
    assert_eq!(open.header("content-type"), Some(expected));
    assert!(open.text().ends_with("pds_up 1\n# EOF\n"));
    server.stub.lines.store(10_000, Ordering::Relaxed);
    let plain = curl(&[&metrics]).await;
    let gzip = curl(&["-H", "Accept-Encoding: gzip", &metrics]).await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut unzipped = Vec::new();
    flate2::read::GzDecoder::new(&*gzip.body).read_to_end(&mut unzipped).unwrap();
    assert!(unzipped == plain.body, "the same page");
    assert!(gzip.body.len() < plain.body.len() / 3, "{} of {}", gzip.body.len(), plain.body.len());
    let refused = curl(&["-H", "Accept-Encoding: gzip;q=0", "-H", "Accept: image/png", &metrics]).await;
    assert_eq!((refused.status, refused.header("content-encoding")), (200, None));
    let part = curl(&["-g", &server.url("/metrics?name[]=pds_up&app=a")]).await;
    assert!(part.text().contains("names: [\"pds_up\"], projects: [], apps: [\"a\"]"));
}

#[tokio::test]
async fn every_path_has_its_methods_and_head_is_get_without_the_body() {
    let server = Running::start(Config::default());
    for path in ["/metrics", "/", "/-/healthy", "/-/ready", "/apps/p-1/a"] {
        let url = server.url(path);
        let (get, head) = (curl(&[&url]).await, curl(&["-I", &url]).await);
        assert_eq!((get.status, head.status, head.body.len()), (200, 200, 0), "{path}");
        assert_eq!(get.header("content-length"), head.header("content-length"), "{path}");
        let post = curl(&["-X", "POST", &url]).await;
        assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")), "{path}");
        assert!(get.headers.iter().all(|(name, _)| !name.starts_with("access-control")), "{path}");
    }
    for path in ["/nothing", "/-/", "//nothing", "/apps/p-1", "/apps/p-1/", "//-/reload"] {
        let reply = curl(&["--path-as-is", &server.url(path)]).await;
        assert_eq!((reply.status, reply.text()), (404, "There is nothing at this path.\n"), "{path}");
    }
    let segments = curl(&[&server.url("/apps/p%201/a%2Fb")]).await;
    assert_eq!(segments.text(), "(\"p 1\", \"a/b\")");
}

#[tokio::test]
async fn the_root_and_the_prefix_lead_to_the_status_page() {
    let (route_prefix, telemetry_path) = ("/a/pds/".to_owned(), "/m".to_owned());
    let server = Running::start(Config { route_prefix, telemetry_path, ..Config::default() });
    for (path, leads) in [("/", "/a/pds/"), ("/a/pds", "/a/pds/"), ("/a/pds?name=a", "/a/pds/?name=a")] {
        let reply = curl(&[&server.url(path)]).await;
        assert_eq!(reply.status, 302, "{path}");
        let asked = url::Url::parse(&server.url(path)).unwrap();
        let place = asked.join(reply.header("location").unwrap()).unwrap();
        assert_eq!(place.as_str(), server.url(leads), "{path}");
        assert_eq!(curl(&[place.as_str()]).await.status, 200, "{place}");
        assert_eq!(curl(&["-X", "POST", &server.url(path)]).await.status, 404, "{path}");
    }
    for path in ["/m", "/a", "/a/pds/m/", "/a/pds//", "//", "/a/pds/nothing", "//evil.example/"] {
        assert_eq!(curl(&["--path-as-is", &server.url(path)]).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn pages_have_security_headers_and_entity_tags() {
    let server = Running::start(Config::default());
    let page = curl(&[&server.url("/")]).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let tag = format!("If-None-Match: {}", page.header("etag").unwrap());
    let again = curl(&["-H", &tag, &server.url("/")]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn readiness_names_the_missing_targets() {
    let server = Running::start(Config::default());
    assert_eq!(curl(&[&server.url("/-/ready")]).await.text(), "exporter is ready.\n");
    server.stub.unready.store(true, Ordering::Relaxed);
    let reply = curl(&[&server.url("/-/ready")]).await;
    let sentence = "exporter is not ready yet: 3 of 12 targets were asked\n";
    assert_eq!((reply.status, reply.text()), (503, sentence));
    assert_eq!(curl(&[&server.url("/-/healthy")]).await.status, 200);
}

#[tokio::test]
async fn reload_and_quit_need_the_flag_and_a_post() {
    let off = Running::start(Config::default());
    assert_eq!(curl(&["-X", "POST", &off.url("/-/reload")]).await.status, 403);
    assert_eq!(curl(&["-X", "PUT", &off.url("/-/quit")]).await.status, 403);
    let refused = curl(&[&off.url("/-/quit")]).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, PUT")));
    let on = Running::start(Config { enable_lifecycle: true, ..Config::default() });
    assert_eq!(curl(&["-X", "POST", &on.url("/-/reload")]).await.status, 200);
    on.stub.is_bad.store(true, Ordering::Relaxed);
    let bad = curl(&["-X", "PUT", &on.url("/-/reload")]).await;
    assert!(bad.status == 500 && bad.text().contains("poll.interval: not a duration"), "{bad:?}");
    let forged = curl(&["-X", "POST", "-H", "Origin: https://evil.example", &on.url("/-/quit")]).await;
    assert_eq!(forged.status, 403);
    assert_eq!(curl(&["-X", "POST", &on.url("/-/quit")]).await.status, 200);
    on.stub.quit.notified().await;
}

#[tokio::test]
async fn a_rebound_host_name_cannot_stop_the_daemon() {
    let server = Running::start(Config { enable_lifecycle: true, ..Config::default() });
    let quit = async |headers: &[&str]| {
        let mut args = vec!["-X", "POST"];
        headers.iter().for_each(|header| args.extend(["-H", header]));
        let url = server.url("/-/quit");
        curl(&[args.as_slice(), &[url.as_str()]].concat()).await.status
    };
    // A name that resolves to our address: to the browser the page and we are one site.
    let rebound = ["Host: evil.example:10090", "Origin: http://evil.example:10090"];
    assert_eq!(quit(&rebound).await, 403);
    assert_eq!(quit(&["Host: evil.example", "Sec-Fetch-Site: same-origin"]).await, 403);
    assert_eq!(quit(&["Sec-Fetch-Site: cross-site"]).await, 403);
    let own = format!("Origin: http://{}", server.address);
    assert_eq!(quit(&[&own, "Sec-Fetch-Site: same-origin"]).await, 200);
    server.stub.quit.notified().await;
}

#[tokio::test]
async fn a_rebound_host_name_cannot_read_pages_and_the_refusal_names_the_flag() {
    let allowed_hosts = vec!["pds.internal".to_owned()];
    let server = Running::start(Config { allowed_hosts, ..Config::default() });
    let asked = async |header: &str, path: &str| curl(&["-H", header, &server.url(path)]).await;
    for path in ["/metrics", "/", "/apps/p/a", "/metrics/", "/nowhere"] {
        let refused = asked("Host: evil.example", path).await;
        assert_eq!(refused.status, 403, "{path}");
        assert_has(refused.text(), &["--web.allowed-hosts"]);
        assert_eq!(asked("Sec-Fetch-Site: cross-site", path).await.status, 403, "{path}");
    }
    for host in ["pds.internal:80", "LOCALHOST", "[::1]:10090"] {
        assert_eq!(asked(&format!("Host: {host}"), "/metrics").await.status, 200, "{host}");
    }
    assert_eq!(asked("Host: evil.example", "/-/healthy").await.status, 200, "a probe");
    let everywhere = Config { listen_addresses: vec!["0.0.0.0:0".to_owned()], ..Config::default() };
    let open = Running::start_with(everywhere);
    let url = format!("http://127.0.0.1:{}/metrics", open.address.port());
    assert_eq!(curl(&["-H", "Host: any.service.name", &url]).await.status, 200, "a scraper");
}

#[tokio::test]
async fn two_hosts_or_two_credentials_are_refused() {
    let server = Running::start(Config::default());
    for twice in [
        "Host: localhost\r\nHost: y",
        "Host: localhost\r\nAuthorization: Basic eDp5\r\nAuthorization: Basic eDp6",
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\n{twice}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    }
}
