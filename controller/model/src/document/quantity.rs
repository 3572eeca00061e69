//! Times and sizes as people write them.

use std::time::Duration;

/// Says why a time or size was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number and a unit.
    #[error("{0:?} is not a time")]
    Duration(String),
    /// Not a number and a unit.
    #[error("{0:?} is not a size")]
    Size(String),
    /// More than can be held.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// A number of bytes. Written as `0x40000`, `262144`, `"256K"`, `"4M"` or `"1G"`; K, M and
/// G are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Splits off the leading decimal digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Parses a time such as `250ms`, `10s`, `5m`, `2h` or `30d`. Whole numbers only.
///
/// # Errors
/// Refuses anything else: a bare number says nothing about its unit.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = digits(text);
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(QuantityError::Duration(shown(text))),
    };
    if number.is_empty() {
        return Err(QuantityError::Duration(shown(text)));
    }
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(millis_per_unit));
    millis.map(Duration::from_millis).ok_or_else(|| QuantityError::TooLarge(shown(text)))
}

/// Parses a size such as `256K`, `4MiB`, `512` or `0x40000`.
///
/// # Errors
/// Refuses anything else, and sizes over 64 bits.
pub fn parse_size(text: &str) -> Result<ByteSize, QuantityError> {
    let too_large = || QuantityError::TooLarge(shown(text));
    if let Some(hex) = text.strip_prefix("0x") {
        if hex.is_empty() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(QuantityError::Size(shown(text)));
        }
        return u64::from_str_radix(hex, 16).map(ByteSize).map_err(|_| too_large());
    }
    let (number, unit) = digits(text);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(QuantityError::Size(shown(text))),
    };
    if number.is_empty() {
        return Err(QuantityError::Size(shown(text)));
    }
    let size = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    size.map(ByteSize).ok_or_else(too_large)
}
