//! Reading the keys of one table.

use std::cell::RefCell;

use toml::de::{DeTable, DeValue};

use super::nearest::did_you_mean;
use super::value::FromToml;
use super::{Located, Node};

/// Keys that have a new name: the old one, the new one. An old name is refused with the new one
/// for one release, so that users need not guess.
const RENAMED: &[(&str, &str)] = &[
    ("cures", "max_recoveries"),
    ("gap", "min_interval"),
    ("storm", "flood"),
    ("within", "timeout"),
    ("witness", "sense"),
];

/// Reads one table key by key, and knows which keys were not asked for.
///
/// [`toml_table!`](crate::toml_table) does this for most tables.
#[must_use = "call `finish` so that unknown keys are reported"]
#[derive(Debug)]
pub struct TableReader<'d> {
    node: Node<'d>,
    table: &'d DeTable<'d>,
    known: RefCell<Vec<&'static str>>,
}

impl<'d> TableReader<'d> {
    /// Takes a value as a table, or reports that it is none.
    pub fn open(node: &Node<'d>) -> Option<Self> {
        match node.value {
            DeValue::Table(table) => {
                Some(Self { node: node.clone(), table, known: RefCell::default() })
            }
            _ => {
                node.wrong_type("a table", &format!("`[{}]` and keys below it", node.key));
                None
            }
        }
    }

    /// Reads a key that may be missing. Also `None`, but reported, where its value is wrong.
    pub fn optional<T: FromToml>(&self, key: &'static str) -> Option<Located<T>> {
        self.known.borrow_mut().push(key);
        let (found_key, value) = self.table.get_key_value(key)?;
        let node = Node::at(value, key, self.node.text, self.node.findings);
        // The span of a table that is made of dotted keys is its key's.
        let span = if node.span.is_empty() { found_key.span() } else { node.span.clone() };
        T::read(&Node { span: span.clone(), ..node }).map(|value| Located { value, span })
    }

    /// Reads a key that must be there.
    pub fn required<T: FromToml>(&self, key: &'static str) -> Option<Located<T>> {
        if !self.table.contains_key(key) {
            self.known.borrow_mut().push(key);
            let place =
                if self.node.is_root { String::new() } else { format!(" in `{}`", self.node.key) };
            self.node.refuse(
                "document::missing-key",
                format!("`{key}` is missing{place}"),
                T::how_to_add(key),
            );
            return None;
        }
        self.optional(key)
    }

    /// Tells whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Reports the keys that were never asked for.
    pub fn finish(self) {
        let known = self.known.into_inner();
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let renamed = RENAMED.iter().find(|(old, new)| *old == name && known.contains(new));
                if let Some((old, new)) = renamed {
                    self.node.findings.add(
                        "document::renamed-key",
                        Some(key.span()),
                        format!("`{old}` is now called `{new}`"),
                        format!("write `{new} = ...`"),
                    );
                    continue;
                }
                let shown: String = name.chars().take(40).collect();
                self.node.findings.add(
                    "document::unknown-key",
                    Some(key.span()),
                    format!("unknown key `{shown}`"),
                    did_you_mean(name, known.iter().copied()),
                );
            }
        }
    }
}

/// Declares a table of a document: a struct, how it is read and its JSON Schema, all from
/// one list of keys.
///
/// Every key is `required` or `optional`; the struct holds `Option<Located<T>>` for both,
/// because a required key that is missing was reported and must not end the reading. A key that is
/// no identifier is given behind `as`.
///
/// ```
/// jig_model::toml_table! {
///     /// One console.
///     pub struct RawConsole {
///         /// What plans call it.
///         name: String = required,
///         /// Bits per second.
///         baud: u32 = optional,
///     }
/// }
/// use jig_model::document::{Findings, open};
/// let findings = Findings::new();
/// // A root table has a `version`, so this one reports it as an unknown key.
/// let raw = open::<RawConsole>("console", 1, "version = 1\nname = 'uart0'", &findings);
/// assert_eq!(raw.unwrap().value.name.unwrap().value, "uart0");
/// assert!(!findings.is_empty());
/// ```
#[macro_export]
macro_rules! toml_table {
    ($(
        $(#[doc = $doc:literal])+
        $vis:vis struct $name:ident {
            $($(#[doc = $field_doc:literal])+
            $field:ident $(as $key:literal)?: $type:ty = $presence:ident,)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        // Some keys are only read to be judged, such as the version.
        #[allow(dead_code)]
        #[derive(Debug, Clone)]
        $vis struct $name {
            $($(#[doc = $field_doc])+ pub $field: Option<$crate::document::Located<$type>>,)+
        }

        impl $crate::document::FromToml for $name {
            const IS_TABLE: bool = true;

            fn schema() -> serde_json::Value {
                $crate::document::table_schema(
                    concat!($($doc),+),
                    vec![$($crate::document::TableField {
                        key: $crate::toml_table!(@key $field $($key)?),
                        doc: concat!($($field_doc),+),
                        required: stringify!($presence) == "required",
                        schema: <$type as $crate::document::FromToml>::schema(),
                    },)+],
                )
            }

            fn read(node: &$crate::document::Node<'_>) -> Option<Self> {
                let table = $crate::document::TableReader::open(node)?;
                let raw = Self {
                    $($field: table.$presence::<$type>($crate::toml_table!(@key $field $($key)?)),)+
                };
                table.finish();
                Some(raw)
            }
        }
    )+};
    (@key $field:ident $key:literal) => {
        $key
    };
    (@key $field:ident) => {
        {
            let field = stringify!($field);
            match field.strip_prefix("r#") {
                Some(keyword) => keyword,
                None => field,
            }
        }
    };
}
