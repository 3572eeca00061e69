//! Bounds of a result: what an agent is given fits its context, and says what was left out.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::{CutPart, ToolResult};

/// Most bytes of the data of a result, as JSON. A context of an agent holds some ten such results.
pub(crate) const MOST_DATA: usize = 32 << 10;

/// Most bytes of the text of a result: its head and its tail.
const HEAD: usize = 8 << 10;
const TAIL: usize = 24 << 10;

/// Most parts that are named as cut.
const MOST_CUTS: usize = 16;

/// Longest text within the data, items of a list and names of an object, at the first try; each is halved
/// until the data fits.
const TEXT: usize = 8 << 10;
const ITEMS: usize = 512;

/// Least of them. Data that does not fit with these is nested beyond use.
const LEAST_TEXT: usize = 64;
const LEAST_ITEMS: usize = 4;

/// Most levels of nesting.
const MOST_DEPTH: usize = 24;

/// Cuts a result to its bounds.
pub(crate) fn bound(mut result: ToolResult) -> ToolResult {
    if let Some(text) = &result.text
        && text.len() > HEAD + TAIL
    {
        let whole = text.len();
        let cut = head_and_tail(text, HEAD, TAIL);
        result.cut.push(part("/text", whole, HEAD + TAIL));
        result.text = Some(cut);
    }
    if size(&result.data) > MOST_DATA {
        let (mut text, mut items) = (TEXT, ITEMS);
        loop {
            let mut cuts = Vec::new();
            let caps = Caps { text, items };
            let data = caps.cut(&result.data, "/data", 0, &mut cuts);
            if size(&data) <= MOST_DATA {
                (result.data, result.cut) = (data, [result.cut, cuts].concat());
                break;
            }
            if (text, items) == (LEAST_TEXT, LEAST_ITEMS) {
                let whole = size(&result.data);
                (result.data, result.cut) = (Value::Null, vec![part("/data", whole, 0)]);
                break;
            }
            (text, items) = ((text / 2).max(LEAST_TEXT), (items / 2).max(LEAST_ITEMS));
        }
    }
    result.cut.truncate(MOST_CUTS);
    result
}

fn size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

fn part(path: &str, whole: usize, kept: usize) -> CutPart {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    CutPart { path: path.chars().take(256).collect(), whole: count(whole), kept: count(kept) }
}

struct Caps {
    text: usize,
    items: usize,
}

impl Caps {
    fn cut(&self, value: &Value, path: &str, depth: usize, cuts: &mut Vec<CutPart>) -> Value {
        if depth > MOST_DEPTH && (value.is_array() || value.is_object()) {
            cuts.push(part(path, 1, 0));
            return Value::Null;
        }
        let inner = |key: &str, value: &Value, cuts: &mut Vec<CutPart>| {
            let key = key.replace('~', "~0").replace('/', "~1");
            self.cut(value, &format!("{path}/{key}"), depth + 1, cuts)
        };
        match value {
            Value::String(text) if text.len() > self.text => {
                cuts.push(part(path, text.len(), self.text));
                Value::String(head_and_tail(text, self.text / 2, self.text / 2))
            }
            Value::Array(items) => {
                // More of the head: lists are ordered by importance or time.
                let (head, tail) = match items.len() > self.items {
                    true => (self.items * 3 / 4, self.items / 4),
                    false => (items.len(), 0),
                };
                if head < items.len() {
                    cuts.push(part(path, items.len(), head + tail));
                }
                let kept = (0..head).chain(items.len() - tail..items.len());
                let kept = kept.filter_map(|n| Some((n, items.get(n)?)));
                kept.map(|(n, item)| inner(&n.to_string(), item, cuts)).collect()
            }
            Value::Object(fields) => {
                if fields.len() > self.items {
                    cuts.push(part(path, fields.len(), self.items));
                }
                let kept = fields.iter().take(self.items);
                // A name is a text, too.
                let named = kept.map(|(key, value)| match key.len() > self.text {
                    true => (head_and_tail(key, self.text / 2, self.text / 2), value),
                    false => (key.clone(), value),
                });
                Value::Object(
                    named
                        .map(|(key, value)| {
                            let value = inner(&key, value, cuts);
                            (key, value)
                        })
                        .collect::<Map<_, _>>(),
                )
            }
            other => other.clone(),
        }
    }
}

/// Keeps the head and the tail of a text, and says how much is missing between them.
pub(crate) fn head_and_tail(text: &str, head: usize, tail: usize) -> String {
    if text.len() <= head + tail {
        return text.to_owned();
    }
    let from = text.ceil_char_boundary(text.len() - tail);
    let to = text.floor_char_boundary(head).min(from);
    let (head, tail) = (&text[..to], &text[from..]);
    format!("{head}\n[... {} bytes left out ...]\n{tail}", from - to)
}

/// Takes bytes as they come and keeps the first and the last of them.
#[derive(Debug, Default)]
pub(crate) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl HeadAndTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += u64::try_from(over).unwrap_or_default();
    }

    /// Returns them as text, escaped, and how many bytes there were and were kept.
    pub(crate) fn text(&self) -> (String, u64, u64) {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let kept = u64::try_from(self.head.len() + tail.len()).unwrap_or(u64::MAX);
        if self.left_out == 0 {
            let all = [self.head.as_slice(), &tail].concat();
            return (escaped(&all), kept, kept);
        }
        let (head, tail, left_out) = (escaped(&self.head), escaped(&tail), self.left_out);
        let text = format!("{head}\n[... {left_out} bytes left out ...]\n{tail}");
        (text, kept + self.left_out, kept)
    }
}

/// Makes text of what a target printed: line ends and tabs stay, other control characters and bytes that
/// are no UTF-8 are written as `\xNN`.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => text.push(c),
                '\r' => {}
                c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            "\\PC{0,40}".prop_map(Value::from),
            (0usize..12_000).prop_map(|n| Value::from("é".repeat(n))),
        ];
        leaf.prop_recursive(6, 64, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,9}", inner.clone(), 0..12)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
                (inner, 0usize..60).prop_map(|(item, n)| Value::from(vec![item; n])),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_a_tool_says_fits(data in any_json()) {
            let fits = size(&data) <= MOST_DATA;
            let bounded = bound(ToolResult::of(data.clone()));
            prop_assert!(size(&bounded.data) <= MOST_DATA);
            prop_assert_eq!(fits, bounded.cut.is_empty());
            prop_assert!(!fits || bounded.data == data);
        }

        #[test]
        fn head_and_tail_are_those_of_the_whole(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9000), 0..12)) {
            let mut kept = HeadAndTail::default();
            pieces.iter().for_each(|piece| kept.push(piece));
            let all = pieces.concat();
            let (text, whole, here) = kept.text();
            prop_assert_eq!(usize::try_from(whole).unwrap(), all.len());
            if all.len() <= HEAD + TAIL {
                prop_assert_eq!(text, escaped(&all));
                prop_assert_eq!(here, whole);
            } else {
                prop_assert!(text.starts_with(&escaped(&all[..HEAD])));
                prop_assert!(text.ends_with(&escaped(&all[all.len() - TAIL..])));
                prop_assert!(here < whole);
            }
        }
    }

    #[test]
    fn a_cut_list_keeps_its_ends_and_says_so() {
        let cases: Vec<Value> = (0..5000).map(|n| json!({ "name": format!("test_{n}") })).collect();
        let bounded = bound(ToolResult::of(json!({ "cases": cases })));
        let kept = bounded.data["cases"].as_array().unwrap();
        assert_eq!(kept.first().unwrap()["name"], "test_0");
        assert_eq!(kept.last().unwrap()["name"], "test_4999");
        assert_eq!(bounded.cut[0].path, "/data/cases");
        assert_eq!((bounded.cut[0].whole, bounded.cut[0].kept), (5000, kept.len() as u64));
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(escaped(b"a\x1b[31m\r\nb\xff\tc"), "a\\x1b[31m\nb\\xff\tc");
    }
}
