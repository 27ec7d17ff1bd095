//! Checks that distributions belong to their ranges: the distributions of two parts add up to the distribution of the
//! whole.

use pds_interface::Tally;

/// The distribution of a range beside those of its two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    /// They fit, or too little is known.
    Fit,
    /// All are the same to the last digit, although the totals do not allow these shares.
    Copied,
    /// The parts do not add up to the whole.
    Apart,
}

/// Compares the distribution of `whole` with those of its `parts`, within the resolution of their shares.
pub(super) fn compare(whole: &Tally, parts: &[Tally; 2]) -> Shares {
    let [one, other] = parts;
    let replies = [whole, one, other];
    let thresholds = |reply: &Tally| reply.shares.iter().map(|(threshold, _)| *threshold).collect::<Vec<_>>();
    if parts.iter().any(|part| part.total.unwrap_or_default() == 0 || thresholds(part) != thresholds(whole)) {
        return Shares::Fit;
    }
    let [all, first, second] = replies.map(|reply| reply.count().unwrap_or_default());
    let step = replies.map(Tally::share_step).into_iter().fold(1.0, f64::min);
    let adds_up = whole.shares.iter().zip(&one.shares).zip(&other.shares).all(|((whole, one), other)| {
        (one.1 * first + other.1 * second - whole.1 * all).abs() <= step * all + 1.0
    });
    // Shares may be rounded to the nearest, or down.
    let is_possible =
        |share: f64, total: f64| (share * total - (share * total).round()).abs() <= step * total + 0.001;
    let is_impossible = |(_, share): &(f64, f64)| {
        (0.0..1.0).contains(share) && ![all, first, second].iter().all(|total| is_possible(*share, *total))
    };
    if !adds_up {
        Shares::Apart
    } else if parts.iter().all(|part| part.shares == whole.shares) && whole.shares.iter().any(is_impossible) {
        Shares::Copied
    } else {
        Shares::Fit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reply about `total` requests, `within` each threshold, with shares of so many decimals of a percent.
    fn reply(within: &[u64], total: u64, round: fn(f64) -> f64, decimals: i32) -> Tally {
        let scale = 10f64.powi(decimals);
        let share = |count: &u64| round(*count as f64 * 100.0 / total.max(1) as f64 * scale) / scale / 100.0;
        let shares = within.iter().enumerate().map(|(at, count)| (at as f64, share(count))).collect();
        Tally { total: Some(total), shares, ..Tally::default() }
    }

    /// Requests within each of five thresholds, and all requests.
    fn distribution() -> impl Strategy<Value = (Vec<u64>, u64)> {
        (0..200_000_u64, prop::collection::vec(0..=1000_u64, 5)).prop_map(|(total, mut shares)| {
            shares.sort_unstable();
            (shares.iter().map(|share| share * total / 1000).collect(), total)
        })
    }

    proptest! {
        #[test]
        fn the_distribution_of_an_honest_service_fits_however_it_is_rounded(
            one in distribution(), other in distribution(), times in 1..20_u64, is_steady: bool,
            decimals in 0..=14_i32, mode in 0..3_usize,
        ) {
            // A steady distribution is the same in both parts.
            let multiple = || (one.0.iter().map(|within| within * times).collect(), one.1 * times);
            let other = if is_steady { multiple() } else { other };
            let whole: Vec<u64> = one.0.iter().zip(&other.0).map(|(one, other)| one + other).collect();
            let round = [f64::round, f64::floor, f64::ceil][mode];
            let reply = |within: &[u64], total| reply(within, total, round, decimals);
            let parts = [reply(&one.0, one.1), reply(&other.0, other.1)];
            prop_assert_eq!(compare(&reply(&whole, one.1 + other.1), &parts), Shares::Fit);
        }
    }

    #[test]
    fn a_distribution_that_does_not_follow_the_range_shows() {
        let exact = |within: &[u64], total| reply(within, total, f64::round, 12);
        let day = exact(&[123_457, 987_001], 1_000_003).shares;
        let of_day = |total| Tally { total: Some(total), shares: day.clone(), ..Tally::default() };
        assert_eq!(compare(&of_day(3600), &[of_day(1700), of_day(1900)]), Shares::Copied);
        let parts = [exact(&[10, 100], 200), exact(&[20, 120], 300)];
        assert_eq!(compare(&exact(&[30, 220], 500), &parts), Shares::Fit);
        assert_eq!(compare(&exact(&[30, 240], 500), &parts), Shares::Apart);
        let percents = |within: &[u64], total| reply(within, total, f64::floor, 0);
        let parts = [percents(&[10, 100], 200), percents(&[20, 120], 300)];
        assert_eq!(compare(&percents(&[30, 223], 500), &parts), Shares::Fit, "within a percent");
        assert_eq!(compare(&percents(&[30, 260], 500), &parts), Shares::Apart);
    }
}
