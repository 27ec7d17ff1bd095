//! A property of exporters that are started, killed and scraped at random beside one Prometheus: what `increase` says of
//! all of them together is what there was between the first cursor and the last. Late data is lost with the process that
//! has not added it yet, and with no other.

use pds_ledger::HOUR;
use pds_simulator::{Fault, Kind, Quirks, Settings};
use proptest::prelude::*;

use super::rig::{Exporter, Rig, Unchecked, sharded};

const APPS: usize = 3;
/// Hours that may be counted again at once, after a long suspension.
const ADDING: i64 = 6 * HOUR;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, everything is polled once, and what is missing is asked for.
    Poll(i64),
    /// The same, but the machine was suspended: the monotonic clock stood still.
    Suspend(i64),
    /// Prometheus scrapes every exporter that runs. It does so between two polls at the latest.
    Scrape,
    /// This one of the exporters that run is killed.
    Kill(usize),
    /// All are killed, and so many shards started, with the names of those before or with new ones.
    Shards(u32, bool),
    /// Prometheus fails, or answers again.
    Answers(bool),
    /// The service fails, or answers again.
    Serves(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => (1i64..70).prop_map(Event::Poll),
        2 => (130i64..9_000).prop_map(Event::Suspend),
        8 => Just(Event::Scrape),
        2 => (0usize..4).prop_map(Event::Kill),
        2 => ((1u32..4), any::<bool>()).prop_map(|(count, named)| Event::Shards(count, named)),
        1 => any::<bool>().prop_map(Event::Answers),
        1 => any::<bool>().prop_map(Event::Serves),
    ];
    prop::collection::vec(event, 1..60)
}

struct Play {
    rig: Rig,
    running: Vec<Exporter>,
    started: usize,
    is_scraped: bool,
    /// Late data that was lost with those that were killed.
    lost: Vec<Unchecked>,
}

impl Play {
    async fn kill(&mut self, exporter: Exporter) {
        self.lost.extend(exporter.unchecked(ADDING).await);
    }

    async fn start_shards(&mut self, count: u32, named: bool) {
        while let Some(exporter) = self.running.pop() {
            self.kill(exporter).await;
        }
        for index in 0..count {
            self.started += 1;
            // A name that comes again, as a stateful set has them, or one of its own.
            let name = if named { format!("pod-{index}") } else { format!("pod-{}", self.started + 100) };
            let config = sharded(self.rig.config(APPS, ""), index, count);
            self.running.push(self.rig.exporter(config, &name).await);
        }
    }

    async fn scrape(&mut self) {
        // No two scrapes of one moment.
        self.rig.pass(1).await;
        self.running.iter().for_each(|exporter| self.rig.scrape(exporter));
        self.is_scraped = true;
    }

    async fn poll(&mut self) {
        for exporter in &self.running {
            exporter.poll().await;
            exporter.handle.restorer.restore().await;
        }
        self.is_scraped = false;
    }

    async fn happen(&mut self, event: &Event) {
        if matches!(event, Event::Poll(_) | Event::Suspend(_)) && !self.is_scraped {
            self.scrape().await;
        }
        match event {
            Event::Poll(seconds) => {
                self.rig.pass(*seconds).await;
                self.poll().await;
            }
            Event::Suspend(seconds) => {
                self.rig.suspend(*seconds);
                self.poll().await;
            }
            Event::Scrape => self.scrape().await,
            Event::Kill(index) if *index < self.running.len() => {
                let exporter = self.running.remove(*index);
                self.kill(exporter).await;
            }
            Event::Kill(_) => {}
            Event::Shards(count, named) => self.start_shards(*count, *named).await,
            Event::Answers(true) => self.rig.prometheus.mend(),
            Event::Answers(false) => self.rig.prometheus.answer(|_| Some((503, String::new()))),
            Event::Serves(true) => self.rig.world.faults().clear(),
            Event::Serves(false) => self.rig.world.faults().set([Fault::from(Kind::Reset)]),
        }
    }
}

fn play(events: &[Event], late_share: f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let quirks = Quirks { late_share, late_within: 1800, ..Quirks::default() };
        let rig = Rig::of(Settings { seed: 7, projects: 1, apps: APPS, quirks, ..Settings::default() }).await;
        let mut play = Play { rig, running: Vec::new(), started: 0, is_scraped: true, lost: Vec::new() };
        play.start_shards(1, true).await;
        for event in events {
            play.happen(event).await;
        }
        // All is well again: every app is on a page, with everything there was.
        play.happen(&Event::Answers(true)).await;
        play.happen(&Event::Serves(true)).await;
        play.start_shards(2, false).await;
        for _ in 0..10 {
            play.happen(&Event::Poll(60)).await;
        }
        play.scrape().await;
        let apps_shown: usize = play.running.iter().map(Exporter::shown).sum();
        assert_eq!(apps_shown, APPS);
        // The last ones count every hour again, and add what they find.
        play.rig.world.end_late_data();
        for _ in 0..if late_share > 0.0 { 20 } else { 0 } {
            play.happen(&Event::Poll(900)).await;
        }
        play.scrape().await;
        play.rig.assert_exact_less_late(&play.lost);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_increase_is_the_truth(events in events()) {
        play(&events, 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn the_increase_is_the_truth_less_the_late_data_of_those_that_were_killed(events in events()) {
        play(&events, 0.03);
    }
}

#[test]
fn a_counter_that_begins_behind_is_read_at_0_before_it_grows() {
    use Event::{Poll, Scrape, Suspend};
    let before = [Poll(19), Poll(52), Scrape, Scrape, Poll(11), Poll(19), Poll(44)];
    let behind = [Suspend(1852), Poll(64), Poll(54), Suspend(7266), Suspend(8534)];
    play(&[&before[..], &behind].concat(), 0.0);
}
