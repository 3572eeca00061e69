//! Tables that people name themselves, such as `[agent.fixer]`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toml::de::DeValue;

use super::value::FromToml;
use super::{Located, Node};

impl<T: FromToml> FromToml for BTreeMap<String, Located<T>> {
    fn how_to_add(key: &str) -> String {
        format!("add `[{key}.NAME]`")
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let DeValue::Table(table) = node.value else {
            node.wrong_type("tables with names", &format!("`[{}.NAME]`", node.key));
            return None;
        };
        let tables = table.iter().filter_map(|(name, value)| {
            let node = Node::at(value, name.get_ref(), node.text, node.findings);
            // The span of a table that is made of dotted keys is its key's.
            let span = if node.span.is_empty() { name.span() } else { node.span.clone() };
            let value = T::read(&Node { span: span.clone(), ..node })?;
            Some((name.get_ref().to_string(), Located { value, span }))
        });
        Some(tables.collect())
    }
}
