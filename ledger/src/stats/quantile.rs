//! Sample quantiles of type 7 (Hyndman and Fan 1996, the default of R and `NumPy`): for n sorted
//! samples and h = (n - 1) p, the value between the two around h, linearly.

/// Returns the `p` quantile of samples that are sorted ascending, `p` in [0, 1]; `None` without
/// samples or with `p` outside.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let last = sorted.len().checked_sub(1)?;
    let h = last as f64 * p;
    let below = h.floor();
    // `below` lies in [0, last], which is a length.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= below <= last"
    )]
    let index = below as usize;
    let low = *sorted.get(index)?;
    let high = sorted.get(index + 1).copied().unwrap_or(low);
    Some(low + (h - below) * (high - low))
}

/// Returns the `p` quantile of samples in any order, without sorting them all.
pub fn quantile(samples: &[f64], p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let h = samples.len().checked_sub(1)? as f64 * p;
    let mut partly = samples.to_vec();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= h <= length - 1"
    )]
    let index = h.floor() as usize;
    let (_, low, above) = partly.select_nth_unstable_by(index, f64::total_cmp);
    let low = *low;
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    Some(low + (h - h.floor()) * (high - low))
}

/// Returns the median of samples in any order.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // np.percentile([15, 20, 35, 40, 50], [0, 5, 30, 40, 50, 100])
        let samples = [50.0, 15.0, 40.0, 20.0, 35.0];
        for (p, expected) in
            [(0.0, 15.0), (0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.5, 35.0), (1.0, 50.0)]
        {
            let found = quantile(&samples, p).unwrap();
            assert!((found - expected).abs() < 1e-12, "{p}: {found}");
        }
    }

    #[test]
    fn no_samples_have_no_quantile() {
        assert_eq!(median(&[]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(median(&[7.0]), Some(7.0));
    }
}
