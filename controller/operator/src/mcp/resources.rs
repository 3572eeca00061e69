//! Runs as resources: names of what can be read, and the calls that read it.
//!
//! A resource is `jig://run/RUN/record`, `jig://run/RUN/log`, `jig://run/RUN/files` or
//! `jig://run/RUN/file/PATH`; the query `from` and `lines` or `length` turns pages. Each is read by the
//! tool of the same use, so policy and access rules are those of the tools.

use serde_json::{Map, Value, json};

use crate::tools::ToolCall;

/// What all resources begin with.
const SCHEME: &str = "jig://run/";

/// A kind of resource, for clients that fill in templates.
pub(super) struct ResourceKind {
    pub(super) name: &'static str,
    pub(super) template: &'static str,
    pub(super) about: &'static str,
    pub(super) mime: &'static str,
}

pub(super) const KINDS: [ResourceKind; 4] = [
    ResourceKind {
        name: "run-record",
        template: "jig://run/{run}/record",
        about: "The record of a run: verdict, tests, evidence. {run} is an id, a beginning of one, or last.",
        mime: "application/json",
    },
    ResourceKind {
        name: "run-log",
        template: "jig://run/{run}/log{?from,lines}",
        about: "The time line of a run, a page of lines. Without `from`, the last lines.",
        mime: "text/plain",
    },
    ResourceKind {
        name: "run-files",
        template: "jig://run/{run}/files",
        about: "The files of a run with their sizes.",
        mime: "application/json",
    },
    ResourceKind {
        name: "run-file",
        template: "jig://run/{run}/file/{+path}{?from,length}",
        about: "A byte range of a file of a run, such as consoles/1/uart0.raw.",
        mime: "text/plain",
    },
];

/// Names the record of a run.
pub(super) fn record(run: &str) -> String {
    format!("{SCHEME}{run}/record")
}

/// Makes the call that reads a resource, and says of what type the answer is.
pub(super) fn call_of(uri: &str) -> Option<(ToolCall, &'static str)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (run, what) = path.split_once('/')?;
    let run = decoded(run)?;
    let (tool, file, kind) = match what {
        "record" => ("runs_show", None, &KINDS[0]),
        "log" => ("runs_log", None, &KINDS[1]),
        "files" => ("runs_files", None, &KINDS[2]),
        _ => ("runs_read", Some(decoded(what.strip_prefix("file/")?)?), &KINDS[3]),
    };
    let mut arguments = Map::from_iter([("run".to_owned(), json!(run))]);
    arguments.extend(file.map(|file| ("file".to_owned(), json!(file))));
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        // Whether the tool has such an argument is told by its schema.
        arguments.insert(name.to_owned(), json!(value.parse::<u64>().ok()?));
    }
    Some((ToolCall::new(tool, Value::Object(arguments)), kind.mime))
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_becomes_the_call_of_a_tool() {
        let call = |uri: &str| call_of(uri).map(|(call, _)| (call.name, call.arguments));
        assert_eq!(
            call("jig://run/last/record").unwrap(),
            ("runs_show".into(), json!({"run": "last"}))
        );
        assert_eq!(
            call("jig://run/last/log?from=5&lines=10").unwrap(),
            ("runs_log".into(), json!({ "run": "last", "from": 5, "lines": 10 }))
        );
        assert_eq!(
            call("jig://run/2026/file/consoles/1/uart%30.raw?from=7").unwrap(),
            (
                "runs_read".into(),
                json!({ "run": "2026", "file": "consoles/1/uart0.raw", "from": 7 })
            )
        );
        for uri in [
            "jig://run/last",
            "jig://run/last/",
            "jig://run/last/other",
            "jig://run/last/log?from=x",
            "jig://run/last/log?from",
            "jig://run/%zz/record",
            "jig://run/%ff/record",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(call(uri), None, "{uri}");
        }
    }

    #[test]
    fn each_template_names_what_is_read() {
        for kind in KINDS {
            let uri = kind.template.replace("{run}", "last").replace("{+path}", "a/b");
            let uri = uri.split('{').next().unwrap();
            assert!(call_of(uri).is_some_and(|(_, mime)| mime == kind.mime), "{uri}");
        }
    }
}
