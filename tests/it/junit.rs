//! Reads a JUnit report as a CI service would.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What a report says.
#[derive(Debug, Default)]
pub(crate) struct Junit {
    /// Cases with nothing against them.
    pub(crate) good: usize,
    pub(crate) failures: usize,
    pub(crate) errors: usize,
    pub(crate) skipped: usize,
    pub(crate) flaky: usize,
    properties: BTreeMap<String, String>,
}

impl Junit {
    /// Reads a report; it has to be well-formed.
    pub(crate) fn parse(xml: &str) -> Result<Self, String> {
        // XML 1.0 has no place for these, and most readers refuse the whole file.
        if let Some(wrong) =
            xml.chars().find(|c| c.is_control() && !"\t\n\r".contains(*c) && (*c as u32) < 0x20)
        {
            return Err(format!("the report holds the control character {wrong:?}"));
        }
        let mut report = Self::default();
        let mut reader = Reader::from_str(xml);
        // What a case that is open has against it.
        let mut marks = None;
        loop {
            match reader.read_event().map_err(|error| format!("not XML: {error}"))? {
                Event::Start(element) => {
                    if element.name().as_ref() == b"testcase" {
                        marks = Some(0);
                    }
                    report.take(&element, &mut marks)?;
                }
                Event::Empty(element) if element.name().as_ref() == b"testcase" => report.good += 1,
                Event::Empty(element) => report.take(&element, &mut marks)?,
                Event::End(element) if element.name().as_ref() == b"testcase" => {
                    report.good += usize::from(marks.take() == Some(0));
                }
                Event::Eof => return Ok(report),
                _ => {}
            }
        }
    }

    fn take(&mut self, element: &BytesStart<'_>, marks: &mut Option<u32>) -> Result<(), String> {
        let count = match element.name().as_ref() {
            b"failure" => &mut self.failures,
            b"error" => &mut self.errors,
            b"skipped" => &mut self.skipped,
            b"flakyFailure" => &mut self.flaky,
            b"property" => {
                let (name, value) = (attribute(element, "name")?, attribute(element, "value")?);
                self.properties.insert(name, value);
                return Ok(());
            }
            _ => return Ok(()),
        };
        *count += 1;
        let marks = marks.as_mut().ok_or("a result outside of any test case")?;
        *marks += 1;
        Ok(())
    }

    /// Returns a property, or nothing.
    pub(crate) fn property(&self, name: &str) -> &str {
        self.properties.get(name).map(String::as_str).unwrap_or_default()
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<String, String> {
    let found = element.try_get_attribute(name).map_err(|error| error.to_string())?;
    let found = found.ok_or_else(|| format!("a property without {name}"))?;
    Ok(String::from_utf8_lossy(&found.value).into_owned())
}

#[test]
fn a_report_is_read_as_it_is_meant() {
    let xml = |cases: &str| format!("<testsuites><testsuite>{cases}</testsuite></testsuites>");
    let counts = |cases: &str| {
        let report = Junit::parse(&xml(cases)).unwrap();
        [report.good, report.failures, report.errors, report.skipped, report.flaky]
    };
    assert_eq!(counts("<testcase/><testcase></testcase>"), [2, 0, 0, 0, 0]);
    assert_eq!(counts("<testcase><failure/></testcase><testcase/>"), [1, 1, 0, 0, 0]);
    assert_eq!(counts("<testcase><error>x</error></testcase>"), [0, 0, 1, 0, 0]);
    assert_eq!(counts("<testcase><skipped/></testcase>"), [0, 0, 0, 1, 0]);
    assert_eq!(counts("<testcase><flakyFailure/></testcase>"), [0, 0, 0, 0, 1]);
    let named = Junit::parse(&xml("<property name='a' value='b'/>")).unwrap();
    assert_eq!((named.property("a"), named.property("b")), ("b", ""));
    for wrong in ["<failure/>", "<testcase>", "<testcase>\u{1b}</testcase>"] {
        assert!(Junit::parse(&xml(wrong)).is_err(), "{wrong:?}");
    }
}
