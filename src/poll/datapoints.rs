//! Selects the datapoint to show: the newest that the service will no longer change.
//!
//! The service sums up runs in buckets. The last bucket of a range is still being filled and the first one is cut off, so
//! their percentiles cover only a part. The width of a bucket is not documented. It is learned from all replies about
//! the app: the smallest distance between datapoints ever seen within one reply or, while each holds only one, from one
//! reply to the next about the same window.

use std::collections::BTreeMap;
use std::sync::Arc;

use pds_interface::param::Resolution;
use pds_interface::{Point, TimeRange};

/// Facts about the datapoints of one target.
#[derive(Debug, Default)]
pub struct Datapoints {
    /// The requested resolution; each has its own bucket width.
    resolution: Resolution,
    /// Seconds; `None` until one reply held two datapoints.
    width: Option<f64>,
    /// While the width is unknown, the smallest distance between single datapoints, in seconds.
    apart: Option<f64>,
    /// The only datapoint of the last reply, by window and container, while the width is unknown.
    lone: BTreeMap<(usize, Option<Arc<str>>), Point>,
}

impl Datapoints {
    /// The newest complete datapoint with a value. `points` are sorted by time, from a reply about `range` for the
    /// window and container `of`.
    pub fn newest(
        &mut self,
        resolution: Resolution,
        of: (usize, Option<Arc<str>>),
        points: &[Point],
        range: TimeRange,
    ) -> Option<Point> {
        if resolution != self.resolution {
            *self = Self { resolution, ..Self::default() };
        }
        let gaps = points.iter().zip(points.iter().skip(1)).map(|(one, next)| next.time - one.time);
        let own = gaps.filter(|gap| *gap > 0.0).reduce(f64::min);
        self.width = least(self.width, own);
        let mut repeated = None;
        match points {
            _ if self.width.is_some() => self.lone = BTreeMap::new(),
            [point] => {
                let before = self.lone.insert(of, *point);
                repeated = before.filter(|before| before == point);
                let moved = before.map(|before| (point.time - before.time).abs()).filter(|gap| *gap > 0.0);
                self.apart = least(self.apart, moved);
            }
            _ => drop(self.lone.remove(&of)),
        }
        // Datapoints of a long range may be further apart.
        let width = match (self.width(), own) {
            (Some(width), Some(own)) if points.len() > 2 => width.max(own),
            (width, _) => width.unwrap_or(f64::INFINITY),
        };
        let is_whole = |point: &&Point| point.time + width <= range.end as f64 || repeated == Some(**point);
        points.iter().rev().filter(|point| begins_in(point, range)).find(is_whole).copied()
    }

    /// The width of a bucket in seconds, as far as it is known.
    pub fn width(&self) -> Option<f64> {
        self.width.or(self.apart)
    }
}

fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    [one, other].into_iter().flatten().reduce(f64::min)
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
    fn incomplete_buckets_are_never_shown() {
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
        assert_eq!(newest(&mut seen, &[point(180, 2.0)], 160, 239), None, "the replies are 60 apart");
        assert_eq!(newest(&mut seen, &[point(240, 2.0)], 220, 300), Some(240.0));
    }

    #[test]
    fn a_datapoint_without_a_value_yields_to_the_previous_one() {
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
        let newest =
            |seen: &mut Datapoints, resolution, points| seen.newest(resolution, (0, None), points, range);
        assert_eq!(newest(&mut seen, Resolution::High, &fine), Some(point(60, 60.0)));
        assert_eq!(newest(&mut seen, Resolution::Standard, &coarse), Some(point(0, 0.0)));
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
