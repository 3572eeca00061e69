//! Bytes as lower-case hexadecimal digits, two for each.

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

use crate::image::hex;

pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&hex(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
    bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|_| rest.is_empty())
        .ok_or_else(|| D::Error::custom("expected two hexadecimal digits for each byte"))
}
