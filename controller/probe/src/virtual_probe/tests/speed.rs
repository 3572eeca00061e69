//! How fast a flash is, for people who ask: `cargo test --release -- --ignored speed`.

use super::*;

/// Flashes 128 KiB a few times through each face and prints the best.
#[test]
#[ignore = "measures; prints what it finds"]
fn speed_of_a_flash() {
    const SIZE: usize = 128 << 10;
    for face in FACES {
        let bench = Bench::new("microbit", face);
        let mut session = bench.attach();
        let mut best: Option<(Duration, String)> = None;
        for round in 0..12_u8 {
            let image: Vec<u8> = (0..SIZE)
                .map(|at| (at as u8).wrapping_mul(31).wrapping_add(round) ^ (at >> 8) as u8)
                .collect();
            let before = bench.board.stats();
            let began = Instant::now();
            flash(&mut session, 0, &image);
            let took = began.elapsed();
            let after = bench.board.stats();
            let told = format!(
                "{face:?}: {:.0} KiB/s ({took:?}); {} runs, {} steps, {} waits {:?}, \
                 {} gdb trips {:?}, {} bus trips {:?}, {} registers, {} accesses",
                SIZE as f64 / 1024.0 / took.as_secs_f64(),
                after.resumes - before.resumes,
                after.steps - before.steps,
                after.waits - before.waits,
                after.wait_time - before.wait_time,
                after.gdb_trips - before.gdb_trips,
                after.gdb_time - before.gdb_time,
                after.qtest_trips - before.qtest_trips,
                after.qtest_time - before.qtest_time,
                after.registers - before.registers,
                after.accesses - before.accesses,
            );
            if best.as_ref().is_none_or(|(fastest, _)| took < *fastest) {
                best = Some((took, told));
            }
        }
        if let Some((_, told)) = best {
            println!("{told}");
        }
    }
}
