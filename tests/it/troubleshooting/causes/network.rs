//! Set-ups in which the service, or the way to it, is at fault.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use rcgen::date_time_ymd;
use rustls::ServerConnection;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::client::server::port;
use crate::client::transport::{authority, self_signed};

/// Nothing listens there.
const CLOSED: &str = "http://127.0.0.1:1";

/// A port that accepts connections and says nothing.
fn silent() -> SocketAddr {
    Box::leak(Box::new(TcpListener::bind("127.0.0.1:0").unwrap())).local_addr().unwrap()
}

/// The configuration with a service that shakes hands over TLS, and `ca_file` if its file is `trusted`.
fn over_tls(text: &str, trusted: bool, make: impl FnOnce(&Path) -> (PathBuf, TlsAcceptor)) -> String {
    let folder = tempfile::tempdir().unwrap().keep();
    let (file, tls) = make(&folder);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = ServerConnection::new(tls.config().clone()).unwrap().complete_io(&mut stream);
        }
    });
    let ca_file = if trusted { format!("ca_file = {file:?}\n") } else { String::new() };
    addressed(text, |_| format!("https://{address}")).replacen("base_url", &format!("{ca_file}base_url"), 1)
}

/// The configuration with an https service behind this proxy.
fn proxied(text: &str, proxy: &str) -> String {
    let text = addressed(text, |_| "https://api.localhost".to_owned());
    text.replacen("base_url", &format!("proxy_url = \"{proxy}\"\nbase_url"), 1)
}

/// The configuration with an http service behind this proxy.
fn proxied_to_http(text: &str, proxy: &str) -> String {
    addressed(&proxied(text, proxy), |url| url.replace("https://", "http://"))
}

/// The same behind a proxy that shakes hands over TLS, at this scheme.
fn behind_tls(text: &str, scheme: &str, make: impl FnOnce(&Path) -> (PathBuf, TlsAcceptor)) -> String {
    let tls = over_tls(text, false, make);
    let (_, rest) = tls.split_once("base_url = \"https://").unwrap();
    proxied_to_http(text, &format!("{scheme}://{}", rest.split('"').next().unwrap()))
}

pub(super) fn of_the_service() -> Vec<SetUp> {
    let edited = SetUp::edited;
    vec![
        edited("another port", &cause::CONNECTION_REFUSED, |text| addressed(&text, |_| CLOSED.to_owned())),
        edited("another name", &cause::NAME_UNKNOWN, |text| {
            addressed(&text, |_| "https://nowhere.invalid".to_owned())
        }),
        edited("https to a port without TLS", &cause::NO_TLS, |text| {
            addressed(&text, |url| url.replace("http://", "https://"))
        }),
        edited("http to a TLS port", &cause::NO_HTTP, |text| {
            let text = over_tls(&text, false, |folder| authority(folder, "127.0.0.1"));
            addressed(&text, |url| url.replace("https://", "http://"))
        }),
        edited("http to a TLS port that says so", &cause::NO_HTTP, |text| {
            const SAID: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 60\r\n\r\n\
                <h1>The plain HTTP request was sent to HTTPS port</h1>.....\n";
            addressed(&text, |_| format!("http://{}", port(SAID)))
        }),
        SetUp {
            api: "connect_timeout = \"1s\"\n",
            ..edited("a port that says nothing", &cause::CONNECTION_SILENT, |text| {
                addressed(&text, |_| format!("https://{}", silent()))
            })
        },
        edited("an expired certificate", &cause::CERTIFICATE_EXPIRED, |text| {
            over_tls(&text, true, |folder| self_signed(folder, |it| it.not_after = date_time_ymd(2020, 1, 1)))
        }),
        edited("a certificate of the future", &cause::CERTIFICATE_EARLY, |text| {
            over_tls(&text, true, |folder| {
                self_signed(folder, |it| it.not_before = date_time_ymd(4000, 1, 1))
            })
        }),
        edited("an unknown authority", &cause::CERTIFICATE_UNTRUSTED, |text| {
            over_tls(&text, false, |folder| authority(folder, "127.0.0.1"))
        }),
        edited("a self-signed certificate", &cause::CERTIFICATE_SELF_SIGNED, |text| {
            over_tls(&text, false, |folder| self_signed(folder, |_| {}))
        }),
        edited("a certificate for another name", &cause::CERTIFICATE_NAME, |text| {
            over_tls(&text, true, |folder| authority(folder, "elsewhere.example.com"))
        }),
        edited("a handshake that breaks off", &cause::TLS_FAILED, |text| {
            addressed(&text, |_| format!("https://{}", port("")))
        }),
        edited("a version in the address", &cause::WRONG_ADDRESS, |text| {
            addressed(&text, |url| format!("{url}/v2"))
        }),
        edited("a path in the address", &cause::WRONG_ADDRESS, |text| {
            addressed(&text, |url| format!("{url}/api"))
        }),
        edited("another server", &cause::WRONG_ADDRESS, |text| {
            const SAID: &str =
                "HTTP/1.1 404 Not Found\r\ncontent-length: 32\r\n\r\n<title>Welcome to nginx!</title>";
            addressed(&text, |_| format!("http://{}", port(SAID)))
        })
        .saying("returned 404: a web page (Welcome to nginx!)"),
        SetUp::failing("connections are reset", &cause::REPLY_CUT, Kind::Reset),
        SetUp::failing("replies that break off", &cause::REPLY_CUT, Kind::CutBody)
            .saying("the reply broke off"),
        SetUp {
            api: "timeout = \"1s\"\n",
            ..SetUp::failing("slow service", &cause::SERVICE_SLOW, Kind::Latency { millis: 60_000 })
        },
        SetUp::failing("503", &cause::SERVICE_ERROR, Fault::status(503).kind),
        SetUp::failing("a gateway's 502", &cause::SERVICE_ERROR, html(502))
            .saying("returned 502: a web page (502)"),
        SetUp::failing("a gateway's 403", &cause::GATEWAY_REFUSES, html(403)).saying("403: a web page (403)"),
        SetUp::failing("a login's 401", &cause::GATEWAY_REFUSES, html(401)).saying("401: a web page (401)"),
        SetUp::failing("a version that is gone", &cause::WRONG_ADDRESS, Fault::status(410).kind),
        SetUp::failing(
            "a login page",
            &cause::NOT_THE_SERVICE,
            Kind::Redirect { location: "/login".to_owned() },
        ),
        SetUp::failing("HTML with 200", &cause::GATEWAY_REFUSES, html(200))
            .saying("returned 200: a web page (200)"),
    ]
}

pub(super) fn of_proxies() -> Vec<SetUp> {
    let edited = SetUp::edited;
    vec![
        edited("a dead proxy", &cause::PROXY_DOWN, |text| proxied(&text, CLOSED)),
        edited("a dead proxy to http", &cause::PROXY_DOWN, |text| proxied_to_http(&text, CLOSED)),
        edited("an https proxy without TLS", &cause::PROXY_TLS, |text| {
            const SAID: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            proxied_to_http(&text, &format!("https://{}", port(SAID)))
        }),
        edited("an https proxy that breaks off", &cause::PROXY_TLS, |text| {
            proxied_to_http(&text, &format!("https://{}", port("")))
        }),
        edited("a self-signed proxy", &cause::PROXY_TLS, |text| {
            behind_tls(&text, "https", |folder| self_signed(folder, |_| {}))
        })
        .saying("add this certificate itself"),
        edited("a self-signed proxy to https", &cause::PROXY_TLS, |text| {
            let text = behind_tls(&text, "https", |folder| self_signed(folder, |_| {}));
            addressed(&text, |url| url.replace("http://", "https://"))
        }),
        SetUp {
            api: "connect_timeout = \"1s\"\n",
            ..edited("an https proxy that says nothing", &cause::PROXY_DOWN, |text| {
                proxied_to_http(&text, &format!("https://{}", silent()))
            })
        },
        edited("an http proxy at a TLS port", &cause::PROXY_DOWN, |text| {
            behind_tls(&text, "http", |folder| authority(folder, "127.0.0.1"))
        }),
        edited("a proxy that is none", &cause::PROXY_REFUSES, |text| {
            proxied(&text, &format!("http://{}", port("SSH-2.0-OpenSSH_9.2\r\n\r\n")))
        }),
        edited("a proxy that demands a login", &cause::PROXY_LOGIN, |text| {
            const LOGIN: &str = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
            proxied(&text, &format!("http://{}", port(LOGIN)))
        }),
        edited("a proxy that demands a login to http", &cause::PROXY_LOGIN, |text| {
            const LOGIN: &str = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
            proxied_to_http(&text, &format!("http://{}", port(LOGIN)))
        }),
        edited("a proxy that forbids", &cause::PROXY_REFUSES, |text| {
            proxied(&text, &format!("http://{}", port("HTTP/1.1 403 Forbidden\r\n\r\n")))
        }),
        edited("a proxy that cannot reach the service", &cause::PROXY_REFUSES, |text| {
            proxied(&text, &format!("http://{}", port("HTTP/1.1 502 Bad Gateway\r\n\r\n")))
        }),
        edited("a proxy that cannot reach the service over http", &cause::SERVICE_ERROR, |text| {
            const BAD: &str = "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
            proxied_to_http(&text, &format!("http://{}", port(BAD)))
        })
        .saying("returned 502: through the proxy 127.0.0.1:"),
    ]
}
