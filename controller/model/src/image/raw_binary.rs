//! Raw binaries, and the names that say where they belong.

use std::path::{Path, PathBuf};

use super::ImageError;

/// Where the first byte of a raw binary belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinAddress(pub u64);

impl std::str::FromStr for BinAddress {
    type Err = ImageError;

    /// Reads `0x8000` or `32768`; underscores between digits are allowed, as in profiles.
    fn from_str(text: &str) -> Result<Self, ImageError> {
        let bad = || ImageError::BadAddress { text: text.chars().take(40).collect() };
        let digits = text.replace('_', "");
        let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None => (digits.as_str(), 10),
        };
        // The standard parser would also take a sign.
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(bad());
        }
        u64::from_str_radix(digits, radix).map(Self).map_err(|_| bad())
    }
}

/// An image as it was named: a path, and for a raw binary where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// What was typed.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Where its first byte belongs, if that was said.
    pub address: Option<BinAddress>,
}

impl ImageSource {
    /// Splits `app.bin@0x8000` into a path and an address.
    ///
    /// The last `@` separates, if a digit follows it and no folder does: `a@1/app.elf` and
    /// `app@home.elf` are paths. A path that exists is taken as it is, whatever it holds;
    /// so is one that is no UTF-8. `exists` answers whether a path does.
    ///
    /// # Errors
    /// What follows begins like an address but is none.
    pub fn of(named: &Path, exists: impl FnOnce(&Path) -> bool) -> Result<Self, ImageError> {
        let name = named.display().to_string();
        let whole = || Self { name: name.clone(), path: named.to_owned(), address: None };
        let Some((file, text)) = named.to_str().and_then(|text| text.rsplit_once('@')) else {
            return Ok(whole());
        };
        let like_an_address = text.starts_with(|c: char| c.is_ascii_digit())
            && !text.contains(['/', '\\'])
            && !file.is_empty();
        if !like_an_address || exists(named) {
            return Ok(whole());
        }
        Ok(Self { address: Some(text.parse()?), path: file.into(), name: name.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(name: &str) -> Result<(String, Option<u64>), ImageError> {
        let source = ImageSource::of(Path::new(name), |path| path == Path::new("odd@0x10"))?;
        assert_eq!(source.name, name);
        Ok((source.path.display().to_string(), source.address.map(|address| address.0)))
    }

    #[test]
    fn the_address_is_split_off_the_name() {
        for (name, path, address) in [
            ("app.bin@0x8000", "app.bin", Some(0x8000)),
            ("a b/app.bin@32_768", "a b/app.bin", Some(0x8000)),
            ("a@0x1/app.bin@0XfF", "a@0x1/app.bin", Some(0xff)),
            ("app.elf", "app.elf", None),
            ("a@1/app.elf", "a@1/app.elf", None),
            ("app@home.elf", "app@home.elf", None),
            ("app.bin@", "app.bin@", None),
            ("@0x10", "@0x10", None),
            ("odd@0x10", "odd@0x10", None),
        ] {
            assert_eq!(split(name), Ok((path.to_owned(), address)), "{name}");
        }
    }

    #[test]
    fn what_begins_like_an_address_must_be_one() {
        for bad in ["0x", "0x8g", "12z", "0x1_0000_0000_0000_0000", "8000h"] {
            let error = split(&format!("app.bin@{bad}")).unwrap_err();
            assert_eq!(error, ImageError::BadAddress { text: bad.to_owned() });
            assert!(error.to_string().contains("app.bin@0x8000"));
        }
    }
}
