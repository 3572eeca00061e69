//! What reading costs. Measurements, not tests: run them with optimisation and `--ignored`.

use std::time::{Duration, Instant};

use super::ResultParser;

/// Lines of logs in which no report stands.
const LOGS: &[(&str, &[&str])] = &[
    (
        "zephyr",
        &[
            "[00:00:01.234,000] <inf> app: sensor 12 reads 31337 (raw 0x7a69)\r\n",
            "[00:00:01.235,000] <dbg> net_core: rx: len 128, queue 3: ok\r\n",
            "[00:00:01.236,000] <wrn> i2c_nrfx: retry 2 of 5 on bus 1, main.c:120\r\n",
        ],
    ),
    (
        "esp-idf",
        &[
            "I (1234) wifi: connected to ap, channel 6, bssid 00:11:22:33:44:55\r\n",
            "\x1b[0;33mW (1235) mqtt: reconnecting in 500 ms (attempt 3)\x1b[0m\r\n",
        ],
    ),
    (
        "linux",
        &[
            "[   12.345678] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n",
            "[   12.345999] systemd[1]: Started Network Time Synchronization.\n",
        ],
    ),
    (
        "plain",
        &[
            "temperature=23.5 humidity=41.2 pressure=1013.2\n",
            "src/drivers/adc.c:88: channel 3 settled after 12 us\n",
            "2026-11-23 07:31:12.123 INFO  worker started: id=7\n",
            "0x20001000: 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff\n",
        ],
    ),
];

fn log(lines: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(10 << 20);
    while bytes.len() < 10 << 20 {
        lines.iter().for_each(|line| bytes.extend_from_slice(line.as_bytes()));
    }
    bytes
}

fn best_of(rounds: usize, opening: &str, bytes: &[u8]) -> Duration {
    let round = || {
        let mut parser = ResultParser::new(None, None, 0).unwrap();
        parser.feed(opening.as_bytes(), &mut |_| {});
        let start = Instant::now();
        bytes.chunks(4096).for_each(|chunk| parser.feed(chunk, &mut |_| {}));
        start.elapsed()
    };
    (0..rounds).map(|_| round()).min().unwrap_or_default()
}

#[test]
#[ignore = "a measurement"]
fn reading_ten_megabytes_of_log() {
    let strays = ["", "1..5\n", "Running TESTSUITE rail\n", "a.c:1:one:PASS\n"];
    for (name, lines) in LOGS {
        let bytes = log(lines);
        for stray in strays {
            let time = best_of(5, stray, &bytes);
            println!("{name:8} behind {stray:26?} {:6.1} ms", time.as_secs_f64() * 1e3);
        }
    }
}
