//! Filling in what is sent to a device.

use jig_model::power::{PowerPart, power_parts};

use super::{PowerError, Secret};

/// What the placeholders stand for.
pub(super) struct TemplateFill<'a> {
    pub(super) outlet: &'a str,
    pub(super) state: &'a str,
    pub(super) user: Option<&'a str>,
    pub(super) password: Option<&'a Secret>,
}

/// Fills a template in; `encode` makes each value fit where it goes.
pub(super) fn fill(
    template: &str,
    values: &TemplateFill<'_>,
    encode: impl Fn(&str) -> String,
) -> Result<String, PowerError> {
    let parts = power_parts(template)
        .map_err(|error| PowerError::unusable(format!("the template {template:?}"), error))?;
    let mut text = String::new();
    for part in parts {
        match part {
            PowerPart::Text(part) => text.push_str(part),
            PowerPart::Outlet => text.push_str(&encode(values.outlet)),
            PowerPart::State => text.push_str(&encode(values.state)),
            PowerPart::User => text.push_str(&encode(values.user.unwrap_or_default())),
            PowerPart::Password => {
                text.push_str(&encode(values.password.map_or("", Secret::reveal)));
            }
        }
    }
    Ok(text)
}

/// Leaves a value as it is.
pub(super) fn plain(text: &str) -> String {
    text.to_owned()
}

/// Encodes a value for a path or query (RFC 3986, 2.3: what is not unreserved).
pub(super) fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Encodes a value for the inside of a JSON text.
pub(super) fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_where_they_go() {
        let password = Secret::of("a&b\"c d");
        let values =
            TemplateFill { outlet: "3", state: "on", user: Some("me"), password: Some(&password) };
        let filled = fill("/{user}?p={password}&{outlet}={state}", &values, percent).unwrap();
        assert_eq!(filled, "/me?p=a%26b%22c%20d&3=on");
        let filled = fill("{{\"p\":\"{password}\"}}", &values, json).unwrap();
        assert_eq!(filled, r#"{"p":"a&b\"c d"}"#);
        assert!(fill("{outlett}", &values, plain).is_err());
    }
}
