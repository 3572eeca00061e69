//! Names of functions as people write them.
//!
//! A mangled name may refer to parts of itself, so that a short one becomes an endless one:
//! what is written has a limit.

use std::fmt::{self, Write as _};

/// The longest name or path that is kept, in bytes. Longer ones are cut.
pub(super) const MAX_NAME: usize = 512;

/// How deep a mangled name may nest; those of real programs stay below 50.
const MAX_NESTING: u32 = 96;

/// Undoes the mangling of C++ and Rust, without parameters and hashes; takes any other name
/// as it is.
pub(crate) fn readable(name: &str) -> String {
    if name.len() <= MAX_NAME {
        let demangled = rust(name).or_else(|| cpp(name));
        if let Some(text) = demangled.filter(|text| !text.is_empty()) {
            return text;
        }
    }
    shorten(name)
}

/// Cuts a text to the longest that is kept.
pub(super) fn shorten(name: &str) -> String {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut limited = Limited::default();
    let written = write!(limited, "{demangled:#}");
    (written.is_ok() || limited.full).then_some(limited.text)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(MAX_NESTING);
    let symbol = cpp_demangle::BorrowedSymbol::new_with_options(name.as_bytes(), &parse).ok()?;
    let write = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(MAX_NESTING);
    let mut limited = Limited::default();
    let written = symbol.structured_demangle(&mut limited, &write);
    (written.is_ok() || limited.full).then_some(limited.text)
}

/// A text that refuses to grow beyond the limit.
#[derive(Default)]
struct Limited {
    text: String,
    full: bool,
}

impl fmt::Write for Limited {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > MAX_NAME {
            self.full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_become_readable() {
        assert_eq!(readable("_ZN4ring3putEi"), "ring::put");
        assert_eq!(readable("_ZN4ring3put17h0123456789abcdefE"), "ring::put");
        assert_eq!(readable("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(readable("main"), "main");
        assert_eq!(readable("_Z"), "_Z");
        assert_eq!(readable(&"x".repeat(1000)).len(), MAX_NAME);
    }

    #[test]
    fn a_short_name_cannot_become_an_endless_one() {
        // Each argument of the template names the one before it twice.
        let mut name = "_Z1fI1PI1A1AE".to_owned();
        for level in 1..32_u32 {
            let digit = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            name += &format!("S0_IS{digit}_S{digit}_E");
        }
        name += "Evv";
        assert!(readable(&name).len() <= MAX_NAME);
        // The same as parameters, which are not written at all.
        let name = name.replacen("_Z1fI1P", "_Z1f1P", 1);
        assert!(readable(&name).len() <= MAX_NAME);
    }
}
