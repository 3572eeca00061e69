//! How the outlets of power devices are called.

use std::ops::RangeInclusive;

/// How a kind of device calls its outlets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutletRule {
    /// It has one, which has no name.
    One,
    /// By number.
    Numbers(RangeInclusive<u32>),
    /// By the last numbers of an SNMP object's name, such as `3` or `1.3`.
    Dotted,
    /// By one character, `0` to `9` and then `A` to `V`, or two digits.
    Channel,
    /// By any word, such as `plug-3` or `/redfish/v1/Systems/1`.
    Word,
}

/// Longest name of an outlet: a Redfish path fits.
const MAX_OUTLET: usize = 128;

impl OutletRule {
    /// Tells whether a text names an outlet of such a device.
    ///
    /// A text that passes starts with no `-`, so it cannot become an option of a program, and
    /// holds nothing that hides on a terminal.
    pub fn fits(&self, outlet: &str) -> bool {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten()
        };
        match self {
            Self::One => outlet.is_empty(),
            Self::Numbers(range) => number(outlet).is_some_and(|n| range.contains(&n)),
            Self::Dotted => {
                outlet.len() <= MAX_OUTLET && outlet.split('.').all(|part| number(part).is_some())
            }
            Self::Channel => match outlet.as_bytes() {
                [one] => one.is_ascii_digit() || (b'A'..=b'V').contains(one),
                [tens, ones] => tens.is_ascii_digit() && ones.is_ascii_digit(),
                _ => false,
            },
            Self::Word => {
                let inside = |b: u8| b.is_ascii_alphanumeric() || b"._:/-+@".contains(&b);
                let head = |b: &u8| b.is_ascii_alphanumeric() || *b == b'/';
                outlet.len() <= MAX_OUTLET
                    && outlet.as_bytes().first().is_some_and(head)
                    && outlet.bytes().all(inside)
            }
        }
    }

    /// Says what to write.
    pub fn help(&self) -> String {
        match self {
            Self::One => "such a device has one outlet: remove the line".to_owned(),
            Self::Numbers(range) => {
                format!("write a number from {} to {}: \"{0}\"", range.start(), range.end())
            }
            Self::Dotted => "write the last numbers of the object's name: \"3\" or \"1.3\"".into(),
            Self::Channel => "write \"0\" to \"9\", \"A\" to \"V\", or two digits".to_owned(),
            Self::Word => {
                "use letters, digits and `.`, `_`, `:`, `/`, `-`, a letter, digit or `/` first"
                    .to_owned()
            }
        }
    }
}
