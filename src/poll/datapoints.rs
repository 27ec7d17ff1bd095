//! Selects the datapoint to show: the newest that the service will no longer change.
//!
//! The service sums up runs in buckets. The last bucket of a range is still being filled and the first one is cut off, so
//! their percentiles cover only a part. The width of a bucket is not documented. It is learned: the smallest distance
//! between datapoints ever seen for the app.

use std::collections::BTreeMap;
use std::sync::Arc;

use pds_interface::param::Resolution;
use pds_interface::{Point, TimeRange};

/// What is known about the datapoints of one target.
#[derive(Debug, Default)]
pub struct Datapoints {
    /// The requested resolution; each has its own bucket width.
    resolution: Resolution,
    /// Seconds; `None` until one reply held two datapoints.
    width: Option<f64>,
    /// The only datapoint of the last reply, by window and container, while the width is unknown.
    lone: BTreeMap<(usize, Option<Arc<str>>), Point>,
}

impl Datapoints {
    /// The newest complete datapoint with a value. `points` rise in time and come from a reply about `range` for the
    /// window and container `of`.
    pub fn newest(
        &mut self,
        resolution: Resolution,
        of: (usize, Option<Arc<str>>),
        points: &[Point],
        range: TimeRange,
    ) -> Option<Point> {
        if let Some(newest) = self.complete(resolution, points, range).next_back() {
            return Some(newest);
        }
        if self.width.is_some() {
            self.lone = BTreeMap::new();
            return None;
        }
        let lone = points.last().filter(|point| begins_in(point, range)).copied();
        let before = match lone {
            Some(lone) => self.lone.insert(of, lone),
            None => self.lone.remove(&of),
        };
        lone.filter(|lone| before == Some(*lone))
    }

    /// The complete datapoints with a value, of a reply about `range`; none while the width is unknown.
    fn complete(
        &mut self,
        resolution: Resolution,
        points: &[Point],
        range: TimeRange,
    ) -> impl DoubleEndedIterator<Item = Point> {
        if resolution != self.resolution {
            *self = Self { resolution, ..Self::default() };
        }
        let gaps = points.iter().zip(points.iter().skip(1)).map(|(one, next)| next.time - one.time);
        let own = gaps.filter(|gap| *gap > 0.0).reduce(f64::min);
        self.width = [self.width, own].into_iter().flatten().reduce(f64::min);
        // Datapoints of a long range may be further apart.
        let width = match (self.width, own) {
            (Some(width), Some(own)) if points.len() > 2 => width.max(own),
            (width, _) => width.unwrap_or(f64::INFINITY),
        };
        let end = range.end as f64;
        points.iter().copied().filter(move |point| begins_in(point, range) && point.time + width <= end)
    }
}

/// Whether the bucket has a value and is not cut off by the start of the range.
fn begins_in(point: &Point, range: TimeRange) -> bool {
    point.time >= range.start as f64 && point.has_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(times: &[i32]) -> Vec<Point> {
        times.iter().map(|time| point(*time, f64::from(*time))).collect()
    }

    fn point(time: i32, p50: f64) -> Point {
        Point { time: f64::from(time), values: [Some(p50), None, None] }
    }

    fn newest(seen: &mut Datapoints, points: &[Point], start: i64, end: i64) -> Option<f64> {
        seen.newest(Resolution::Standard, (0, None), points, TimeRange { start, end }).map(|point| point.time)
    }

    #[test]
    fn the_bucket_being_filled_and_the_one_cut_are_never_shown() {
        let mut seen = Datapoints::default();
        let all = points(&[0, 60, 120, 180, 240, 300]);
        assert_eq!(newest(&mut seen, &all, 30, 330), Some(240.0));
        assert_eq!(newest(&mut seen, &all, 30, 359), Some(240.0));
        assert_eq!(newest(&mut seen, &all, 30, 360), Some(300.0), "complete to the second");
        assert_eq!(newest(&mut seen, &points(&[240, 300]), 241, 341), None, "one is cut, one is not full");
    }

    #[test]
    fn no_bucket_is_skipped_if_polls_are_at_most_a_bucket_apart() {
        for interval in [15, 45, 60] {
            let (mut seen, mut shown) = (Datapoints::default(), Vec::new());
            for end in (1007..5000).step_by(interval) {
                let first = (end - 300) / 60 * 60;
                let times: Vec<i32> = (first..end).step_by(60).collect();
                shown.extend(newest(&mut seen, &points(&times), i64::from(end - 300), i64::from(end)));
            }
            shown.dedup();
            assert!(shown.windows(2).all(|pair| pair[1] - pair[0] == 60.0), "{shown:?}");
        }
    }

    #[test]
    fn a_datapoint_of_unknown_width_is_shown_once_it_is_repeated_unchanged() {
        let mut seen = Datapoints::default();
        assert_eq!(newest(&mut seen, &[point(60, 1.0)], 30, 90), None);
        assert_eq!(newest(&mut seen, &[point(60, 1.5)], 30, 100), None, "it is still being filled");
        assert_eq!(newest(&mut seen, &[point(60, 1.5)], 30, 110), Some(60.0));
        assert_eq!(newest(&mut seen, &[], 100, 160), None);
        assert_eq!(newest(&mut seen, &[point(120, 2.0)], 100, 160), None);
    }

    #[test]
    fn one_without_a_value_gives_its_place_to_the_one_before() {
        let mut seen = Datapoints::default();
        let mut all = points(&[0, 60, 120]);
        all.push(Point { time: 180.0, values: [None; 3] });
        assert_eq!(newest(&mut seen, &all, 0, 300), Some(120.0));
    }

    #[test]
    fn another_resolution_learns_its_width_again() {
        let mut seen = Datapoints::default();
        let range = TimeRange { start: 0, end: 70 };
        let (coarse, fine) = (points(&[0, 60]), points(&[40, 50, 60]));
        let of =
            |seen: &mut Datapoints, resolution, points| seen.newest(resolution, (0, None), points, range);
        assert_eq!(of(&mut seen, Resolution::High, &fine), Some(point(60, 60.0)));
        assert_eq!(of(&mut seen, Resolution::Standard, &coarse), Some(point(0, 0.0)));
    }

    #[test]
    fn the_smallest_distance_seen_is_the_width_but_a_coarser_series_has_its_own() {
        let mut seen = Datapoints::default();
        assert_eq!(newest(&mut seen, &points(&[0, 60, 120]), 0, 180), Some(120.0));
        // Empty buckets are missing.
        assert_eq!(newest(&mut seen, &points(&[0, 120]), 0, 180), Some(120.0));
        assert_eq!(newest(&mut seen, &points(&[0, 480, 960]), 0, 1100), Some(480.0));
    }
}
