//! Tells whether a line is a failed row of a list in any language, by the rows beside it. Pure.
//!
//! # Design
//! Words of verdicts are endless, those that deny are few: `不通过` below `通过`, `NO-GO` below `GO`,
//! `IKKE GODKJENT` below `GODKJENT`. So a verdict need not be known: two rows beside it have one in the
//! same place, and this row has the same one, denied. States are no verdicts: a card that is
//! `not installed` below one that is `installed` has not failed.
//!
//! Two other rows are told by what stands beside them: one of a matrix (`1 P F P` among `0 P P P`), and
//! two words in capitals of which the last is a failure (`VERIFY ERROR`) among `OK`.

use super::log_prefix::texts;
use super::words::listed;

/// Words that deny what stands behind them, and a blank or `-`.
const DENIALS: &str = "\
    not no non nicht kein keine pas ne não nao nie nu nije niet geen ikke ikkje inte icke ej ei nem bez \
    không khong tidak sin sans δεν μη не ні לא غير";
/// Beginnings of words that deny the rest.
const DENYING: [&str; 13] =
    ["не", "ні", "ne", "nie", "不", "未", "非", "無", "无", "没", "沒", "미", "불"];
/// Fewest letters of a word that is denied by a beginning of Latin letters: `new` denies no `w`.
const DENIED: usize = 4;

/// What a part of a device may be and may not be. A blank of one is written as `_`.
const STATES: &str = "\
    present installed connected found detected available supported used in_use active enabled ready set \
    required needed mounted plugged plugged_in implemented configured programmed locked charging attached \
    populated fitted assigned defined loaded running started initialized initialised empty full open \
    closed online busy known visible linked paired on selected equipped encrypted signed protected \
    provisioned calibrated needed writable readable cached changed modified registered scheduled \
    vorhanden bestückt installiert angeschlossen verbunden aktiv aktiviert gesetzt belegt verfügbar \
    bereit benutzt konfiguriert gefunden présent installé connecté actif activé disponible utilisé \
    configuré trouvé conectado instalado presente activo activado disponible usado configurado \
    encontrado ligado ativo ativado connesso installato attivo attivato trovato aanwezig actief \
    verbonden geïnstalleerd aktivt tilkoblet installert tilsluttet ansluten installerad obsazen připojeno \
    připojen nainstalováno aktivní podłączony podłączone zainstalowany aktywny подключен подключено \
    подключён установлен установлена активен активно найден включен включено доступен используется \
    підключено встановлено активний увімкнено 安装 安裝 连接 連接 检测到 检测 启用 啟用 使用 激活 \
    初始化 配置 設定 设置 接続 検出 対応 挿入 就绪 充电 加密 锁定 연결 설치 사용 감지";

/// Passed verdicts in capitals, and words that end a failed one.
const PASSED: &str = "OK PASS PASSED GOOD";
const FAILED: &str = "ERROR FAIL FAILED FAILURE MISMATCH TIMEOUT FAULT";

/// Longest name, and longest verdict.
const NAME: usize = 80;
const VERDICT: usize = 40;
/// Most words of a verdict.
const WORDS: usize = 3;
/// So many rows beside it tell what a verdict is.
const ALIKE: usize = 2;

/// Text of which one stands in each such line, unless a word of results or another script does.
pub(super) const HINTS: &str = r"[ :=\t.|\[-](?:not?|non|nicht|keine?|pas|ne|n\xc3\xa3o|nao|nie|nu|nije|niet|geen|ikkj?e|inte|icke|e[ij]|nem|bez|kh(?:\xc3\xb4|o|\xc3\x94)ng|tidak|sin|sans)[ -][a-z\xc3-\xe1]|(?-i:[ :=\t.|\[](?:NE|NIE)[A-Z\xc3-\xc5])|(?:[:=\t.|\[] ?|  )(?:ne|nie)[a-z]{4}|\xd7\x9c\xd7\x90|\xd8\xba|(?-i:[ \t][PF][ \t]+F|[ \t]F[ \t]+[PF])|(?-i:[A-Z]+ FAULT\b)";

/// A name, what stands behind it, and the verdict.
#[derive(Debug)]
struct Row<'a> {
    name: &'a str,
    joint: char,
    verdict: String,
    /// The verdict as it stands in the line.
    written: &'a str,
}

/// Tells whether a line may be such a row.
pub(super) fn may_be_denied(line: &str) -> bool {
    texts(line, true).any(|text| {
        row(text)
            .is_some_and(|row| is_denied_somehow(&row.verdict) || fails_in_capitals(row.written))
            || matrix(text).is_some_and(|letters| letters.contains(&"F"))
            || is_failed_matrix(text)
    })
}

/// Tells whether a line is such a row.
pub(super) fn is_denied_row(before: &[&str], line: &str, behind: &[&str]) -> bool {
    let beside = || before.iter().chain(behind);
    texts(line, true).any(|text| {
        let opposed = row(text).is_some_and(|row| is_opposed(&row, beside()));
        opposed
            || is_failed_matrix(text)
            || matrix(text).is_some_and(|letters| is_failed_in(&letters, beside()))
    })
}

/// Tells whether the rows beside it have the verdict that this one denies, and this one has no pass later.
fn is_opposed<'a>(row: &Row<'_>, beside: impl Iterator<Item = &'a &'a str>) -> bool {
    let capitals = fails_in_capitals(row.written);
    if !capitals && !is_denied_somehow(&row.verdict) {
        return false;
    }
    let mut names: Vec<&str> = Vec::new();
    for other in beside.flat_map(|line| texts(line, true)).filter_map(self::row) {
        let passed = match capitals {
            true => listed(PASSED, other.written),
            false => denies(&row.verdict, &other.verdict),
        };
        if !passed || other.joint != row.joint {
            continue;
        }
        // It was tried again.
        if other.name == row.name {
            return false;
        }
        if !names.contains(&other.name) {
            names.push(other.name);
        }
    }
    names.len() >= ALIKE
}

/// Tells whether a verdict is another one, denied.
fn denies(verdict: &str, other: &str) -> bool {
    let Some(front) = verdict.strip_suffix(other) else { return false };
    let state = || listed(STATES, &other.replace(' ', "_"));
    let letters = other.chars().filter(|c| c.is_alphabetic()).count();
    let denied = match front.strip_suffix([' ', '-']) {
        Some(word) => letters > 1 && listed(DENIALS, word.trim()),
        None => {
            let latin = front.is_ascii() && letters < DENIED;
            letters > 0 && !latin && DENYING.contains(&front)
        }
    };
    denied && !state()
}

/// Tells whether a verdict denies anything.
fn is_denied_somehow(verdict: &str) -> bool {
    let first = verdict.split([' ', '-']).next().unwrap_or_default();
    first.len() < verdict.len() && listed(DENIALS, first)
        || DENYING.iter().any(|front| verdict.starts_with(front))
}

/// `VERIFY ERROR`.
fn fails_in_capitals(verdict: &str) -> bool {
    let words: Vec<&str> = verdict.split(' ').collect();
    let capital = |word: &&str| word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase());
    (2..=WORDS).contains(&words.len())
        && words.iter().all(capital)
        && words.last().is_some_and(|last| listed(FAILED, last))
}

/// Cuts a line at what stands between a name and a verdict.
fn row(text: &str) -> Option<Row<'_>> {
    const JOINTS: [(&str, char); 10] = [
        ("：", ':'),
        (":", ':'),
        ("=", '='),
        ("..", '.'),
        ("->", '>'),
        (" - ", '-'),
        ("|", '|'),
        ("[", '['),
        ("\t", ' '),
        ("  ", ' '),
    ];
    let closing: &[char] = &['.', '!', '。', '！', ' ', ']', ')', '）', '】', '|', '*', '\t'];
    let text = text.trim();
    let detail = text.rsplit_once(" (").filter(|(_, detail)| detail.ends_with([')', '.']));
    let text = detail.map_or(text, |(row, _)| row).trim_end_matches(closing);
    let cut = |(joint, kind): (&str, char)| {
        let at = text.rfind(joint)?;
        Some((at, at + joint.len(), kind))
    };
    let last = JOINTS.into_iter().filter_map(cut).max_by_key(|(_, end, _)| *end);
    // A single blank stands in front of one word.
    let blank = || text.rfind(' ').map(|at| (at, at + 1, ' '));
    let parted =
        |(at, end, joint): (usize, usize, char)| {
            let name = text[..at].trim_end_matches(['.', ' ', ':', '-', '=']);
            let written = text[end..].trim();
            let short = written.len() <= VERDICT && written.split(' ').count() <= WORDS;
            let lettered = |text: &str| text.chars().any(char::is_alphabetic);
            let plain = !written.contains(|c: char| c.is_numeric());
            (short && plain && lettered(written) && lettered(name) && name.len() <= NAME)
                .then(|| Row { name, joint, verdict: written.to_lowercase(), written })
        };
    last.and_then(parted).or_else(|| blank().and_then(parted))
}

/// Reads the letters of a row of a matrix: at least two of `P` and `F` behind its name.
fn matrix(text: &str) -> Option<Vec<&str>> {
    let mut fields = text.split_ascii_whitespace();
    fields.next()?;
    let letters: Vec<&str> = fields.collect();
    let all = letters.len() >= 2 && letters.iter().all(|field| matches!(*field, "P" | "F"));
    all.then_some(letters)
}

/// `state PASS PASS FAIL PASS`: a row of verdicts, one of them failed.
fn is_failed_matrix(text: &str) -> bool {
    let fields: Vec<&str> = text.split_ascii_whitespace().skip(1).collect();
    let of = |list: &str| fields.iter().filter(|field| listed(list, field)).count();
    let (passed, failed) = (of("PASS PASSED OK"), of("FAIL FAILED NG"));
    let alike = ["PASS", "PASSED", "OK"].iter().any(|word| of(word) >= ALIKE);
    alike && failed > 0 && passed + failed + of("SKIP N/A - --") == fields.len()
}

fn is_failed_in<'a>(letters: &[&str], beside: impl Iterator<Item = &'a &'a str>) -> bool {
    let rows = beside.filter_map(|line| texts(line, true).find_map(matrix));
    let alike = rows.filter(|row| row.len() == letters.len() && row.contains(&"P")).count();
    letters.contains(&"F") && alike >= ALIKE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::result_lists::tests::failed;
    use super::*;

    #[test]
    fn a_verdict_that_is_denied_is_a_failure() {
        for (output, row) in [
            ("按键测试: 通过 / 蓝牙测试: 不通过 / 电池测试: 通过", "蓝牙测试: 不通过"),
            ("按键 通过 / 电池 通过 / 蓝牙 未通过", "蓝牙 未通过"),
            ("BIT CPU      GO / BIT MEM      GO / BIT ADC1     NO-GO", "BIT ADC1     NO-GO"),
            ("BIT CPU GO / BIT ADC1 NO-GO / BIT MEM GO", "BIT ADC1 NO-GO"),
            ("Test A: VYHOVUJE / Test B: NEVYHOVUJE / Test C: VYHOVUJE", "Test B: NEVYHOVUJE"),
            (
                "1 strøm: GODKJENT / 2 radio: IKKE GODKJENT / 3 LCD: GODKJENT",
                "2 radio: IKKE GODKJENT",
            ),
            ("Kiểm tra pin: ĐẠT / Kiểm tra loa: ĐẠT / LCD: KHÔNG ĐẠT", "LCD: KHÔNG ĐẠT"),
            (
                "Датчик 1: СПРАВНИЙ / Датчик 2: НЕСПРАВНИЙ / Датчик 3: СПРАВНИЙ",
                "Датчик 2: НЕСПРАВНИЙ",
            ),
            ("RAM      sprawny / Zegar    niesprawny / ADC      sprawny", "Zegar    niesprawny"),
            ("ram: zgodny / rom: zgodny / adc: niezgodny", "adc: niezgodny"),
            ("RAM: megfelelt / ADC: nem megfelelt / ROM: megfelelt", "ADC: nem megfelelt"),
            ("버튼: 합격 / 센서: 불합격 / 배터리: 합격", "센서: 불합격"),
            (
                "Odběr     vyhovuje / Odpor     nevyhovuje (0,4 MOhm) / Displej   vyhovuje",
                "Odpor     nevyhovuje (0,4 MOhm)",
            ),
            ("RAM | CONFORME / ADC | NON CONFORME / ROM | CONFORME", "ADC | NON CONFORME"),
            // In capitals.
            ("Sector 10: OK / Sector 11: OK / Sector 12: VERIFY ERROR", "Sector 12: VERIFY ERROR"),
            ("ram .... PASS / adc .... RANGE FAULT / rom .... PASS", "adc .... RANGE FAULT"),
            // A matrix.
            ("ch  gain  noise / 0   P     P / 1   P     F / 2   P     P", "1   P     F"),
            ("a P P P / b F P P / c P P P", "b F P P"),
            (
                "     CH0  CH1  CH2 / gain 0.1  0.2  3.9 / state PASS PASS FAIL",
                "state PASS PASS FAIL",
            ),
            // A name in another script, and a code without a blank.
            ("[1] 電圧 ... OK / [2] SDカード ... NG / [3] LCD ... OK", "[2] SDカード ... NG"),
            ("1 电压 OK / 2 按键 NG / 3 屏幕 OK", "2 按键 NG"),
            ("01 cpu .... ok / 02 sdram .... err(04) / 03 uart .... ok", "02 sdram .... err(04)"),
        ] {
            assert_eq!(failed(output), Some(row), "{output}");
        }
    }

    #[test]
    fn states_and_values_are_none() {
        for output in [
            "flash: installed / sd card: not installed / eeprom: installed",
            "SPI0: PRESENT / SPI1: NOT PRESENT / SPI2: PRESENT",
            "Karte 1: vorhanden / Karte 2: nicht vorhanden / Karte 3: vorhanden",
            "模块1: 安装 / 模块2: 未安装 / 模块3: 安装",
            "key 1: active / key 2: inactive / key 3: active",
            "bank 0: RAM / bank 1: RAM / bank 2: NVRAM",
            "port 1: UART / port 2: UART / port 3: LPUART",
            "clock: Hz / timer: Hz / cpu: kHz",
            "a: w / b: w / c: new",
            "a: 5 V / b: 5 V / c: no 5 V",
            "debug: yes / trace: yes / jtag: no",
            // One row beside it, and one that is tried again.
            "按键: 通过 / 蓝牙: 不通过",
            "RAM: GO / ROM: GO / ADC: NO-GO / ADC: GO",
            // Other joints.
            "RAM: GO / ROM: GO / ADC - NO-GO",
            "x P P / y P P / z P P",
            "F F F",
            "state PASS PASS PASS",
            "suite PASS FAIL SKIP",
            "legend: OK PASS FAIL SKIP",
            "verdicts are PASS PASS FAIL in this order",
        ] {
            assert_eq!(failed(output), None, "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_lines_are_answered(lines in prop::collection::vec("\\PC{0,40}", 1..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            for at in 0..lines.len() {
                let found = is_denied_row(&lines[..at], lines[at], &lines[at + 1..]);
                prop_assert!(!found || may_be_denied(lines[at]));
            }
        }
    }
}
