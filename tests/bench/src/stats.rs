//! Medians, and ratios between what was measured side by side.

use std::fmt;

/// The median of several values with the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Spread { median, least: sorted[0], greatest: sorted[sorted.len() - 1] }
    }

    /// Of the ratios, repetition by repetition: a machine that changes speed changes both sides.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Spread {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        Spread::of(&ratios)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread { median, least, greatest } = self;
        write!(f, "{} [{}..{}]", three_digits(*median), three_digits(*least), three_digits(*greatest))
    }
}

/// A number with about three significant digits.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, least: 1.0, greatest: 4.0 });
        assert_eq!(Spread::of(&[9.0]).median, 9.0);
    }

    #[test]
    fn ratios_are_taken_within_a_repetition() {
        let spread = Spread::of_ratios(&[10.0, 20.0, 30.0], &[5.0, 10.0, 10.0]);
        assert_eq!(spread, Spread { median: 2.0, least: 2.0, greatest: 3.0 });
        assert_eq!(spread.to_string(), "2.00 [2.00..3.00]");
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        assert_eq!([0.5, 12.34, 1234.5].map(three_digits), ["0.50", "12.3", "1234"]);
    }
}
