//! The slope of the least-squares line through values at 0, 1, 2 and so on.
//!
//! # Design
//! The reference of the analysis takes the slope from `numpy.polyfit`, and compares it with
//! thresholds that rates such as 12 of 40 reach exactly. Which side such a slope falls on is a
//! question of its last bit. So the slope is computed in the steps of that function: Householder
//! reflections and a singular value decomposition of the scaled matrix, with the same fused
//! multiplications. The matrix depends on the number of points alone, so its factors are constants:
//! those that LAPACK (OpenBLAS 0.3, x86-64 with FMA) finds for three, four and five points.

/// Factors of the least-squares problem with one number of points.
struct LineFit {
    /// The first reflector, without its leading 1; its factor is 1.
    first: &'static [f64],
    /// The second reflector, without its leading 1.
    second: &'static [f64],
    /// Factor of the second reflector.
    tau: f64,
    /// Cosine and sine of the left singular vectors.
    rotation: [f64; 2],
    /// Inverses of the singular values.
    inverse: [f64; 2],
    /// Parts of the right singular vectors that belong to the slope.
    weights: [f64; 2],
    /// Inverse of the largest entry, and length of the column of positions.
    scale: [f64; 2],
}

const FITS: [LineFit; 3] = [
    LineFit {
        first: &[0.4472135954999579, 0.8944271909999159],
        second: &[0.9577900915936352],
        tau: 1.0430999187937522,
        rotation: [0.9419651451198934, -0.33571068701972895],
        inverse: [0.7506719169492698, 2.1062980969235356],
        weights: [-0.7071067811865475, -0.7071067811865477],
        scale: [1.0, 2.23606797749979],
    },
    LineFit {
        first: &[0.2672612419124244, 0.5345224838248488, 0.8017837257372732],
        second: &[-0.2612154207033284, -0.7252907542788539],
        tau: 1.2544846459837784,
        rotation: [0.9491532346616307, 0.3148144487334777],
        inverse: [0.744986958231911, 2.246106505058112],
        weights: [-0.7071067811865475, 0.7071067811865477],
        scale: [1.0, 3.7416573867739413],
    },
    LineFit {
        first: &[0.18257418583505539, 0.36514837167011077, 0.5477225575051662, 0.7302967433402215],
        second: &[-0.01792308748762557, -0.30856097714529646, -0.5991988668029673],
        tau: 1.3749764232570127,
        rotation: [0.9530206138714225, 0.30290544652768636],
        inverse: [0.7419637843027257, 2.334414218338977],
        weights: [-0.7071067811865474, 0.7071067811865477],
        scale: [1.0000000000000002, 5.477225575051661],
    },
];

/// Returns the slope of the line through three to five values; `None` for another number.
pub(super) fn slope(values: &[f64]) -> Option<f64> {
    let fit = FITS.get(values.len().checked_sub(3)?)?;
    let [first, rest @ ..] = values else { return None };
    let (first, rest) = reflect(fit.first, 1.0, *first, rest);
    let (second, _) = reflect(fit.second, fit.tau, rest[0], &rest[1..]);
    let [cos, sin] = fit.rotation;
    let left = [cos.mul_add(first, sin * second), cos.mul_add(second, -(sin * first))];
    let [a, b] = [left[0] * fit.inverse[0], left[1] * fit.inverse[1]];
    let slope = fit.weights[0].mul_add(a, fit.weights[1] * b);
    Some(slope * fit.scale[0] / fit.scale[1])
}

/// Applies a reflector `(1, vector)` to a column.
fn reflect(vector: &[f64], tau: f64, first: f64, rest: &[f64]) -> (f64, Vec<f64>) {
    let step = -tau * product(vector, first, rest);
    let moved = vector.iter().zip(rest).map(|(v, value)| step.mul_add(*v, *value));
    (step + first, moved.collect())
}

/// Returns the product of a reflector and a column, summed as OpenBLAS does: four entries in pairs,
/// then the others.
fn product(vector: &[f64], first: f64, rest: &[f64]) -> f64 {
    match (vector, rest) {
        ([v1], [b]) => 1f64.mul_add(first, v1 * b),
        ([v1, v2], [b, c]) => v2.mul_add(*c, 1f64.mul_add(first, v1 * b)),
        ([v1, v2, v3, tail @ ..], [b, c, d, last @ ..]) => {
            let four = (first + v2 * c) + (v1 * b + v3 * d);
            tail.iter().zip(last).fold(four, |sum, (v, value)| v.mul_add(*value, sum))
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn textbook(values: &[f64]) -> f64 {
        let count = values.len() as f64;
        let (middle, mean) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
        let points =
            values.iter().enumerate().map(|(at, value)| (at as f64 - middle, value - mean));
        let (above, below) =
            points.fold((0.0, 0.0), |(above, below), (x, y)| (above + x * y, below + x * x));
        above / below
    }

    proptest! {
        #[test]
        fn slope_equals_that_of_the_textbook(values in prop::collection::vec(0.0..1.0f64, 3..=5)) {
            prop_assert!((slope(&values).unwrap() - textbook(&values)).abs() < 1e-14);
        }
    }

    #[test]
    fn slope_needs_three_to_five_values() {
        assert!(slope(&[]).is_none() && slope(&[1.0; 2]).is_none() && slope(&[1.0; 6]).is_none());
    }

    /// Values of `numpy.polyfit` (numpy 2.4) to the last bit, on and beside thresholds.
    #[test]
    fn last_bit_equals_that_of_the_reference() {
        for (values, wanted) in REFERENCE {
            assert_eq!(slope(values), Some(*wanted), "{values:?}");
        }
    }

    const REFERENCE: &[(&[f64], f64)] = &[
        (&[0.3, 0.3, 0.275, 0.25, 0.25], -0.015000000000000036),
        (&[0.3, 0.325, 0.3, 0.35, 0.4], 0.022500000000000003),
        (&[0.5, 0.55, 0.6], 0.050000000000000024),
        (&[0.2, 0.25, 0.3, 0.35], 0.049999999999999975),
        (&[0.275, 0.3, 0.3], 0.012500000000000022),
        (&[0.9, 0.95, 0.95, 1.0, 0.975], 0.019999999999999907),
        (&[0.1, 0.7, 0.4, 0.2], -2.7733934186636305e-17),
        (&[1.0, 0.9, 0.9], -0.0499999999999999),
    ];
}
