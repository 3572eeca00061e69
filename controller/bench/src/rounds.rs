//! Measures a floor and Jig alternately: floor, ours, floor, ours.

use std::time::Instant;

use xtask::failure::TaskFailure;

/// First rounds that do not count: they read programs and firmware from the disk.
const WARM_UP: usize = 2;

/// Measures two things alternately; returns the rounds of both.
pub(super) fn in_turns(
    rounds: usize,
    mut floor: impl FnMut() -> Result<f64, TaskFailure>,
    mut ours: impl FnMut() -> Result<f64, TaskFailure>,
) -> Result<(Vec<f64>, Vec<f64>), TaskFailure> {
    let (mut floors, mut all) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + rounds {
        let pair = (floor()?, ours()?);
        if round >= WARM_UP {
            floors.push(pair.0);
            all.push(pair.1);
        }
    }
    Ok((floors, all))
}

/// Measures one thing several times.
pub(super) fn alone(
    rounds: usize,
    mut ours: impl FnMut() -> Result<f64, TaskFailure>,
) -> Result<Vec<f64>, TaskFailure> {
    Ok(in_turns(rounds, || Ok(0.0), &mut ours)?.1)
}

/// Returns how many milliseconds something took.
pub(super) fn milliseconds(
    work: impl FnOnce() -> Result<(), TaskFailure>,
) -> Result<f64, TaskFailure> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
