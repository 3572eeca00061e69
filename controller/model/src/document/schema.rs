//! JSON Schema of tables, for editors.

use serde_json::{Map, Value, json};

use super::value::FromToml;

/// One key of a table.
#[derive(Debug)]
pub struct TableField {
    /// The key.
    pub key: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What its value may be.
    pub schema: Value,
}

/// Returns the schema of a table that holds these keys and no others.
pub fn table_schema(doc: &str, fields: Vec<TableField>) -> Value {
    let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.key).collect();
    let mut properties = Map::new();
    for field in fields {
        let mut schema = field.schema;
        if let Value::Object(object) = &mut schema {
            object.insert("description".to_owned(), field.doc.trim().into());
        }
        properties.insert(field.key.to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": doc.trim(),
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

/// Returns the text of a document's schema file, as it is committed.
pub fn document_schema<T: FromToml>(title: &str) -> String {
    let mut schema = T::schema();
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        object.insert("title".to_owned(), title.into());
    }
    format!("{schema:#}\n")
}
