//! The last replies in full, for people: of as many apps as fit, and of viewed apps.
//!
//! A target at rest needs only numbers; the text of its reply is ten times as large. So all texts share one budget.
//! While it lasts, every last reply is kept; beyond it, only replies of recently viewed apps, from their next poll on.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use pds_ledger::Key;

/// The most bytes of all texts together.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;
/// The longest text that is kept. A longer text is useless on a page.
const MAX_REPLY_BYTES: usize = 128 * 1024;
/// Number of viewed apps that are remembered.
const MAX_VIEWED: usize = 32;

/// A reply as received, with secrets redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When it came.
    pub at: Timestamp,
    /// Its body.
    pub text: Arc<str>,
    /// Whether its values were accepted.
    pub accepted: bool,
}

/// The last replies.
#[derive(Debug, Default)]
pub struct Replies(Mutex<KeptReplies>);

#[derive(Debug, Default)]
struct KeptReplies {
    replies: HashMap<Key, Reply>,
    bytes: usize,
    /// (project, app), the last viewed first.
    viewed: Vec<(Arc<str>, Arc<str>)>,
}

impl Replies {
    /// Keeps the result of `text` for a body of `length` bytes as the last reply of `key`, if there is room for it.
    /// Calls `text` only then.
    pub fn keep(&self, key: &Key, at: Timestamp, length: usize, text: impl FnOnce() -> String) {
        let mut kept = self.0.lock();
        kept.remove(key);
        let wanted = kept.viewed(key);
        if length > MAX_REPLY_BYTES || (!wanted && kept.bytes + length > MAX_TOTAL_BYTES) {
            return;
        }
        let text: Arc<str> = text().into();
        while kept.bytes + text.len() > MAX_TOTAL_BYTES {
            let unwanted = kept.replies.keys().find(|other| !kept.viewed(other)).cloned();
            let Some(other) = unwanted.or_else(|| kept.replies.keys().next().cloned()) else { return };
            kept.remove(&other);
        }
        kept.bytes += text.len();
        kept.replies.insert(key.clone(), Reply { at, text, accepted: false });
    }

    /// Records that the values of the last reply of `key` were accepted.
    pub fn accept(&self, key: &Key) {
        if let Some(reply) = self.0.lock().replies.get_mut(key) {
            reply.accepted = true;
        }
    }

    /// The last reply of `key`, if it was kept.
    pub fn of(&self, key: &Key) -> Option<Reply> {
        self.0.lock().replies.get(key).cloned()
    }

    /// Records that an app is viewed: its replies are kept from now on.
    pub fn view(&self, project: &Arc<str>, app: &Arc<str>) {
        let mut kept = self.0.lock();
        kept.viewed.retain(|known| (&known.0, &known.1) != (project, app));
        kept.viewed.insert(0, (Arc::clone(project), Arc::clone(app)));
        kept.viewed.truncate(MAX_VIEWED);
    }

    /// Forgets the replies of targets that are not `wanted`.
    pub(super) fn retain(&self, wanted: impl Fn(&Key) -> bool) {
        let mut kept = self.0.lock();
        let gone: Vec<Key> = kept.replies.keys().filter(|key| !wanted(key)).cloned().collect();
        gone.iter().for_each(|key| kept.remove(key));
    }
}

impl KeptReplies {
    fn remove(&mut self, key: &Key) {
        self.bytes -= self.replies.remove(key).map_or(0, |reply| reply.text.len());
    }

    fn viewed(&self, key: &Key) -> bool {
        self.viewed.iter().any(|(project, app)| (project, app) == (&key.owner.project, &key.owner.app))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pds_interface::get_app;
    use pds_ledger::Owner;

    fn key(app: usize) -> Key {
        Key { owner: Owner::new("p".into(), format!("a-{app}").into()), resource: get_app::RESOURCE }
    }

    #[test]
    fn replies_are_kept_while_there_is_room_and_those_viewed_beyond() {
        let replies = Replies::default();
        let length = 100_000;
        let keep = |app: usize| replies.keep(&key(app), Timestamp::UNIX_EPOCH, length, || "x".repeat(length));
        (0..30).for_each(keep);
        assert!(replies.of(&key(0)).is_some());
        assert!(replies.of(&key(29)).is_none(), "beyond the budget");
        replies.view(&key(29).owner.project, &key(29).owner.app);
        keep(29);
        assert!(replies.of(&key(29)).is_some(), "looked at");
        (0..30).for_each(keep);
        assert!(replies.of(&key(29)).is_some(), "stays");
        let kept = replies.0.lock();
        assert!(kept.bytes <= MAX_TOTAL_BYTES);
        assert_eq!(kept.bytes, kept.replies.len() * length);
    }

    #[test]
    fn a_reply_too_long_to_read_takes_the_place_of_none() {
        let replies = Replies::default();
        replies.keep(&key(0), Timestamp::UNIX_EPOCH, 2, || "{}".to_owned());
        replies.keep(&key(0), Timestamp::UNIX_EPOCH, MAX_REPLY_BYTES + 1, || unreachable!());
        assert_eq!(replies.of(&key(0)), None, "an old one would be taken for the last");
        replies.keep(&key(0), Timestamp::UNIX_EPOCH, MAX_REPLY_BYTES, || "{}".to_owned());
        assert!(replies.of(&key(0)).is_some(), "as long as the limit");
    }
}
