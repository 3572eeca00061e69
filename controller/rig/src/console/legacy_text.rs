//! Reads a failed verdict in an encoding that is older than UTF-8. Pure.
//!
//! # Design
//! A firmware prints the bytes of its source files, which many editors keep in the encoding of a country.
//! Which one a line has is not known, and most bytes mean something in each of them. So a line is read in
//! each, and a reading counts if it ends with a failed verdict: several bytes in a row that are just such a
//! word, behind a name and a joint, are no accident.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GBK, IBM866, KOI8_R, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254,
};

use super::foreign_verdict::is_foreign_verdict;

const ENCODINGS: [&Encoding; 12] = [
    WINDOWS_1252,
    WINDOWS_1250,
    WINDOWS_1254,
    WINDOWS_1251,
    KOI8_R,
    IBM866,
    WINDOWS_1253,
    GBK,
    BIG5,
    SHIFT_JIS,
    EUC_JP,
    EUC_KR,
];

/// Most bytes of a line, at its end, that are read.
const TAIL: usize = 160;

/// What no UTF-8 has and each line in one of these encodings.
pub(super) const HINTS: &str = r"[\x00-\x7f][\x80-\xbf\xf5-\xff]|[\xc2-\xf4][\x00-\x7f\xc0-\xff]|[\xc2-\xdf][\x80-\xbf]{2}|[\xe0-\xef][\x80-\xbf][\x00-\x7f\xc0-\xff]";

/// Returns the end of a line that is no UTF-8 if it is a failed verdict in another encoding.
pub(super) fn failed_verdict(line: &[u8]) -> Option<String> {
    if line.is_ascii() || std::str::from_utf8(line).is_ok() {
        return None;
    }
    let mut tail = &line[line.len().saturating_sub(TAIL)..];
    if tail.len() < line.len() {
        // Not from within a letter.
        tail = &tail[tail.iter().position(|byte| *byte == b' ')?..];
    }
    if tail.iter().any(|byte| *byte < b' ' && *byte != b'\t') {
        return None;
    }
    ENCODINGS.into_iter().find_map(|encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(tail)?;
        is_foreign_verdict(&text).then(|| text.into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::{is_suspicious, readable, tells_failure};
    use super::*;

    #[test]
    fn a_verdict_is_read_in_the_encodings_of_its_country() {
        for (encoding, failed, passed) in [
            (WINDOWS_1252, "Flash ... ÉCHEC", "Flash ... réussi"),
            (WINDOWS_1252, "RAM: défaillant", "RAM: vérifiée"),
            (WINDOWS_1252, "test 3: falló", "test 3: pasó"),
            (WINDOWS_1252, "test 3: underkänd", "test 3: godkänd"),
            (WINDOWS_1250, "pamięć: błąd", "pamięć: działa"),
            (WINDOWS_1254, "bellek testi: başarısız", "bellek testi: başarılı"),
            (WINDOWS_1251, "Флеш: ОШИБКА", "Флеш: исправно"),
            (KOI8_R, "ТЕСТ ФЛЕШ: СБОЙ", "ТЕСТ ФЛЕШ: НОРМА"),
            (IBM866, "Флеш: отказ", "Флеш: норма"),
            (WINDOWS_1253, "Δοκιμή RAM: αποτυχία", "Δοκιμή RAM: επιτυχία"),
            (GBK, "闪存测试: 失败", "闪存测试: 通过"),
            (GBK, "EEPROM 错误", "RAM 正常"),
            (GBK, "Flash测试失败", "Flash测试通过"),
            (BIG5, "快閃測試: 失敗", "快閃測試: 成功"),
            (SHIFT_JIS, "フラッシュテスト: 失敗", "フラッシュテスト: 成功"),
            (EUC_JP, "RAMテスト: 失敗", "RAMテスト: 成功"),
            (EUC_KR, "RAM 테스트: 실패", "RAM 테스트: 성공"),
        ] {
            let (bytes, _, lossy) = encoding.encode(failed);
            assert!(!lossy, "{failed}");
            assert!(tells_failure(&readable(&bytes)), "{} {failed}", encoding.name());
            assert!(candidate(&bytes).is_some(), "not searched: {failed}");
            let (bytes, _, lossy) = encoding.encode(passed);
            let text = readable(&bytes);
            assert!(!lossy && !tells_failure(&text) && !is_suspicious(&text), "{passed}");
        }
    }

    #[test]
    fn noise_is_no_verdict() {
        for line in
            [&b"\xff\xfe\xff\xfe"[..], b"RAM: \xbc\xba\xb0\xf8", b"\x00\x01: \xca\xa7\xb0\xdc", b""]
        {
            assert_eq!(failed_verdict(line), None, "{line:?}");
        }
    }
}
