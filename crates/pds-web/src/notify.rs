//! Notifications for systemd (`sd_notify(3)`). Without `NOTIFY_SOCKET` there are none.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;

/// The daemon serves.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The daemon starts a reload; [`ready`] ends it, whatever the outcome.
pub fn reloading() {
    let now = NotifyState::monotonic_usec_now();
    // systemd orders reloads by this time.
    if let Ok(now) = now {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// The daemon finishes the requests in progress.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// A line for `systemctl status`.
pub fn status(line: &str) {
    tell(&[NotifyState::Status(line)]);
}

/// Tells the watchdog that the daemon is alive, each time `check` completes. Returns at once if the unit has no
/// `WatchdogSec=`.
pub async fn watchdog<Checked: Future<Output = ()>>(check: impl Fn() -> Checked) {
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else { return };
    // Half the timeout, as sd_watchdog_enabled(3) recommends.
    let mut ticks = tokio::time::interval((patience / 2).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        check().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    let told: io::Result<()> = sd_notify::notify(state);
    if let Err(error) = told {
        tracing::debug!(%error, "systemd cannot be told");
    }
}
