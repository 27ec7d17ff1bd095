//! Trend values in two bytes.

/// The smallest value distinguished from 0; a microsecond.
const SMALLEST: f64 = 1e-6;
/// Steps of the logarithm, chosen so that values up to a billion fit in 16 bits.
const STEPS_PER_E: f64 = 1890.0;

/// A value on a logarithmic scale: 0 is none, 1 is zero.
pub(super) fn pack(value: Option<f64>) -> u16 {
    match value {
        None => 0,
        Some(value) if value < SMALLEST => 1,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 2..=65535")]
        Some(value) => ((value / SMALLEST).ln() * STEPS_PER_E + 2.0).round().clamp(2.0, 65_535.0) as u16,
    }
}

/// The value that [`pack`] was given, to 0.03 percent.
pub(super) fn unpack(packed: u16) -> Option<f64> {
    match packed {
        0 => None,
        1 => Some(0.0),
        packed => Some(((f64::from(packed) - 2.0) / STEPS_PER_E).exp() * SMALLEST),
    }
}
