//! When values leave the page, and what replaces them.

use super::*;

#[tokio::test(start_paused = true)]
async fn samples_and_their_message_expire_together_and_the_page_knows_the_first_to_expire() {
    let (store, domains, _) = small_store();
    let began = Instant::now();
    let [first, second] = [0, 1].map(|window| Variant { window, container: None });
    domains.replace(&first, Sink::default());
    domains.set_message(Some("out of memory".into()));
    advance(Duration::from_secs(10)).await;
    domains.replace(&second, Sink::default());
    let expiry = began + Duration::from_secs(300);
    assert_eq!(store.snapshot(Instant::now(), &Filter::default()).stale_at, Some(expiry));
    let is_shown = |at| [&first, &second].map(|variant| domains.health_at(variant, at).1.is_some());
    assert_eq!(is_shown(expiry - Duration::from_nanos(1)), [true, true]);
    assert_eq!(is_shown(expiry), [false, true]);
    let message = |at| domains.message(at).map(|text| text.to_string());
    assert_eq!(message(expiry).as_deref(), Some("out of memory"));
    assert_eq!(message(expiry + Duration::from_secs(10)), None);
    domains.clear();
    domains.replace(&first, Sink::default());
    assert_eq!(message(Instant::now()), None, "it was of another app");
    domains.set_stale_after(Some(Duration::ZERO));
    let later = Instant::now() + Duration::from_millis(1);
    assert!(domains.health_at(&first, later).1.is_none(), "zero is not for ever");
    domains.set_stale_after(None);
    assert!(domains.health_at(&first, later).1.is_some());
}

#[tokio::test(start_paused = true)]
async fn counters_that_leave_the_page_are_replaced_by_how_far_they_are_behind() {
    let store = Store::new(pds_ledger::FAMILIES);
    let counter = key("p", "a", response_time::RESOURCE);
    reconcile(&store, vec![(counter.clone(), Section::Counters)]);
    let counter = store.cell(&counter, Section::Counters).unwrap();
    let behind = || {
        let page = text(&store, Format::Text, &Filter::default());
        let line = page.lines().find(|line| line.starts_with("pds_app_accounting_behind_seconds{"))?;
        Some(line.rsplit_once(' ').unwrap().1.to_owned())
    };
    let minute = Duration::from_secs(60);
    let is_shown = || counter.shows_counters(Instant::now());
    assert!(!is_shown(), "none yet");
    counter.put_counters(Sink::default(), Some(minute), Duration::from_secs(20));
    assert_eq!((behind(), is_shown(), counter.counters_are_behind()), (None, true, false));
    advance(minute).await;
    assert_eq!((behind().as_deref(), is_shown()), (Some("80"), false));
    counter.keep_counters(minute, Duration::from_secs(30));
    assert_eq!(behind(), None);
    advance(2 * minute).await;
    assert_eq!(behind().as_deref(), Some("150"));
    counter.put_counters(Sink::default(), None, Duration::ZERO);
    assert!(counter.counters_are_behind());
}

#[tokio::test(start_paused = true)]
async fn whatever_changes_the_page_is_a_new_version_of_it() {
    let (store, domains, counter) = small_store();
    let mut before = store.version();
    let mut is_new = || {
        let is_new = store.version() > before;
        before = store.version();
        is_new
    };
    put(&domains, 3.0);
    assert!(is_new());
    end(&domains, 1000, None);
    assert!(is_new());
    counter.keep_counters(Duration::from_secs(60), Duration::ZERO);
    assert!(is_new());
    let version = store.version();
    counter.put_counters(Sink::default(), Some(Duration::from_secs(60)), Duration::ZERO);
    assert_eq!(store.version(), version + 1, "no page in between has the former series for longer");
    assert!(is_new());
    domains.clear();
    assert!(is_new());
    domains.health_at(&Variant::default(), Instant::now());
    assert!(!is_new());
}
