//! A number with its unit, as measurements are printed. Pure.

use super::words::listed;

/// Units that have several names, in small letters.
const NAMES: [&str; 6] = [
    "s sec secs second seconds",
    "ms msec",
    "us usec \u{b5}s \u{3bc}s",
    "% percent pct",
    "b byte bytes",
    "c degc \u{b0}c",
];

/// A number and its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantity<'a> {
    pub(super) number: f64,
    pub(super) unit: &'a str,
}

impl<'a> Quantity<'a> {
    /// Reads `3.021 V`, `0,41 Nm`, `3.2e-03`, `95%`.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
        let mut len = text.find(|c| !numeric(c)).unwrap_or(text.len());
        // An exponent
        let rest = text[len..].strip_prefix(['e', 'E']);
        let power = rest.map(|rest| {
            let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
            let count = digits.bytes().take_while(u8::is_ascii_digit).count();
            if count > 0 { 1 + rest.len() - digits.len() + count } else { 0 }
        });
        len += power.unwrap_or_default();
        // `65,536` has a separator of thousands, or three decimals.
        let grouped =
            text[..len].split_once(',').filter(|(front, _)| !matches!(*front, "0" | "-0"));
        if grouped.is_some_and(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count() == 3)
        {
            return None;
        }
        let number: f64 = text[..len].replacen(',', ".", 1).parse().ok()?;
        let unit = text[len..].trim();
        let plain = |c: char| c.is_alphabetic() || matches!(c, '%' | '/' | '\u{b0}' | '\u{b2}');
        let short = unit.chars().count() <= 8 && unit.chars().all(plain);
        (short && number.is_finite()).then_some(Self { number, unit })
    }

    /// Tells whether two of them have the same unit, as far as they have one.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        self.unit.is_empty() || other.unit.is_empty() || self.has_unit_of(other)
    }

    /// Tells whether two of them have the same unit, or none. `mOhm` and `MOhm` are two.
    pub(super) fn has_unit_of(&self, other: &Self) -> bool {
        let (one, two) = (self.unit.to_lowercase(), other.unit.to_lowercase());
        let prefix = |unit: &str| unit.chars().next().filter(|_| unit.chars().count() > 1);
        let scaled = prefix(self.unit) != prefix(other.unit) && one.starts_with('m');
        one == two && !scaled
            || NAMES.iter().any(|names| listed(names, &one) && listed(names, &two))
    }

    /// Tells whether two of them have different multiples of one unit: `us` and `ms`, `kB` and `MB`.
    pub(super) fn differs_in_scale(&self, other: &Self) -> bool {
        let last = |unit: &str| unit.chars().next_back();
        let same = last(self.unit).is_some() && last(self.unit) == last(other.unit);
        same && !self.has_unit_of(other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_have_a_number_and_a_unit() {
        for (text, number, unit) in [
            ("3.021 V", 3.021, "V"),
            ("0,41 Nm", 0.41, "Nm"),
            ("3.2e-03", 0.0032, ""),
            ("95%", 95.0, "%"),
            ("-97 dBm", -97.0, "dBm"),
            ("5e", 5.0, "e"),
        ] {
            assert_eq!(Quantity::parse(text), Some(Quantity { number, unit }), "{text}");
        }
        for text in ["", "V", "1.2.3", "12 of 14", "0x12", "inf", "1 abcdefghijk"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn units_have_several_names() {
        let parsed = |text| Quantity::parse(text).unwrap();
        for (one, two, same, comparable) in [
            ("812 ms", "500 ms", true, true),
            ("2 sec", "5 s", true, true),
            ("812 MS", "500 msec", true, true),
            ("3 V", "5 v", true, true),
            ("900 mOhm", "5 MOhm", false, false),
            ("91 degC", "85 C", true, true),
            ("512 bytes", "2048 B", true, true),
            ("12", "12", true, true),
            ("12 kB", "3", false, true),
            ("12 kB", "3 MB", false, false),
            ("900 us", "5 ms", false, false),
        ] {
            let (one, two) = (parsed(one), parsed(two));
            assert_eq!(one.has_unit_of(&two), same, "{one:?} {two:?}");
            assert_eq!(one.is_comparable(&two), comparable, "{one:?} {two:?}");
        }
        for (one, two, differ) in [
            ("900 us", "5 ms", true),
            ("12 kB", "3 MB", true),
            ("12 kB", "3 kB", false),
            ("12 kB", "3", false),
            ("12 packets", "3 V", false),
        ] {
            assert_eq!(parsed(one).differs_in_scale(&parsed(two)), differ, "{one} {two}");
        }
    }

    proptest! {
        #[test]
        fn any_text_may_be_a_quantity(text in "[-+0-9.,eE V%]{0,12}") {
            Quantity::parse(&text);
        }
    }
}
