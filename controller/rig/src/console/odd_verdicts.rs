//! Tells whether a line is the failed row of a list in which the rows beside it have a passed verdict in the
//! same place: in another language than English, as a mark (`❌` among `✅`), as the name of a status
//! (`FR_DISK_ERR` among `FR_OK`), or as a value in JSON. Pure.
//!
//! # Design
//! Such a word also stands in sentences of logs, so by itself it counts only at the end of its line
//! (`foreign_verdict.rs`). Two rows beside it whose verdict is known to be a pass, behind the same joint,
//! tell that this is a list of results; then a detail may stand behind the failed verdict:
//! `[2] Flash ...... 失败 (地址 0x12000)`. Behind a single blank, the verdicts have to stand below each
//! other. A row that passes later under the same name was tried again.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::foreign_verdict::FAILED;
use super::log_prefix::texts;
use super::result_rows::goes_on;
use super::scan::searched_once;
use super::words::listed;

/// Verdicts of a pass in small letters.
const PASSED: &str = "\
    ok i.o. i.o io gut bestanden fehlerfrei erfolgreich \
    conforme réussi réussie bon succès correct correcte \
    correcto correcta superado superada aprobado aprobada bien éxito \
    aprovado aprovada passou sucesso superato superata riuscito riuscita buono positivo \
    geslaagd goed goedgekeurd godkänd godkänt godkjent godkendt bestått bestået \
    zaliczony zaliczona poprawny poprawna sprawny sprawna vyhovuje prošel prošla \
    hyväksytty megfelelt başarılı başarili basarili geçti trecut reușit \
    норма исправен исправна исправно пройден пройдена пройдено успешно годен успех справний справно \
    επιτυχία επιτυχια 通过 通過 正常 合格 成功 良好 良 정상 합격 통과 성공";

/// Failed verdicts that need a list, beside those that stand alone.
const FAILED_BESIDE: &str = "fehler mangelhaft ausgefallen schlecht erreur ko nio n.i.o. n.i.o bad";

/// Marks of a pass and of a failure.
const GOOD_MARKS: [char; 6] = ['✅', '✔', '✓', '☑', '🟢', '👍'];
const BAD_MARKS: [char; 7] = ['❌', '✗', '✘', '✖', '☒', '🔴', '👎'];

/// How names of a status that is good end, and how parts of those that are bad begin.
const GOOD_STATUS: [&str; 5] = ["_OK", "_SUCCESS", "_NO_ERROR", "_ERROR_NONE", "_ERR_NONE"];
const BAD_STATUS: [&str; 7] = ["ERR", "FAIL", "TIMEOUT", "INVALID", "DENIED", "CORRUPT", "FAULT"];

/// Values in JSON.
const PASSED_VALUES: &str = "pass passed ok success";
const FAILED_VALUES: &str = "fail failed failure error nok ng";

pub(super) static PASSED_VERDICTS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(PASSED));
pub(super) static FAILED_VERDICTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| any_of(&format!("{FAILED} {FAILED_BESIDE}")));

/// Searches for words of a list; the longest of those that begin alike counts.
fn any_of(list: &str) -> Option<Regex> {
    let words = list.split_ascii_whitespace().map(|word| word.replace('_', " "));
    let mut words: Vec<String> = words.map(|word| regex::escape(&word)).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    Regex::builder().configure(searched_once()).build(&words.join("|")).ok()
}

/// So many rows beside it tell that this is a list of results.
const ALIKE: usize = 2;
/// Longest name of what was tested.
const NAME: usize = 80;

/// Text of which one stands in each such line, unless that of another rule does: the beginnings of marks,
/// and names of a status.
pub(super) const HINTS: &str = r"\xe2\x9d\x8c|\xe2\x9c[\x96-\x98]|\xe2\x98\x92|\xf0\x9f\x94\xb4|\xf0\x9f\x91\x8e|fehler|mangelhaft|\x22(?:ok|ng|nok)\x22|ausgefallen|schlecht|(?-i:[>:=.] *[A-Z][A-Z0-9]*_[A-Z_]*(?:ERR|FAIL|TIMEOUT|INVALID|DENIED|CORRUPT|FAULT))";

/// A name, what stands between it and its verdict, and the verdict.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    name: &'a str,
    /// What stands in front of the verdict; nothing if that is a single blank.
    joint: &'static str,
    /// How many characters stand in front of the verdict, where a blank does.
    column: usize,
    kind: Kind<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind<'a> {
    Word,
    Mark,
    /// The part of the name of a status in front of what tells it from others: `FR`.
    Status(&'a str),
    /// The value of a key.
    Value(&'a str),
}

impl<'a> Row<'a> {
    fn of(name: &'a str, joint: &'static str, kind: Kind<'a>) -> Self {
        Self { name, joint, column: 0, kind }
    }

    /// Tells whether the verdict of another row stands in the same place.
    fn is_like(&self, other: &Row<'_>) -> bool {
        let blank = |joint: &str| matches!(joint, "" | " ");
        let below = blank(self.joint) && blank(other.joint) && self.column == other.column;
        let joined = self.joint == other.joint && !self.joint.is_empty();
        self.kind == other.kind && (joined || below)
    }
}

/// Tells whether a line may be such a row.
pub(super) fn may_be_odd(line: &str) -> bool {
    texts(line, true).any(|text| failed(text).is_some())
}

/// Tells whether a line is such a row.
pub(super) fn is_odd(before: &[&str], line: &str, behind: &[&str]) -> bool {
    if goes_on(line) {
        return false;
    }
    texts(line, true).filter_map(failed).any(|row| {
        let later = behind.iter().filter_map(|line| row_like(&row, line));
        if later.into_iter().any(|other| other.name == row.name) {
            return false;
        }
        let beside = before.iter().chain(behind).filter_map(|line| row_like(&row, line));
        beside.filter(|other| other.name != row.name).count() >= ALIKE
    })
}

/// Tells whether a line holds a list of its own with such a row: `ОЗУ - норма, АЦП - отказ`.
pub(super) fn is_odd_in_line(text: &str) -> bool {
    const BETWEEN: [char; 5] = [',', ';', '，', '、', '；'];
    if !text.contains(BETWEEN) || goes_on(text) {
        return false;
    }
    let rows = || text.split(BETWEEN).map(str::trim);
    let failed = rows().filter_map(|row| {
        let inside = row.strip_suffix([')', '）']).unwrap_or(row);
        let text = inside.rsplit_once(['(', '（']).map_or(inside, |(front, _)| front);
        let row = verdict(text, &FAILED_VERDICTS, true)?;
        (!is_denied(row.name)).then_some(row)
    });
    let passed: Vec<Row<'_>> =
        rows().filter_map(|row| verdict(row, &PASSED_VERDICTS, true)).collect();
    failed.into_iter().any(|row| passed.iter().any(|other| other.joint == row.joint))
}

/// `kein Fehler`, `sin fallo`, `без ошибок`
fn is_denied(name: &str) -> bool {
    const DENIALS: &str = "\
        kein keine keinen ohne pas aucun aucune sans sin ningún ninguna sem nenhum nenhuma senza nessun \
        nessuna geen zonder ingen inga brak bez żaden нет без yok nincs ei 没有 無 无 없음";
    let last = name.rsplit(' ').next().unwrap_or(name).to_lowercase();
    listed(DENIALS, &last)
}

/// Reads a line as a row that passed and otherwise is like one that failed.
fn row_like<'a>(row: &Row<'_>, line: &'a str) -> Option<Row<'a>> {
    let rows = texts(line, true).filter_map(passed);
    rows.into_iter().find(|other| row.is_like(other))
}

/// Reads a row with a failed verdict.
fn failed(text: &str) -> Option<Row<'_>> {
    if let Some((name, joint)) = marked(text, &BAD_MARKS) {
        return Some(Row::of(name, joint, Kind::Mark));
    }
    if let Some((name, joint, word)) = status(text) {
        let bad = |part: &str| BAD_STATUS.iter().any(|bad| part.starts_with(bad));
        let bad = word.split('_').any(bad);
        let family = word.split('_').next().unwrap_or_default();
        let row = Row::of(name, joint, Kind::Status(family));
        return Some(row).filter(|_| bad && !is_good_status(word));
    }
    if text.trim_start().starts_with('{') {
        return json(text, FAILED_VALUES);
    }
    verdict(text, &FAILED_VERDICTS, false)
}

/// Reads a row whose verdict is a pass.
fn passed(text: &str) -> Option<Row<'_>> {
    if let Some((name, joint)) = marked(text, &GOOD_MARKS) {
        return Some(Row::of(name, joint, Kind::Mark));
    }
    if let Some((name, joint, word)) = status(text) {
        let family = word.split('_').next().unwrap_or_default();
        let row = Row::of(name, joint, Kind::Status(family));
        return Some(row).filter(|_| is_good_status(word));
    }
    if text.trim_start().starts_with('{') {
        return json(text, PASSED_VALUES);
    }
    verdict(text, &PASSED_VERDICTS, true)
}

fn is_good_status(word: &str) -> bool {
    GOOD_STATUS.iter().any(|end| word.ends_with(end))
}

/// Reads a row of JSON that has one of these values: `{"bist":"rng","res":"fail"}`. Its name is the first
/// other text.
fn json<'a>(text: &'a str, values: &str) -> Option<Row<'a>> {
    let parts: Vec<&str> = text.split('"').collect();
    let pairs = || parts.windows(3).filter(|part| part[1].trim() == ":");
    let is_value = |pair: &&[&str]| listed(values, &pair[2].to_ascii_lowercase());
    let key = pairs().find(is_value)?[0];
    let name = pairs().find(|pair| pair[0] != key).map_or("", |pair| pair[2]);
    Some(Row::of(name, ":", Kind::Value(key)))
}

/// Reads a row with one mark, in front of the name or in the last field.
fn marked<'a>(text: &'a str, marks: &[char]) -> Option<(&'a str, &'static str)> {
    let lettered = |name: &str| name.chars().any(char::is_alphabetic) && name.len() <= NAME;
    let edge: &[char] = &['|', ' ', '\t', '[', ']', '\u{fe0f}', '*', '-'];
    let body = text.trim_matches(edge);
    if let Some(name) = body.strip_prefix(marks) {
        let name = name.trim_matches(edge);
        return lettered(name).then_some((name, "mark"));
    }
    let front = body.strip_suffix(marks)?;
    let name = front.trim_end_matches(edge).trim_end_matches([':', '.', '=', '>']);
    let joint = if front.trim_end().ends_with('|') { "|" } else { " " };
    lettered(name).then_some((name, joint))
}

/// Reads a row with the name of a status: `f_write 32768 -> FR_DISK_ERR, bw=12288`.
fn status(text: &str) -> Option<(&str, &'static str, &str)> {
    const JOINTS: [&str; 4] = ["->", ":", "=", ".."];
    JOINTS.into_iter().find_map(|joint| {
        let at = text.find(joint)?;
        let rest = text[at + joint.len()..].trim_start_matches(['.', ' ', '>']);
        let len = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        let word = &rest[..len.unwrap_or(rest.len())];
        let behind = rest[word.len()..].chars().next();
        let ends = behind.is_none_or(|c| matches!(c, ' ' | ',' | ';' | '(' | '.'));
        let name = text[..at].trim_end();
        let named = word.contains('_') && word.starts_with(|c: char| c.is_ascii_uppercase());
        (ends && named && !name.is_empty() && name.len() <= NAME).then_some((name, joint, word))
    })
}

/// Finds the first verdict of some that stands behind a joint; that of a pass ends its line, and no number
/// stands behind one of a failure: `CAN: Fehler 0` counts.
fn verdict<'a>(text: &'a str, verdicts: &Option<Regex>, last: bool) -> Option<Row<'a>> {
    let text = text.trim_end();
    let lower = text.to_lowercase();
    // The places of another length of small letters would not be those of the text.
    if lower.len() != text.len() {
        return None;
    }
    verdicts.as_ref()?.find_iter(&lower).find_map(|found| {
        let (front, behind) = (text.get(..found.start())?, text.get(found.end()..)?);
        let next = behind.chars().next();
        // `異常なし` takes it back.
        let whole = next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
        let ends = behind.chars().all(|c| !c.is_alphanumeric());
        let counts =
            behind.trim_start_matches([' ', ':', '=']).starts_with(|c: char| c.is_numeric());
        if !whole || last && !ends || counts {
            return None;
        }
        let wide = lower[found.range()].chars().all(|c| c > '\u{2e80}');
        let (name, joint) = joint_of(front, wide)?;
        let column = if matches!(joint, "" | " ") { front.chars().count() } else { 0 };
        Some(Row { name, joint, column, kind: Kind::Word })
    })
}

/// Cuts the joint off what stands in front of a verdict. A single blank is one for scripts without
/// capitals, and elsewhere none.
fn joint_of(front: &str, wide: bool) -> Option<(&str, &'static str)> {
    const JOINTS: [(&str, &str); 10] = [
        (":", ":"),
        ("：", ":"),
        ("..", "."),
        (" .", "."),
        ("=", "="),
        ("->", ">"),
        (" -", "-"),
        ("|", "|"),
        ("[", "["),
        ("\t", " "),
    ];
    let cut = front.trim_end_matches(' ');
    let found = JOINTS.into_iter().find(|(joint, _)| cut.ends_with(joint));
    let joint = match found {
        Some((_, joint)) => joint,
        None if front.len() - cut.len() > usize::from(!wide) => " ",
        None if front.len() > cut.len() => "",
        None => return None,
    };
    let name = cut.trim_end_matches(['.', ' ', ':', '：', '=', '-', '>', '|', '[', '\t']);
    let named = name.chars().any(char::is_alphabetic) && name.len() <= NAME;
    // `letzter Fehler: Fehler 12` is a value.
    let value =
        name.split(' ').any(|word| listed("letzter fehler last error", &word.to_lowercase()));
    (named && !value).then_some((name, joint))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::candidate_lines::candidate;
    use super::super::result_lists::tests::failed as failed_row;
    use super::super::tells_failure;
    use super::*;

    #[test]
    fn a_failed_verdict_among_passed_ones_is_a_failure() {
        for (output, row) in [
            (
                "[1] 串口 ...... 通过 / [2] 闪存 ...... 失败 (地址 0x12000) / [3] 蓝牙 ...... 通过",
                "[2] 闪存 ...... 失败 (地址 0x12000)",
            ),
            (
                "01 Spannung     24,0 V    i.O. / 03 Isolation    0,4 MOhm  FEHLER / 04 Strom        6,2 A     i.O.",
                "03 Isolation    0,4 MOhm  FEHLER",
            ),
            (
                "teclado ...... correcto / humedad ...... FALLÓ: no responde / zumbador ..... correcto",
                "humedad ...... FALLÓ: no responde",
            ),
            (
                "ОЗУ ...... норма / ПЗУ ...... ОШИБКА, не совпадает / АЦП ...... норма",
                "ПЗУ ...... ОШИБКА, не совпадает",
            ),
            ("- 전원: 정상 / - 안테나: 실패 (-121 dBm) / - GPS: 정상", "- 안테나: 실패 (-121 dBm)"),
            ("| USB | ✅ | / | fuel gauge | ❌ | / | haptics | ✅ |", "| fuel gauge | ❌ |"),
            ("✓ usb / ✗ gauge / ✓ haptics", "✗ gauge"),
            ("✓ usb / ✓ haptics / ✗ gauge (no ack)", "✗ gauge (no ack)"),
            (
                "f_open -> FR_OK / f_write 512 -> FR_DISK_ERR, bw=12 / f_close -> FR_OK",
                "f_write 512 -> FR_DISK_ERR, bw=12",
            ),
            (
                "Sensor 1 : BASARILI 24.1C / Nem : BASARISIZ (yanit yok) / Role 1 : BASARILI / Role 2 : BASARILI",
                "Nem : BASARISIZ (yanit yok)",
            ),
            ("init: HAL_OK / dma: HAL_TIMEOUT / stop: HAL_OK", "dma: HAL_TIMEOUT"),
        ] {
            assert_eq!(failed_row(output), Some(row), "{output}");
        }
    }

    #[test]
    fn a_list_in_one_line_has_its_own_rows() {
        for line in [
            "Самотестирование: ОЗУ - норма, АЦП - отказ, ЦАП - норма",
            "Autotest : mémoire vive OK, horloge OK, liaison CAN ÉCHEC (délai dépassé)",
            "Öz sınama: bellek başarılı, GPS modülü başarısız",
            "自检: 内存 正常、闪存 失败、时钟 正常",
        ] {
            assert!(is_odd_in_line(line) && tells_failure(line), "{line}");
            assert!(candidate(line.as_bytes()).is_some(), "not searched: {line}");
        }
        for line in [
            "Autotest : mémoire OK, horloge OK, aucune erreur",
            "RAM ok, WLAN ok, Fehler 0",
            "RAM ok, kein Fehler",
            "内存 正常, 无 故障",
            "GPS başarısız, tekrar deneniyor",
            "RAM ok, WLAN Fehler, retry 2",
        ] {
            assert!(!is_odd_in_line(line), "{line}");
        }
    }

    #[test]
    fn logs_and_second_tries_are_none() {
        for output in [
            // One row beside it, other joints, and one that is tried again.
            "f_open -> FR_OK / f_write -> FR_DISK_ERR, bw=12",
            "f_open: FR_OK / f_stat: FR_OK / f_write -> FR_DISK_ERR, bw=12",
            "f_open -> FR_OK / f_write -> FR_TIMEOUT, wait / f_stat -> FR_OK / f_write -> FR_OK",
            "mount: FR_OK / stat: FR_NO_FILE / open: FR_OK",
            "a: HAL_OK / b: HAL_OK / c: ESP_ERR_TIMEOUT (263)",
            "WLAN: ok / MQTT: ok / 3 Fehler im Speicher, 12 Einträge",
            "WLAN: ok / MQTT: ok / Fehler: 0",
            "WLAN: ok / MQTT: ok / CAN: Fehler 0",
            "flash: ok / uart: ok / blocks: bad 0, spare 20",
            "flow: UART_NO_ERROR / clock: UART_OK / sclk: UART_SCLK_DEFAULT / irq: UART_INTERRUPT",
            "✅ WiFi / ✅ MQTT / ❌ No SD card, using default",
            "電源: 正常 / モータ: 正常 / 自己診断: 異常なし",
            "WLAN: ok / MQTT: ok / letzter Fehler: Fehler 12",
            "网络: 正常 / 电源: 正常 / 失败: 0",
            "✓ usb / ✗ gauge / ✓ gauge / ✓ haptics",
            "✓ done, ✗ failed, - skipped",
            "WLAN ok / MQTT ok / Verbindung mit Fehler beendet",
            "{\"a\":\"x\",\"res\":\"ok\"} / {\"a\":\"y\",\"res\":\"ok\"} / {\"a\":\"z\",\"mode\":\"fail\"}",
            "{\"a\":\"x\",\"res\":\"ok\"} / {\"a\":\"z\",\"res\":\"fail\"} / {\"a\":\"y\",\"res\":\"ok\"} / {\"a\":\"z\",\"res\":\"ok\"}",
        ] {
            assert_eq!(failed_row(output), None, "{output}");
        }
    }

    #[test]
    fn verdicts_are_of_one_list() {
        for word in PASSED.split_ascii_whitespace() {
            assert!(passed(&format!("x: {word}")).is_some(), "{word}");
            assert!(failed(&format!("x: {word}")).is_none(), "{word}");
        }
        for word in FAILED_BESIDE.split_ascii_whitespace() {
            let line = format!("x: {word}, y");
            assert!(failed(&line).is_some() && candidate(line.as_bytes()).is_some(), "{word}");
        }
    }

    proptest! {
        #[test]
        fn any_lines_are_answered(lines in prop::collection::vec("\\PC{0,40}", 1..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            for at in 0..lines.len() {
                let odd = is_odd(&lines[..at], lines[at], &lines[at + 1..]);
                prop_assert!(!odd || may_be_odd(lines[at]));
            }
        }
    }
}
