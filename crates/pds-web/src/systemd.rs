//! Sockets from systemd, and notifications to systemd (`sd_notify(3)`) if `NOTIFY_SOCKET` is set.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};

use super::error::Error;
use super::listen::Listener;

/// The sockets that systemd passed (`LISTEN_FDS`). Removes the variables from the environment.
pub(super) fn listeners() -> Result<Vec<Listener>, Error> {
    let mut handed = ListenFd::from_env();
    let listeners = (0..handed.len())
        .map(|number| take(&mut handed, number).map_err(|source| Error::SystemdSocket { number, source }))
        .collect::<Result<Vec<_>, _>>()?;
    if listeners.is_empty() { Err(Error::NoSystemdSocket) } else { Ok(listeners) }
}

fn take(handed: &mut ListenFd, number: usize) -> io::Result<Listener> {
    // A socket that is not TCP is taken as a unix socket below.
    if let Ok(Some(listener)) = handed.take_tcp_listener(number) {
        listener.set_nonblocking(true)?;
        return Ok(Listener::Tcp(TcpListener::from_std(listener)?));
    }
    let listener = handed.take_unix_listener(number)?.ok_or(io::ErrorKind::NotFound)?;
    listener.set_nonblocking(true)?;
    // The file belongs to systemd.
    Ok(Listener::Unix(UnixListener::from_std(listener)?, None))
}

/// Notifies systemd that the daemon serves.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Notifies systemd of a reload; [`ready`] ends it, whatever the outcome.
pub fn reloading() {
    // systemd orders reloads by this time.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Notifies systemd of the shutdown.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Notifies the watchdog that the daemon is alive, each time `check` completes. Returns at once if the unit has no
/// `WatchdogSec=`.
pub async fn watchdog<Checked: Future<Output = ()>>(check: impl Fn() -> Checked) {
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else { return };
    // Half the timeout, as sd_watchdog_enabled(3) recommends.
    let mut ticks = tokio::time::interval((patience / 2).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        check().await;
        notify(&[NotifyState::Watchdog]);
    }
}

/// The longest wait for a service manager that does not read its socket. A busy manager still gets the message, and a
/// hanging manager delays neither pages nor polls.
const MAX_WAIT: Duration = Duration::from_millis(100);

fn notify(state: &[NotifyState<'_>]) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let message: String = state.iter().map(|state| format!("{state}\n")).collect();
    let sent = UnixDatagram::unbound().and_then(|socket| {
        socket.set_write_timeout(Some(MAX_WAIT))?;
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(&name)?,
        };
        socket.send_to_addr(message.as_bytes(), &address)
    });
    if let Err(error) = sent {
        tracing::debug!(%error, "cannot notify systemd");
    }
}
