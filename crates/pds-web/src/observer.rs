//! What the server reports: one method per event, so that the program behind it counts them as it counts everything.

use std::fmt::Debug;

/// Receives the server's events. Methods are called on the serving thread and must return at once.
pub trait Observer: Debug + Send + Sync + 'static {
    /// A connection is `now` something else than `before`; `None` means that it is not open.
    fn connection(&self, before: Option<Activity>, now: Option<Activity>) {
        let _ = (before, now);
    }

    /// The web configuration file was read. If not `good`, the last good one stays in force.
    fn web_config_read(&self, good: bool) {
        let _ = good;
    }
}

/// Ignores all events.
impl Observer for () {}

/// What an open connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A request of it is being answered.
    Active,
    /// No request of it is.
    Idle,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Counts all events. Cloning shares the counts.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Counted(Arc<Mutex<Counts>>);

    #[derive(Debug, Default)]
    struct Counts {
        active: i32,
        idle: i32,
        config_good: Option<bool>,
    }

    impl Counted {
        /// How many connections are active, and how many idle.
        pub(crate) fn connections(&self) -> (i32, i32) {
            let counts = self.0.lock().unwrap();
            (counts.active, counts.idle)
        }

        pub(crate) fn config_good(&self) -> Option<bool> {
            self.0.lock().unwrap().config_good
        }
    }

    impl Observer for Counted {
        fn connection(&self, before: Option<Activity>, now: Option<Activity>) {
            let mut counts = self.0.lock().unwrap();
            for (activity, by) in [(before, -1), (now, 1)] {
                match activity {
                    Some(Activity::Active) => counts.active += by,
                    Some(Activity::Idle) => counts.idle += by,
                    None => {}
                }
            }
        }

        fn web_config_read(&self, good: bool) {
            self.0.lock().unwrap().config_good = Some(good);
        }
    }
}
