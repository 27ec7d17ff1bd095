//! Eight teams in one cluster: each is told of its own faults, and of no other's.

use super::*;

/// The configuration of a team, whose only project is the one of this number.
fn of_team(configuration: &Configuration<'_>, number: usize) -> Config {
    let mut config = configuration.load();
    config.projects = vec![config.projects.swap_remove(number)];
    config
}

fn shard(config: Config, index: u32, count: u32) -> Config {
    config.shard(Shard::new(index, count.try_into().unwrap()).unwrap())
}

/// Two releases of the chart and, for all others, the rules of the overlay; each team gets what has its namespace.
#[tokio::test(start_paused = true)]
async fn each_team_gets_its_own_alerts_once_and_once_when_they_resolve() {
    const TEAMS: [&str; 8] =
        ["failing", "healthy", "expiring", "outage", "sharded", "zero", "resharded", "deleted"];
    let settings = Settings { projects: TEAMS.len(), apps: 2 * TEAMS.len(), ..Settings::default() };
    let mut life = Life::of(settings, 60, NOON).await;
    let projects = life.world.projects();
    let (_, deleted) = &projects[7];
    let plain = |life: &Life, number| of_team(&life.config(), number);
    let soon = Timestamp::from_second(life.begun + 3 * 86_400 + 20 * 60).unwrap();
    for (number, instance) in
        [(0, "failing/pds"), (1, "healthy/pds"), (3, "outage/pds"), (5, "zero/pds"), (7, "deleted/pds")]
    {
        let config = plain(&life, number);
        life.start(instance, config).await;
    }
    let config = of_team(&life.config().expiring(soon), 2);
    life.start("expiring/pds", config).await;
    for (index, instance) in ["sharded/pds-0", "sharded/pds-1"].into_iter().enumerate() {
        let config = shard(plain(&life, 4), index as u32, 2);
        life.start(instance, config).await;
    }
    let resharded = ["resharded/pds-0", "resharded/pds-1", "resharded/pds-2"];
    for (index, instance) in resharded.into_iter().enumerate() {
        let config = shard(plain(&life, 6), index as u32, 3);
        life.start(instance, config).await;
    }
    life.pass(15).await;

    life.world.faults().set([
        Fault::status(401).of_project(&projects[0].0),
        Fault::status(500).of_project(&projects[3].0),
        Fault::status(404).of_app(&deleted[0]),
    ]);
    for instance in ["sharded/pds-1", "zero/pds"].into_iter().chain(resharded) {
        life.stop(instance).await;
    }
    for (index, instance) in resharded.into_iter().take(2).enumerate() {
        let config = shard(plain(&life, 6), index as u32, 2);
        life.start(instance, config).await;
    }
    life.pass(25).await;

    life.world.faults().clear();
    for (number, instance) in [(4, "sharded/pds-1"), (5, "zero/pds")] {
        let config = plain(&life, number);
        let config = if number == 4 { shard(config, 1, 2) } else { config };
        life.start(instance, config).await;
    }
    let config = plain(&life, 2);
    life.reload("expiring/pds", config).await;
    let mut config = plain(&life, 7);
    config.projects[0].apps.retain(|app| app.id != deleted[0]);
    life.reload("deleted/pds", config).await;
    life.pass(30).await;

    let folder = tempfile::tempdir().unwrap();
    let overlay = yaml(&kustomize("overlays/operator"));
    let overlay =
        overlay.iter().find(|object| object["kind"] == "PrometheusRule").unwrap()["spec"].to_string();
    let rules = [rules_of("pds", "failing"), rules_of("pds", "healthy"), overlay];
    let rules = rules.iter().enumerate().map(|(number, text)| {
        let path = folder.path().join(format!("{number}.yml"));
        std::fs::write(&path, text).unwrap();
        path
    });
    let routing = routing_of(&TEAMS);
    let firing = life.firing_by(&rules.collect::<Vec<_>>());
    let told = notified(firing, &routing).await;
    assert_golden(Path::new("tests/it/real_lifecycle/notifications.txt"), &once(&told));
}

/// All that is told over time, a line each. Panics unless each is told once, and resolved at most once.
pub(crate) fn once(told: &[BTreeSet<String>]) -> String {
    let mut events: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
    for pair in told.windows(2) {
        pair[1].difference(&pair[0]).for_each(|told| events.entry(told).or_default().0 += 1);
        pair[0].difference(&pair[1]).for_each(|told| events.entry(told).or_default().1 += 1);
    }
    let mut lines = String::new();
    for (told, (begun, ended)) in events {
        let over = if ended == 0 { ", and lasts" } else { "" };
        lines += &format!("{told}{over}\n");
        assert!(begun == 1 && ended < 2, "{told} is told {begun} times and resolved {ended} times");
    }
    lines
}
