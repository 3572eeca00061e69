//! Tells whether a line ends with a failed verdict in another language than English. Pure.
//!
//! # Design
//! Words of a failure in another language also stand in sentences of its logs, so a word counts only in
//! the place of a verdict: the last thing in its line, behind a joint that follows a name
//! (`Flash: fehlgeschlagen`). In scripts that write no capitals and few blanks, a blank is a joint
//! (`闪存 失败`). `foreign_verdict_lines.toml` holds examples.

/// Failed verdicts in small letters; a blank of one is written as `_`.
pub(super) const FAILED: &str = "\
    fehlgeschlagen fehlerhaft defekt durchgefallen nicht_bestanden nicht_in_ordnung \
    échoué échouée échec echoue en_échec défaillant défaillante non_conforme erreur \
    fallido fallida falló fallo no_apto no_apta reprobado reprobada averiado averiada rechazado rechazada no_superado no_superada \
    falhou falha reprovado reprovada não_passou \
    fallito fallita guasto guasta non_superato non_superata \
    mislukt gefaald afgekeurd fout niet_geslaagd \
    underkänd underkänt misslyckades misslyckad mislyktes mislykkedes fejlet feilet ikke_bestått \
    niepoprawny niepoprawna niepoprawne nieudany nieudana niezaliczony niezaliczona błąd blad \
    selhal selhala selhalo neúspěšný neúspěšně chyba \
    epäonnistui hylätty sikertelen hibás eșuat esuat picat başarısız başarisiz basarisiz \
    ошибка провал провален неудача сбой отказ брак не_пройден не_пройдено не_пройдена неисправен \
    неисправно неисправна помилка невдача αποτυχία αποτυχια \
    失败 失敗 不合格 错误 錯誤 异常 異常 未通过 未通過 不良 故障 エラー 실패 불합격 불량 이상 오류";

/// Names of tests behind which a verdict needs no joint.
const TESTS: [&str; 9] =
    ["测试", "測試", "检测", "自检", "テスト", "試験", "検査", "시험", "테스트"];

/// What stands between a name and its verdict.
const JOINTS: &[&str] = &[":", "=", "..", "->", " - ", "：", "|", "[", "(", "（", "【"];

/// Longest name of what was tested.
const NAME: usize = 80;

/// Text of which one stands in each such line, unless a word of results does: the beginnings of words in
/// ASCII, and any letter of the scripts.
pub(super) const HINTS: &str = r"fehlges|fehlerh|defekt|durchgef|nicht |chou|\xc3[\x89\xa9]chec|d\xc3\xa9faill|conforme|erreur|falli|fall\xc3|fallo|reprob|rechaz|superad|no apt|falh|reprov|passou|averiad|\bfout\b|guast|superat|mislu|gefaald|afgek|geslaagd|underk\xc3|misslyck|mislyk|fejlet|feilet|best\xc3|niepop|nieud|niezal|b\xc5[\x81\x82]|\bblad\b|selhal|\xc5[\xa0\xa1]n|chyba|\bep\xc3|hyl\xc3|sikert|hib\xc3|\be(?:s|\xc8[\x98\x99])uat|picat|ba(?:s|\xc5[\x9e\x9f])ar|[\xce-\xd2][\x80-\xbf]|[\xe3-\xed][\x80-\xbf]{2}";

/// Tells whether a text ends with a failed verdict in another language.
pub(super) fn is_foreign_verdict(text: &str) -> bool {
    let closing: &[char] = &['.', '!', '。', '！', ' ', ']', ')', '）', '】', '|', '*'];
    let whole = text.trim();
    // What stands in brackets behind a verdict is its reason, unless it counts none.
    let detail = whole.strip_suffix([')', '）']).and_then(|text| text.rsplit_once(['(', '（']));
    let front = detail.filter(|(_, detail)| !detail.trim_start().starts_with('0'));
    let mut texts = std::iter::once(whole).chain(front.map(|(front, _)| front));
    texts.any(|text| ends_badly(text.trim_end_matches(closing)))
}

fn ends_badly(text: &str) -> bool {
    let lower = text.to_lowercase();
    FAILED.split_ascii_whitespace().any(|word| {
        let word_text = word.replace('_', " ");
        let Some(front) = lower.strip_suffix(&word_text) else { return false };
        let name = front.trim_end();
        let spaced =
            !word.is_ascii() && word.chars().all(|c| c > '\u{2e80}') && name.len() < front.len();
        let joint = JOINTS.iter().find_map(|joint| {
            let joint = if joint.starts_with(' ') { joint.trim_end() } else { joint };
            name.strip_suffix(joint)
        });
        let tested = || !word.is_ascii() && TESTS.iter().any(|test| name.ends_with(test));
        let name = joint.or_else(|| Some(name).filter(|_| spaced || tested()));
        name.is_some_and(|name| name.chars().any(char::is_alphanumeric) && name.len() <= NAME)
    })
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::tells_failure;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        failed: Vec<String>,
        harmless: Vec<String>,
    }

    #[test]
    fn a_verdict_in_another_language_stands_in_its_place() {
        let lines: Lines = toml::from_str(include_str!("foreign_verdict_lines.toml")).unwrap();
        for line in &lines.failed {
            assert!(is_foreign_verdict(line) && tells_failure(line), "{line:?}");
            assert!(candidate(line.as_bytes()).is_some(), "not searched: {line:?}");
        }
        for line in &lines.harmless {
            assert!(!tells_failure(line), "{line:?}");
        }
    }

    #[test]
    fn each_word_is_searched_for() {
        for word in FAILED.split_ascii_whitespace() {
            let line = format!("x: {}", word.replace('_', " "));
            assert!(candidate(line.as_bytes()).is_some(), "not searched: {line:?}");
            assert!(is_foreign_verdict(&line), "{line:?}");
        }
    }
}
