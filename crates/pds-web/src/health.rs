//! `--health`: whether the exporter on this machine answers, for images without curl.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use socket2::{SockAddr, Socket, Type};

use super::error::Error;
use super::{Config, listen};

/// Time limit of connecting, writing and reading, each. Health checks usually have 5 seconds.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Config {
    /// Requests `/-/healthy` of the exporter that listens on the first of these addresses. An exporter that requires a
    /// password or TLS is alive, too.
    ///
    /// # Errors
    /// If the daemon does not answer, or gives another answer.
    pub fn check_health(&self) -> Result<(), Error> {
        let address = self.listen_addresses.first().ok_or(Error::NoAddress)?;
        let unreachable = |source| Error::Unreachable { address: address.clone(), source };
        let request = format!(
            "GET {}/-/healthy HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            self.prefix()
        );
        let socket = match address.strip_prefix("unix:") {
            Some(path) => SockAddr::unix(path).map_err(unreachable)?,
            None => local_address(address)?.into(),
        };
        let answer = send(&socket, &request).map_err(unreachable)?;
        if is_alive(&answer) {
            return Ok(());
        }
        let answer = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        Err(Error::Unhealthy { address: address.clone(), answer })
    }
}

/// Sends `request` and returns enough of the answer for a status line.
fn send(address: &SockAddr, request: &str) -> io::Result<Vec<u8>> {
    let mut stream = Socket::new(address.domain(), Type::STREAM, None)?;
    stream.connect_timeout(address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    match stream.take(64).read_to_end(&mut answer) {
        // On Linux, the error of a read that takes too long.
        Err(error) if answer.is_empty() && error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("timed out after {TIMEOUT:?}")))
        }
        // A server that requires TLS sends an alert and closes.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

/// A good answer, one that requires a password, or a TLS record of type alert.
fn is_alive(answer: &[u8]) -> bool {
    let status = answer.strip_prefix(b"HTTP/1.1 ");
    status.is_some_and(|rest| rest.starts_with(b"200") || rest.starts_with(b"401"))
        || answer.starts_with(&[0x15, 0x03])
}

/// The address at which a program on the same machine reaches a listener on `address`.
///
/// # Errors
/// If it is no address.
pub fn local_address(address: &str) -> Result<SocketAddr, Error> {
    let mut local = listen::resolve(address)?;
    if local.ip().is_unspecified() {
        local.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Ok(local)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use pds_core::error_chain::with_sources;

    use super::*;

    /// The result for a server that answers with `answer`.
    fn checked(answer: &'static [u8]) -> Result<(), Error> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let config =
            Config { listen_addresses: vec![address], route_prefix: "/pds/".to_owned(), ..Config::default() };
        let checked = config.check_health();
        assert!(served.join().unwrap().starts_with("GET /pds/-/healthy HTTP/1.1\r\n"));
        checked
    }

    #[test]
    fn an_exporter_that_requires_a_password_or_tls_is_alive() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\n\r\nexporter is healthy.\n"[..],
            b"HTTP/1.1 401 Unauthorized\r\n\r\n",
            b"\x15\x03\x03\x00\x02\x02\x32",
        ] {
            checked(answer).unwrap();
        }
    }

    #[test]
    fn any_other_answer_is_unhealthy() {
        let error = checked(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err().to_string();
        assert!(error.contains("HTTP/1.1 503 Service Unavailable"), "{error}");
        assert!(checked(b"").is_err());
        let hung = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen_addresses = vec![hung.local_addr().unwrap().to_string()];
        let error = Config { listen_addresses, ..Config::default() }.check_health().unwrap_err();
        assert!(with_sources(&error).ends_with(": timed out after 2s"), "{error}");
        let nobody = Config { listen_addresses: vec!["127.0.0.1:1".to_owned()], ..Config::default() };
        assert!(matches!(nobody.check_health(), Err(Error::Unreachable { .. })));
    }

    #[test]
    fn a_wildcard_is_probed_on_the_loopback() {
        let local = |address| local_address(address).unwrap().to_string();
        assert_eq!(local(":10090"), "127.0.0.1:10090");
        assert_eq!(local("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(local("[::1]:2"), "[::1]:2");
        assert_eq!(local("10.1.2.3:4"), "10.1.2.3:4");
    }
}
