//! Assignment of targets to shards.
//!
//! All daemons have the same configuration, each its own `--shard.index` out of `--shard.count`. They never talk to
//! each other. An app belongs to the shard whose hash with the app's project and id is highest (rendezvous hashing).
//! So each app belongs to exactly one shard, and going from n to n + 1 shards moves about one in n + 1 apps, all of
//! them to the new shard.

use std::hash::Hasher;
use std::num::NonZeroU32;

use siphasher::sip::SipHasher13;

use super::Config;

/// The share of one daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its index, counted from 0, below `count`.
    pub index: u32,
    /// How many there are.
    pub count: NonZeroU32,
}

impl Shard {
    /// The only shard, which polls everything.
    pub const WHOLE: Self = Self { index: 0, count: NonZeroU32::MIN };

    /// Whether this shard polls the app.
    pub fn owns_app(&self, project: &str, app: &str) -> bool {
        self.is_highest(&[project.as_bytes(), b"\0", app.as_bytes()])
    }

    /// Whether this shard polls the project's own resources: volume alerts, domains, name and role.
    pub fn owns_project(&self, project: &str) -> bool {
        self.is_highest(&[project.as_bytes()])
    }

    /// The lowest shard wins a tie, so there is always exactly one.
    fn is_highest(&self, key: &[&[u8]]) -> bool {
        if *self == Self::WHOLE {
            return true;
        }
        let ours = weight(self.index, key);
        (0..self.index).all(|other| weight(other, key) < ours)
            && (self.index + 1..self.count.get()).all(|other| weight(other, key) <= ours)
    }
}

/// SipHash-1-3 with a zero key over the index (little endian) and the key's parts. The algorithm is specified
/// byte for byte, so daemons of different versions and platforms agree during a rollout. Any change here moves
/// apps between shards, which is a breaking change.
fn weight(index: u32, key: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&index.to_le_bytes());
    for part in key {
        hasher.write(part);
    }
    hasher.finish()
}

impl Config {
    /// The part of the configuration that `shard` polls: its apps, and the projects that have one of them or
    /// whose own resources it polls.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Self {
        self.shard = shard;
        for project in &mut self.projects {
            let id = &project.id;
            project.polled = shard.owns_project(id);
            project.apps.retain(|app| shard.owns_app(id, &app.id));
        }
        self.projects.retain(|project| project.polled || !project.apps.is_empty());
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::Project;
    use super::*;

    fn shards(count: u32) -> Vec<Shard> {
        let count = NonZeroU32::new(count).unwrap();
        (0..count.get()).map(|index| Shard { index, count }).collect()
    }

    fn owner(count: u32, owns: impl Fn(&Shard) -> bool) -> usize {
        let owners: Vec<usize> =
            shards(count).iter().enumerate().filter(|(_, s)| owns(s)).map(|(i, _)| i).collect();
        assert_eq!(owners.len(), 1, "exactly one shard owns it: {owners:?}");
        owners[0]
    }

    /// Computed with an implementation written from the SipHash paper alone.
    #[test]
    fn the_assignment_is_the_same_in_every_version() {
        let counts = [1, 2, 3, 5, 10];
        let app = |project: &str, app: &str| counts.map(|n| owner(n, |s| s.owns_app(project, app)));
        assert_eq!(counts.map(|n| owner(n, |s| s.owns_project("p-abc12345"))), [0, 1, 2, 2, 8]);
        assert_eq!(app("p-abc12345", "p-abc12345-ranker"), [0, 1, 1, 3, 6]);
        assert_eq!(app("p-abc12345", "p-abc12345-embed"), [0, 0, 2, 3, 8]);
        assert_eq!(app("p-00000000", "x"), [0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_load_is_spread_evenly() {
        let ids: Vec<String> = (0..5_000).map(|i| format!("p-abc12345-app-{i}")).collect();
        for shard in shards(5) {
            let owned = ids.iter().filter(|id| shard.owns_app("p-abc12345", id)).count();
            // The standard deviation is 28.
            assert!((850..=1_150).contains(&owned), "{shard:?} owns {owned} of 5000");
        }
    }

    #[test]
    fn a_configuration_keeps_what_its_shard_owns() {
        let shard = |index| config().shard(Shard { index, count: NonZeroU32::new(3).unwrap() });
        let held = |config: &Config| -> Vec<(String, bool, Vec<String>)> {
            let apps = |p: &Project| p.apps.iter().map(|app| app.id.to_string()).collect();
            config.projects.iter().map(|p| (p.id.to_string(), p.polled, apps(p))).collect()
        };
        let (project, apps) = ("p-abc12345".to_owned(), |names: &[&str]| {
            names.iter().map(|name| format!("p-abc12345-{name}")).collect::<Vec<_>>()
        });
        assert_eq!(held(&shard(0)), []);
        assert_eq!(held(&shard(1)), [(project.clone(), false, apps(&["ranker"]))]);
        assert_eq!(held(&shard(2)), [(project, true, apps(&["embed"]))]);
        assert_eq!(config().shard(Shard::WHOLE), config());
    }

    fn config() -> Config {
        let text = "[api]\nbase_url = \"https://api.example.com\"\ntoken = \"t\"\n\
            [[projects]]\nid = \"p-abc12345\"\napps = [\"p-abc12345-ranker\", \"p-abc12345-embed\"]\n";
        crate::load_text(Path::new("test.toml"), text).unwrap().config
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_further_shard_takes_about_its_share_and_moves_nothing_else(seed in 0_u32..1_000, count in 1_u32..12) {
            let total = 1_000_u32;
            let mut moved = 0_u32;
            for i in 0..total {
                let app = format!("app-{seed}-{i}");
                let before = owner(count, |s| s.owns_app("p-abc12345", &app));
                let after = owner(count + 1, |s| s.owns_app("p-abc12345", &app));
                if before != after {
                    prop_assert_eq!(after, count as usize, "only ever to the new shard");
                    moved += 1;
                }
            }
            let share = f64::from(moved) / f64::from(total);
            let fair = 1.0 / f64::from(count + 1);
            // Six standard deviations.
            let slack = 6.0 * (fair * (1.0 - fair) / f64::from(total)).sqrt();
            prop_assert!((share - fair).abs() < slack, "{share} moved, fair is {fair}");
        }
    }
}
