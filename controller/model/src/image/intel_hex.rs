//! Intel HEX: lines of hex digits, each with an address and a checksum.

use super::piece::{Origin, Piece};
use super::{HexProblem, ImageError};

/// Data bytes of a record whose lines follow one another in memory as in the file.
struct HexRun {
    lines: (u64, u64),
    start: u64,
    bytes: Vec<u8>,
}

/// Reads all lines into pieces; neighbouring ones are joined, so that a file makes about
/// as many pieces as it has holes.
pub(super) fn pieces(file: &[u8]) -> Result<Vec<Piece<'static>>, ImageError> {
    let mut runs: Vec<HexRun> = Vec::new();
    let mut base = 0_u64;
    let mut end = None;
    let mut line = 0;
    for text in file.split(|&byte| byte == b'\n') {
        line += 1;
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let wrong = |problem| ImageError::BadHex { line, problem };
        if let Some(end) = end {
            return Err(wrong(HexProblem::AfterEnd { end }));
        }
        match record(text).map_err(wrong)? {
            HexRecord::Data { offset, bytes } => {
                let start = base + u64::from(offset);
                match runs.last_mut() {
                    Some(run) if run.start + run.bytes.len() as u64 == start => {
                        run.bytes.extend_from_slice(&bytes);
                        run.lines.1 = line;
                    }
                    _ => runs.push(HexRun { lines: (line, line), start, bytes }),
                }
            }
            HexRecord::Base(new) => base = new,
            HexRecord::Entry => {}
            HexRecord::End => end = Some(line),
        }
    }
    if end.is_none() {
        return Err(ImageError::BadHex { line, problem: HexProblem::NoEndRecord });
    }
    let piece = |run: HexRun| Piece {
        origin: Origin::Lines(run.lines.0, run.lines.1),
        start: run.start,
        bytes: run.bytes.into(),
    };
    Ok(runs.into_iter().map(piece).collect())
}

enum HexRecord {
    Data {
        offset: u16,
        bytes: Vec<u8>,
    },
    End,
    /// What offsets count from, from here on.
    Base(u64),
    /// Where the program starts, which the processor knows by itself.
    Entry,
}

fn record(text: &[u8]) -> Result<HexRecord, HexProblem> {
    let digits = text.strip_prefix(b":").ok_or(HexProblem::NoColon)?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Ok(digit(high)? << 4 | digit(low)?));
    let bytes = bytes.collect::<Result<Vec<u8>, HexProblem>>()?;
    if let Some(&half) = rest.first() {
        digit(half)?;
        return Err(HexProblem::HalfByte);
    }
    let [announced, high, low, kind, data @ .., found] = bytes.as_slice() else {
        return Err(HexProblem::TooShort);
    };
    if usize::from(*announced) != data.len() {
        return Err(HexProblem::WrongLength { announced: *announced, found: data.len() });
    }
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let wanted = found.wrapping_sub(sum);
    if wanted != *found {
        return Err(HexProblem::BadChecksum { found: *found, wanted });
    }
    let offset = u16::from_be_bytes([*high, *low]);
    let sized = |wanted: usize| {
        let problem = HexProblem::LengthOfType { kind: *kind, wanted, found: data.len() };
        if data.len() == wanted { Ok(()) } else { Err(problem) }
    };
    let word = || data.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    match kind {
        0 if usize::from(offset) + data.len() > 1 << 16 => Err(HexProblem::OverEdge { offset }),
        0 => Ok(HexRecord::Data { offset, bytes: data.to_vec() }),
        1 => sized(0).map(|()| HexRecord::End),
        2 => sized(2).map(|()| HexRecord::Base(word() << 4)),
        4 => sized(2).map(|()| HexRecord::Base(word() << 16)),
        3 | 5 => sized(4).map(|()| HexRecord::Entry),
        other => Err(HexProblem::UnknownType(*other)),
    }
}

fn digit(byte: u8) -> Result<u8, HexProblem> {
    let value = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    value.ok_or(HexProblem::NoDigit(char::from(byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Payload, Segment};
    use super::*;

    fn parse(text: &str) -> Result<Payload, ImageError> {
        Payload::parse("a.hex", text.as_bytes(), None)
    }

    /// Writes one record, independently of the reader.
    fn line(kind: u8, offset: u16, data: &[u8]) -> String {
        let mut text = format!(":{:02X}{offset:04X}{kind:02X}", data.len());
        let mut sum = data.len() as u32 + u32::from(offset >> 8) + u32::from(offset & 255);
        sum += u32::from(kind);
        for byte in data {
            text += &format!("{byte:02X}");
            sum += u32::from(*byte);
        }
        text + &format!("{:02X}\r\n", 0x100_u32.wrapping_sub(sum) & 255)
    }

    const END: &str = ":00000001FF\r\n";

    #[test]
    fn a_file_of_every_kind_of_record_is_read() {
        // The data line is from the format's own specification.
        let text = format!(
            ":10246200464C5549442050524F46494C4500464C33\n\n{}{}{}{}{}{END}\n",
            line(3, 0, &[0, 1, 2, 3]),
            line(4, 0, &[0x08, 0x00]),
            line(0, 4, &[9]),
            line(2, 0, &[0x10, 0x01]),
            line(0, 0xffff, &[1]),
        );
        let payload = parse(&text).unwrap();
        assert_eq!(payload.segments[0].bytes, b"FLUID PROFILE\0FL");
        let spans: Vec<_> = payload.spans().collect();
        assert_eq!(spans, [(0x2462, 0x2472), (0x2000f, 0x20010), (0x0800_0004, 0x0800_0005)]);
    }

    #[test]
    fn every_problem_names_its_line() {
        let good = line(0, 0, &[1, 2]);
        let cases: &[(String, u64, HexProblem)] = &[
            (
                format!("{good}:0200020003040f\n{END}"),
                2,
                HexProblem::BadChecksum { found: 0x0f, wanted: 0xf5 },
            ),
            (format!("{good}{END}\n{good}"), 4, HexProblem::AfterEnd { end: 2 }),
            (good.clone(), 2, HexProblem::NoEndRecord),
            (format!("{good}hello\n"), 2, HexProblem::NoColon),
            (format!("{good}:00zz"), 2, HexProblem::NoDigit('z')),
            (format!("{good}:0000000"), 2, HexProblem::HalfByte),
            (format!("{good}:00"), 2, HexProblem::TooShort),
            (format!("{good}:0300000001FC"), 2, HexProblem::WrongLength { announced: 3, found: 1 }),
            (good.clone() + &line(9, 0, &[]), 2, HexProblem::UnknownType(9)),
            (
                good.clone() + &line(4, 0, &[1]),
                2,
                HexProblem::LengthOfType { kind: 4, wanted: 2, found: 1 },
            ),
            (good.clone() + &line(0, 0xffff, &[1, 2]), 2, HexProblem::OverEdge { offset: 0xffff }),
        ];
        for (text, line, problem) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error, ImageError::BadHex { line: *line, problem: problem.clone() });
            assert!(error.to_string().contains(&format!("line {line}: ")), "{error}");
        }
    }

    #[test]
    fn overlapping_lines_are_named() {
        let (one, two) = (line(0, 0, &[1, 2]), line(0, 2, &[3, 4]));
        let text = format!("{one}{two}{}{END}", line(0, 3, &[9]));
        assert_eq!(
            parse(&text).unwrap_err().to_string(),
            "two of its parts overlap: lines 1 to 2 (0x0..0x4) and line 3 (0x3..0x4)"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            start in 0u32..0x0fff_0000,
            data in proptest::collection::vec(any::<u8>(), 1..200),
            width in 1usize..40,
        ) {
            let mut text = String::new();
            let mut at = start;
            for part in data.chunks(width) {
                // A line never crosses 64 KiB.
                for (n, byte) in part.iter().enumerate() {
                    let address = at + n as u32;
                    text += &line(4, 0, &((address >> 16) as u16).to_be_bytes());
                    text += &line(0, address as u16, &[*byte]);
                }
                at += part.len() as u32;
            }
            let payload = parse(&(text + END)).unwrap();
            prop_assert_eq!(payload.segments, vec![Segment { start: u64::from(start), bytes: data }]);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[:0-9A-F\r\n]{0,80}|(:00000001FF\n|:0[0-9A-F]{10}\n|\\PC){0,6}") {
            let _ = Payload::read(super::super::ImageFormat::IntelHex, text.as_bytes());
        }
    }
}
