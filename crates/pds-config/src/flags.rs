//! The daemon's command line, in the conventions of Prometheus exporters.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use url::Url;

use crate::{Explained, Level};

/// Path of the configuration without `--config.file`.
pub const DEFAULT_CONFIG: &str = "pds-exporter.toml";

/// The listen address without `--web.listen-address`.
pub const DEFAULT_LISTEN_ADDRESS: &str = ":10090";

/// Flags of `pds-exporter`.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "pds-exporter",
    version = crate::VERSION,
    about = "Prometheus exporter for the Project Deployment Service",
    after_help = "Try it without any setup:  pds-exporter --demo\nThen open http://127.0.0.1:10090/ and http://127.0.0.1:10090/metrics",
    max_term_width = 110
)]
pub struct Flags {
    /// Configuration file.
    #[arg(long = "config.file", value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub config_file: PathBuf,

    /// Check the configuration, print the requests it needs, and exit. Alone and without a configuration file, check that of the running exporter.
    #[arg(long = "config.check")]
    pub config_check: bool,

    /// Check the health of the exporter on this machine and exit with 0 or 1. Alone, it uses the flags of the running exporter.
    #[arg(long = "health")]
    pub health: bool,

    /// Interval at which changes of the configuration and its included files are detected and loaded; 0s means never.
    #[arg(
        long = "config.auto-reload-interval", value_name = "DURATION", default_value = "0s",
        value_parser = humantime::parse_duration
    )]
    pub config_auto_reload_interval: Duration,

    /// Poll a simulated service, without configuration, token or network; excludes --config.file, --config.check and
    /// --config.auto-reload-interval.
    #[arg(long = "demo", conflicts_with_all = ["config_file", "config_check", "config_auto_reload_interval"])]
    pub demo: bool,

    /// Address to listen on; repeatable. [default: :10090, with --demo 127.0.0.1:10090]
    #[arg(long = "web.listen-address", value_name = "ADDRESS")]
    pub web_listen_address: Vec<String>,

    /// Path of the metrics page.
    #[arg(long = "web.telemetry-path", value_name = "PATH", default_value = "/metrics")]
    pub web_telemetry_path: String,

    /// Web configuration file (exporter-toolkit format) for TLS, basic auth and rate limit.
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub web_config_file: Option<PathBuf>,

    /// Listen on the sockets passed by systemd; excludes --web.listen-address.
    #[arg(long = "web.systemd-socket", conflicts_with = "web_listen_address")]
    pub web_systemd_socket: bool,

    /// Maximum number of requests in progress, except /-/healthy and /-/ready; 0 means no limit. Above it, a request waits
    /// up to 2s if its client holds fewer than another or an unread response can be closed; others get 503.
    #[arg(long = "web.max-requests", value_name = "COUNT", default_value_t = 40)]
    pub web_max_requests: u32,

    /// Enable POST /-/reload and POST /-/quit.
    #[arg(long = "web.enable-lifecycle")]
    pub web_enable_lifecycle: bool,

    /// Exclude metrics about the exporter's process (process_*).
    #[arg(long = "web.disable-exporter-metrics")]
    pub web_disable_exporter_metrics: bool,

    /// Answer /-/healthy and /-/ready without basic auth.
    #[arg(long = "web.probes-without-auth")]
    pub web_probes_without_auth: bool,

    /// Prefix of all paths. [default: the path of --web.external-url]
    #[arg(long = "web.route-prefix", value_name = "PATH")]
    pub web_route_prefix: Option<String>,

    /// URL under which the exporter is reachable externally, such as behind a reverse proxy.
    #[arg(long = "web.external-url", value_name = "URL")]
    pub web_external_url: Option<Url>,

    /// Additional allowed Host names; repeatable or comma-separated. An exporter that listens only on loopback refuses unknown names.
    #[arg(long = "web.allowed-hosts", value_name = "HOST", value_delimiter = ',')]
    pub web_allowed_hosts: Vec<String>,

    /// Show raw replies of the service, which may contain sensitive data, on app pages.
    #[arg(long = "web.show-replies")]
    pub web_show_replies: bool,

    /// File that keeps the counters across restarts; overrides state.path.
    #[arg(long = "state.path", value_name = "FILE")]
    pub state_path: Option<PathBuf>,

    /// Index of this shard, from 0.
    #[arg(long = "shard.index", value_name = "INDEX", default_value_t = 0)]
    pub shard_index: u32,

    /// Number of shards that share the configured apps.
    #[arg(long = "shard.count", value_name = "COUNT", default_value_t = NonZeroU32::MIN)]
    pub shard_count: NonZeroU32,

    /// Minimum severity of log messages.
    #[arg(long = "log.level", value_name = "LEVEL", default_value = "info")]
    pub log_level: Level,

    /// Format of log messages.
    #[arg(long = "log.format", value_name = "FORMAT", default_value = "logfmt")]
    pub log_format: LogFormat,
}

impl Flags {
    /// The prefix of all paths. As in Prometheus: the path of the external URL, unless a route prefix says that a proxy
    /// strips it.
    pub fn route_prefix(&self) -> &str {
        let external = self.web_external_url.as_ref().map_or("", Url::path);
        self.web_route_prefix.as_deref().unwrap_or(external)
    }
}

/// The flags, and what each was set to.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The flags.
    pub flags: Flags,
    /// Each flag that has a value, for the page `/config`.
    pub explained: Vec<Explained>,
}

impl CommandLine {
    /// Parses `arguments`, the program's name first.
    ///
    /// # Errors
    /// If they are invalid, or ask for help or the version.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Flags::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        let flags = Flags::from_arg_matches(&matches)?;
        let (index, count) = (flags.shard_index, flags.shard_count);
        if index >= count.get() {
            let message = format!("--shard.index={index} is not below --shard.count={count}");
            return Err(command.error(ErrorKind::ValueValidation, message));
        }
        let explained = command.get_arguments().filter_map(|flag| {
            let id = flag.get_id().as_str();
            let values = matches.try_get_raw(id).ok()??;
            let values: Vec<_> = values.map(OsStr::to_string_lossy).collect();
            let given = matches.value_source(id) == Some(ValueSource::CommandLine);
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            Some(Explained::flag(flag.get_long()?, &values.join(", "), given, help))
        });
        let explained = explained.collect();
        Ok(Self { flags, explained })
    }
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// `ts=... level=info message="..." key=value`
    Logfmt,
    /// A JSON object per line.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn demo_and_a_configuration_file_exclude_each_other() {
        assert!(Flags::try_parse_from(["pds-exporter", "--demo"]).is_ok_and(|flags| flags.demo));
        let both = Flags::try_parse_from(["pds-exporter", "--demo", "--config.file=x.toml"]).unwrap_err();
        assert_eq!(both.exit_code(), 2);
    }

    #[test]
    fn each_flag_is_explained_with_its_value_and_where_it_came_from() {
        let arguments =
            ["pds-exporter", "--shard.count=2", "--web.external-url=https://me:hunter2@x/y", "--demo"];
        let line = CommandLine::parse(arguments.map(OsString::from)).unwrap();
        let row = |flag: &str| line.explained.iter().find(|row| row.key == flag).unwrap();
        let setting = |flag: &str| (&*row(flag).value, row(flag).origin);
        assert_eq!(setting("--shard.count"), ("2", Origin::Flag));
        assert_eq!(setting("--shard.index"), ("0", Origin::Default));
        assert_eq!(setting("--demo"), ("true", Origin::Flag));
        assert_eq!(setting("--web.enable-lifecycle"), ("false", Origin::Default));
        assert_eq!(setting("--web.external-url"), ("https://x/y", Origin::Flag));
        assert_eq!(row("--shard.index").help, "Index of this shard, from 0");
    }

    #[test]
    fn the_index_of_a_shard_is_below_their_count() {
        let parse =
            |index| CommandLine::parse(["pds-exporter", "--shard.count=3", index].map(OsString::from));
        assert!(parse("--shard.index=2").is_ok());
        let error = parse("--shard.index=3").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().starts_with("error: --shard.index=3 is not below --shard.count=3\n"),
            "{error}"
        );
    }

    #[test]
    fn the_demo_has_no_file_to_follow() {
        let both = ["pds-exporter", "--demo", "--config.auto-reload-interval=30s"];
        assert_eq!(Flags::try_parse_from(both).unwrap_err().exit_code(), 2);
    }
}
