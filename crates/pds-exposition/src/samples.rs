//! The values of one target at rest: flat numbers beside a layout that targets of the same shape share.
//!
//! A reply is read through a [`Sink`], which collects the values in family order together with the text of their labels
//! beyond the target's own. The result is a [`Samples`]: one `f64` per series, and an `Arc<Layout>` that is shared by
//! all targets whose series have the same names and labels; thousands of apps with the same latency thresholds hold
//! their label text once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Family;
use super::encode;

/// The series without their values: for each family of the endpoint, the label texts of its series.
#[derive(Debug, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    shape: Arc<Shape>,
    /// All label texts, concatenated.
    text: Box<str>,
}

/// Positions of series and their label texts. Apps with different label texts mostly share it, because few texts have a
/// length of their own.
#[derive(Debug, PartialEq, Eq, Hash, Default)]
struct Shape {
    /// The index of each family's first series, and one more for the end.
    starts: Box<[u16]>,
    /// The end of each series' label text in [`Layout::text`].
    ends: Box<[u32]>,
}

impl Layout {
    /// The indices of the series of family `family`.
    pub fn series(&self, family: usize) -> Range<usize> {
        let starts = &self.shape.starts;
        match (starts.get(family), starts.get(family + 1)) {
            (Some(&start), Some(&end)) => usize::from(start)..usize::from(end),
            _ => 0..0,
        }
    }

    /// Whether the series that `sink` has collected are those of this layout.
    fn is_of(&self, sink: &Sink) -> bool {
        *self.text == *sink.text && *self.shape.ends == *sink.ends && *self.shape.starts == *sink.starts
    }
}

/// The values of one reply, or of one account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Names and labels of the series.
    pub layout: Arc<Layout>,
    /// The values, in the layout's order.
    pub values: Box<[f64]>,
}

impl Samples {
    /// The series of `family`, which is one of the `families` in the order of the layout, by their labels.
    pub fn series<'a>(
        &'a self,
        families: &[Family],
        family: &Family,
    ) -> impl Iterator<Item = (Labels<'a>, f64)> + use<'a> {
        let index = families.iter().position(|known| known.name == family.name);
        index.into_iter().flat_map(|index| self.of(index)).map(|(text, value)| (Labels(text), value))
    }

    /// The series of family `family` as (label text, value).
    pub fn of(&self, family: usize) -> impl Iterator<Item = (&str, f64)> {
        let series = self.layout.series(family);
        let all_ends = &self.layout.shape.ends;
        let mut start = series.start.checked_sub(1).map_or(0, |before| all_ends[before] as usize);
        let ends = all_ends.get(series.clone()).unwrap_or_default();
        let values = self.values.get(series).unwrap_or_default();
        ends.iter().zip(values).map(move |(&end, &value)| {
            let labels = self.layout.text.get(start..end as usize).unwrap_or("");
            start = end as usize;
            (labels, value)
        })
    }
}

/// The labels of a series beyond the target's own, as they are written.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// The value of the label `name`.
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All labels by name and value, in the order they are written.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut text = self.0;
        std::iter::from_fn(move || {
            let (name, rest) = text.split_once("=\"")?;
            let (value, rest) = rest.split_at_checked(closing_quote(rest)?)?;
            text = rest.strip_prefix("\",").unwrap_or_default();
            Some((name, encode::label_value(value)))
        })
    }
}

/// The position of the quote that ends a value: the first one that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escape = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escape;
        escape = byte == b'\\' && !escape;
        ends
    })
}

/// Deduplicated layouts, and the shapes of those.
#[derive(Debug, Default)]
pub struct Layouts {
    layouts: Mutex<HashSet<Arc<Layout>>>,
    shapes: Mutex<HashSet<Arc<Shape>>>,
}

/// The member of `known` that equals `value`; adds `value` if there is none.
fn share<T: Eq + Hash>(known: &Mutex<HashSet<Arc<T>>>, value: T) -> Arc<T> {
    let mut known = known.lock();
    if let Some(found) = known.get(&value) {
        return Arc::clone(found);
    }
    // Unused shapes are removed when the set has to grow, so the cost is spread over the insertions.
    if known.len() == known.capacity() {
        known.retain(|shared| Arc::strong_count(shared) > 1);
    }
    let shared = Arc::new(value);
    known.insert(Arc::clone(&shared));
    shared
}

/// Collects the series of one reply in family order.
#[derive(Debug)]
pub struct Sink {
    starts: Vec<u16>,
    ends: Vec<u32>,
    text: String,
    values: Vec<f64>,
}

impl Default for Sink {
    /// Empty, with room for what an app's replies usually hold.
    fn default() -> Self {
        Self {
            starts: Vec::with_capacity(32),
            ends: Vec::with_capacity(32),
            text: String::with_capacity(1024),
            values: Vec::with_capacity(32),
        }
    }
}

impl Sink {
    /// Begins the next family; series put from here on belong to it.
    pub fn next_family(&mut self) {
        self.starts.push(u16::try_from(self.values.len()).unwrap_or(u16::MAX));
    }

    /// Adds a series without labels of its own. A value that is not finite is left out.
    pub fn put(&mut self, value: f64) {
        self.put_labelled([], value);
    }

    /// Adds a series with these labels beyond the target's own. As [`Sink::put_labelled`].
    pub fn put_with(&mut self, labels: &[(&str, &str)], value: f64) {
        self.put_labelled(labels.iter().copied(), value);
    }

    /// Adds a series with these labels beyond the target's own. Values that are not finite are left out,
    /// and so is everything beyond 65,535 series per reply, which valid replies never reach.
    pub fn put_labelled<'a>(&mut self, labels: impl IntoIterator<Item = (&'a str, &'a str)>, value: f64) {
        if !value.is_finite() || self.values.len() >= usize::from(u16::MAX) {
            return;
        }
        let start = self.text.len();
        encode::write_labels(&mut self.text, labels);
        let Ok(end) = u32::try_from(self.text.len()) else {
            self.text.truncate(start);
            return;
        };
        self.ends.push(end);
        self.values.push(value);
    }

    /// The collected samples, with their layout shared through `layouts`.
    pub fn finish(mut self, layouts: &Layouts) -> Samples {
        self.next_family();
        self.share(layouts)
    }

    /// Replaces `samples` with the collected ones. If the series are the same, only the values are written:
    /// in place if nothing else holds them. Nothing is allocated per series.
    pub fn replace(mut self, samples: &mut Arc<Samples>, layouts: &Layouts) {
        self.next_family();
        if !samples.layout.is_of(&self) {
            *samples = Arc::new(self.share(layouts));
        } else if let Some(unshared) = Arc::get_mut(samples) {
            unshared.values.copy_from_slice(&self.values);
        } else {
            let layout = Arc::clone(&samples.layout);
            *samples = Arc::new(Samples { layout, values: self.values.into() });
        }
    }

    fn share(self, layouts: &Layouts) -> Samples {
        let shape = Shape { starts: self.starts.into(), ends: self.ends.into() };
        let layout = Layout { shape: share(&layouts.shapes, shape), text: self.text.into_boxed_str() };
        Samples { layout: share(&layouts.layouts, layout), values: self.values.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_families(threshold: &str, values: [f64; 3]) -> Sink {
        let mut sink = Sink::default();
        sink.next_family();
        sink.put(values[0]);
        sink.next_family();
        sink.put_with(&[("threshold", threshold)], values[1]);
        sink.put_with(&[("threshold", "+Inf")], values[2]);
        sink
    }

    #[test]
    fn series_come_back_by_family_with_their_labels() {
        let samples = two_families("0.1", [1.0, 2.0, 3.0]).finish(&Layouts::default());
        assert_eq!(samples.of(0).collect::<Vec<_>>(), [("", 1.0)]);
        assert_eq!(
            samples.of(1).collect::<Vec<_>>(),
            [("threshold=\"0.1\"", 2.0), ("threshold=\"+Inf\"", 3.0)]
        );
        assert_eq!(samples.of(2).count(), 0);
    }

    #[test]
    fn labels_come_back_as_they_were_put() {
        let hostile = "a\"b\\c\nd=\",x=\"<script>🦀";
        let families = [Family::gauge("pds_a", &["n"], ""), Family::gauge("pds_b", &["n", "m"], "")];
        let mut sink = Sink::default();
        sink.next_family();
        sink.put_with(&[("n", hostile)], 1.0);
        sink.next_family();
        sink.put_with(&[("n", "plain"), ("m", hostile)], 2.0);
        sink.put_with(&[("n", hostile), ("m", "")], 3.0);
        let samples = sink.finish(&Layouts::default());
        let values = |samples: &Samples, families: &[Family], label: &str| -> Vec<Option<String>> {
            let series = samples.series(families, &families[families.len() - 1]);
            series.map(|(labels, _)| labels.get(label).map(Cow::into_owned)).collect()
        };
        let some = |value: &str| Some(value.to_owned());
        assert_eq!(values(&samples, &families[..1], "n"), [some(hostile)]);
        assert_eq!(values(&samples, &families, "n"), [some("plain"), some(hostile)]);
        assert_eq!(values(&samples, &families, "m"), [some(hostile), some("")]);
        assert_eq!(values(&samples, &families, "x"), [None, None]);
        assert_eq!(samples.series(&families[..1], &families[1]).count(), 0, "not one of the families");
    }

    #[test]
    fn a_value_that_is_no_number_is_no_series() {
        let samples = two_families("0.1", [f64::NAN, 2.0, f64::INFINITY]).finish(&Layouts::default());
        assert_eq!(samples.of(0).count(), 0);
        assert_eq!(samples.of(1).count(), 1);
    }

    #[test]
    fn targets_of_one_shape_share_their_layout_and_forgotten_ones_go() {
        let layouts = Layouts::default();
        let one = two_families("0.1", [1.0; 3]).finish(&layouts);
        let two = two_families("0.1", [2.0; 3]).finish(&layouts);
        assert!(Arc::ptr_eq(&one.layout, &two.layout));
        for i in 0..1000 {
            drop(two_families(&i.to_string(), [1.0; 3]).finish(&layouts));
        }
        let kept = layouts.layouts.lock().len();
        assert!(kept < 100, "{kept} layouts kept");
    }

    #[test]
    fn layouts_with_texts_of_the_same_lengths_share_their_shape() {
        let layouts = Layouts::default();
        let [one, other, longer] =
            ["0.1", "0.2", "0.25"].map(|threshold| two_families(threshold, [1.0; 3]).finish(&layouts));
        assert_ne!(one.layout, other.layout);
        assert!(Arc::ptr_eq(&one.layout.shape, &other.layout.shape));
        assert_ne!(one.layout.shape, longer.layout.shape);
        drop((one, other, longer));
        for i in 0..1000 {
            drop(two_families(&"1".repeat(i), [1.0; 3]).finish(&layouts));
        }
        let shapes = layouts.shapes.lock().len();
        assert!(shapes < 300, "{shapes} shapes kept");
    }
}
