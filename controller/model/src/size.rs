//! Numbers of bytes, for people.

/// Below this, a number is shown to the byte: sizes of small images are compared by eye.
const EXACT: u64 = 10 << 10;

const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// Says a number of bytes with a fitting unit: `1016 B`, `12.3 GiB`.
pub fn byte_size(bytes: u64) -> String {
    if bytes < EXACT {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in [
            (0, "0 B"),
            (10_239, "10239 B"),
            (10_240, "10.0 KiB"),
            (131_072, "128.0 KiB"),
            ((1 << 20) + (1 << 19), "1.5 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(byte_size(bytes), text);
        }
    }
}
