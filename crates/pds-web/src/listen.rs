//! Listeners: addresses as Go's exporters accept them, unix sockets, and systemd's sockets.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use super::error::Error;
use super::turns::Peer;

/// Connections that the kernel completes before we accept them; no fleet of scrapers opens more at once.
const BACKLOG: i32 = 1024;

/// Bytes of an answer in the kernel, besides those in transit. The rest waits in the process, where it is shared and
/// counted.
const MAX_KERNEL_BYTES: u32 = 128 * 1024;

/// How long the kernel waits for the client to read the last bytes before it closes the connection.
/// [`unread_timeout`](super::Limits::unread_timeout) covers the bytes that the kernel does not have yet.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A socket that connections come from.
#[derive(Debug)]
pub(super) enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A unix socket, and the file to remove at the end if we created it.
    Unix(UnixListener, Option<PathBuf>),
}

/// A connection of any kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Listener {
    /// The next connection, and its peer.
    pub(super) async fn accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                let socket = SockRef::from(&stream);
                // These fail only for a closed connection, which its first read reports. Answers are written whole, so
                // waiting for more bytes would only delay the last packet.
                let _ = socket.set_tcp_nodelay(true);
                let _ = socket.set_tcp_notsent_lowat(MAX_KERNEL_BYTES);
                let _ = socket.set_tcp_user_timeout(Some(UNREAD_TIMEOUT));
                Ok((Box::new(stream), Peer::of(address.ip())))
            }
            Self::Unix(listener, _) => Ok((Box::new(listener.accept().await?.0), Peer::Local)),
        }
    }

    /// The TCP address; port 0 is resolved.
    pub(super) fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(_) => f.write_str("an unknown address"),
            },
            Self::Unix(listener, _) => {
                let address = listener.local_addr().ok();
                match address.as_ref().and_then(|address| address.as_pathname()) {
                    Some(path) => write!(f, "unix:{}", path.display()),
                    None => f.write_str("a unix socket without a name"),
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(path)) = self {
            // If it stays, the next start removes it; see `unix`.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens one address. Call it inside a tokio runtime.
pub(super) fn open(address: &str) -> Result<Listener, Error> {
    let path = address.strip_prefix("unix:").map(Path::new);
    let refused = |source: io::Error| {
        let problem = match source.kind() {
            io::ErrorKind::AddrInUse if path.is_some_and(|path| !is_socket(path)) => {
                "a file that is no socket is there"
            }
            io::ErrorKind::AddrInUse => "something listens there already",
            _ => "cannot listen there",
        };
        Error::address(address, problem, Some(source))
    };
    check(address)?;
    if let Some(path) = path {
        return unix(path).map_err(refused);
    }
    let address = resolve(address)?;
    let tcp = tcp(address).or_else(|error| {
        let no_ipv6 = matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::AddrNotAvailable)
            // std has no kind for it.
            || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error());
        match address.ip() {
            IpAddr::V6(ip) if ip.is_unspecified() && no_ipv6 => {
                tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
            }
            _ => Err(error),
        }
    });
    tcp.map_err(refused)
}

/// Opens an address as the daemon does, and closes it. To be called inside a tokio runtime.
///
/// # Errors
/// If the daemon could not listen there.
pub fn try_listen(address: &str) -> Result<(), Error> {
    open(address).map(drop)
}

/// Checks the form of an address.
pub(super) fn check(address: &str) -> Result<(), Error> {
    match address.strip_prefix("unix:") {
        Some("") => Err(Error::address(address, "the path is missing; write unix:/path", None)),
        Some(_) => Ok(()),
        None => split(address).map(drop),
    }
}

/// Host and port of an address, as Go writes them; an empty host is all interfaces of both families.
pub(super) fn split(address: &str) -> Result<(&str, u16), Error> {
    let bad = |problem| {
        let problem = format!("{problem}; write host:port, :port, [v6]:port or unix:/path");
        Error::address(address, problem, None)
    };
    if let Some((_, rest)) = address.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        return Err(Error::address(address, format!("an address is not a URL; write {authority}"), None));
    }
    let (host, port) = address.rsplit_once(':').ok_or_else(|| bad("the port is missing"))?;
    let port = port.parse().map_err(|_| bad("the port is not a number from 0 to 65535"))?;
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or_else(|| bad("a ']' is missing"))?;
        inner.parse::<Ipv6Addr>().map_err(|_| bad("no IPv6 address between the brackets"))?;
        return Ok((inner, port));
    }
    if host.contains(':') { Err(bad("an IPv6 address needs brackets")) } else { Ok((host, port)) }
}

/// Resolves an address; for a name, IPv4 before IPv6, as in Go.
pub(super) fn resolve(address: &str) -> Result<SocketAddr, Error> {
    let (host, port) = split(address)?;
    if host.is_empty() {
        return Ok((Ipv6Addr::UNSPECIFIED, port).into());
    }
    let failed = |source| Error::address(address, "the name cannot be resolved", Some(source));
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| failed(io::Error::from(io::ErrorKind::NotFound)))
}

fn tcp(address: SocketAddr) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let SocketAddr::V6(v6) = address {
        // The wildcard means both families, whatever the kernel's default.
        socket.set_only_v6(!v6.ip().is_unspecified())?;
    }
    // A restart need not wait until the kernel drops the connections of the last run.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(Listener::Tcp(TcpListener::from_std(socket.into())?))
}

fn unix(path: &Path) -> io::Result<Listener> {
    let bound = match UnixListener::bind(path) {
        // A socket file without a listener is left over from a run that was killed.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    Ok(Listener::Unix(bound?, Some(path.to_owned())))
}

fn is_stale(path: &Path) -> bool {
    // To connect to any other file is refused, too.
    is_socket(path)
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        assert_eq!(split(":10090").unwrap(), ("", 10090));
        assert_eq!(split("[::1]:0").unwrap(), ("::1", 0));
        assert_eq!(split("127.0.0.1:80").unwrap(), ("127.0.0.1", 80));
        assert_eq!(split("localhost:80").unwrap(), ("localhost", 80));
        let resolved = [":1", "[::]:1", "[::1]:1", "127.0.0.1:1"].map(|address| resolve(address).unwrap());
        assert_eq!(resolved.map(|at| at.to_string()), ["[::]:1", "[::]:1", "[::1]:1", "127.0.0.1:1"]);
        for (bad, problem) in [
            ("10090", "the port is missing"),
            ("localhost:http", "the port is not a number"),
            (":70000", "the port is not a number"),
            ("::1:80", "needs brackets"),
            ("[::1:80", "a ']' is missing"),
            ("[x]:80", "no IPv6 address"),
            ("tcp://127.0.0.1:80", "an address is not a URL; write 127.0.0.1:80"),
            ("http://[::1]:80/metrics", "an address is not a URL; write [::1]:80"),
        ] {
            let error = split(bad).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(bad), "{error}");
        }
    }

    #[tokio::test]
    async fn the_wildcard_answers_both_families() {
        let any = open(":0").unwrap();
        let port = any.tcp_address().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert!(any.accept().await.is_ok());
        if std::net::TcpListener::bind("[::1]:0").is_ok() {
            tokio::net::TcpStream::connect(("::1", port)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_unix_socket_without_a_listener_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.sock");
        let address = format!("unix:{}", path.display());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listener = open(&address).unwrap();
        assert_eq!(listener.to_string(), address);
        assert!(open(&address).unwrap_err().to_string().contains("listens there already"));
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn any_other_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exporter.toml");
        std::fs::write(&path, "precious").unwrap();
        let error = open(&format!("unix:{}", path.display())).unwrap_err().to_string();
        assert!(error.contains("a file that is no socket is there"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(open("unix:").unwrap_err().to_string().contains("the path is missing"));
    }
}
