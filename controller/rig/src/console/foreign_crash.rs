//! Tells whether a line says in another language than English that a program or the machine has come to
//! its end. Pure.
//!
//! # Design
//! Each phrase names the event itself, as the C library and runtimes of that language print it: a fault
//! of memory, a fatal error, a failed assertion. So it counts wherever it stands, unless what
//! stands in front of it or behind it takes it back (`keine schwerwiegenden Fehler`, `致命的エラーなし`),
//! or the line is about a test.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::scan::searched_once;

/// One phrase a line, in small letters.
const PHRASES: &str = "\
ausnahmefehler
speicherzugriffsfehler
schutzverletzung
schwerwiegender fehler
schwerer fehler
fataler fehler
kritischer fehler
abgestürzt
zusicherung fehlgeschlagen
zusicherung verletzt
stapelüberlauf
erreur fatale
erreur critique
erreur irrécupérable
erreur de segmentation
violation d'accès
violation d’accès
exception non gérée
exception non interceptée
assertion échouée
assertion violée
débordement de pile
error fatal
error crítico
error irrecuperable
violación de segmento
violación de acceso
fallo de segmentación
excepción no controlada
excepción no capturada
aserción fallida
desbordamiento de pila
errore fatale
errore critico
errore irreversibile
errore di segmentazione
violazione di accesso
eccezione non gestita
asserzione fallita
overflow dello stack
sistema bloccato
erro fatal
erro crítico
erro irrecuperável
falha de segmentação
violação de acesso
exceção não tratada
asserção falhou
estouro de pilha
fatale fout
kritieke fout
onherstelbare fout
segmentatiefout
onafgehandelde uitzondering
segmenteringsfel
segmenteringsfeil
segmenteringsfejl
allvarligt fel
ohanterat undantag
fatal feil
fatal fejl
błąd krytyczny
krytyczny błąd
naruszenie ochrony
naruszenie segmentacji
nieobsłużony wyjątek
przepełnienie stosu
kritická chyba
fatální chyba
neoprávněný přístup do paměti
neošetřená výjimka
přetečení zásobníku
muistialueen ylitys
kohtalokas virhe
szegmenshiba
végzetes hiba
kritikus hiba
parçalama arızası
bölümleme hatası
ölümcül hata
yığın taşması
eroare fatală
eroare de segmentare
ошибка сегментирования
фатальная ошибка
критическая ошибка
неустранимая ошибка
аварийный останов
аварийная остановка
аварийное завершение
необработанное исключение
нарушение доступа
нарушение защиты памяти
переполнение стека
паника ядра
помилка сегментування
критична помилка
фатальна помилка
κρίσιμο σφάλμα
μοιραίο σφάλμα
σφάλμα κατάτμησης
断言失败
断言错误
致命错误
段错误
严重错误
系统崩溃
程序崩溃
死机
异常终止
非法指令
非法访问
堆栈溢出
栈溢出
内存访问错误
核心已转储
看门狗复位
未处理的异常
总线错误
斷言失敗
致命錯誤
嚴重錯誤
系統崩潰
異常終止
堆疊溢位
致命的
異常終了
強制終了
クラッシュしました
アサーション失敗
セグメンテーション違反
セグメンテーションフォ
不正なメモリ
不正命令
スタックオーバーフロー
スタックが破壊
例外が発生
ハードフォルト
メモリ保護違反
치명적
세그멘테이션
잘못된 메모리 접근
비정상 종료
어설션 실패
단언 실패
스택 오버플로
처리되지 않은 예외
커널 패닉";

/// What stands in front of a phrase and takes it back.
const DENIED_BEFORE: &str = r"(?i)(?:\b(?:0|kein\w*|ohne|no|non|not|nessun\w*|senza|sin|sem|aucun\w*|sans|pas d[e']|geen|zonder|brak|bez|žádn\w*|ei|ingen|inga|nincs|нет|без|немає|καμία)|没有|沒有|未发生|未發生|无|無) *$";
/// What stands behind a phrase and takes it back.
const DENIED_BEHIND: &str = r"^[^:=：,.]{0,16}?(?:[:=：] *0(?:[^\dxX]|$)|(?:[:=：] *)?(?:\b0 ?(?:次|个|個|件|回|건)|はありません|なし|無し|していません|없음|없습니다|нет\b|检测|测试))";
/// Words of a line about a test, or about what is set up.
const OF_TEST: &str = r"(?i)test(?:s|ing|et)?\b|тест|测试|測試|テスト|試験|시험|테스트|prüf|prueba|essai|prova|simul|provo";

static CRASHES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let phrases: Vec<String> = PHRASES.lines().map(regex::escape).collect();
    regex_of(&format!("(?i){}", phrases.join("|")))
});
static BEFORE: LazyLock<Option<Regex>> = LazyLock::new(|| regex_of(DENIED_BEFORE));
static BEHIND: LazyLock<Option<Regex>> = LazyLock::new(|| regex_of(DENIED_BEHIND));
static TESTED: LazyLock<Option<Regex>> = LazyLock::new(|| regex_of(OF_TEST));

fn regex_of(pattern: &str) -> Option<Regex> {
    Regex::builder().configure(searched_once()).build(pattern).ok()
}

/// Tells whether a line says so.
pub(super) fn tells_foreign_crash(line: &str) -> bool {
    let matches =
        |regex: &LazyLock<Option<Regex>>, text| regex.as_ref().is_some_and(|r| r.is_match(text));
    let Some(found) = CRASHES.as_ref().and_then(|crashes| crashes.find(line)) else {
        return false;
    };
    let (front, behind) = (&line[..found.start()], &line[found.end()..]);
    !matches(&BEFORE, front) && !matches(&BEHIND, behind) && !matches(&TESTED, line)
}

/// Returns an expression, of bytes, for such lines.
pub(super) fn hints() -> String {
    let spellings = PHRASES
        .lines()
        .flat_map(|phrase| [phrase.to_owned(), phrase.to_uppercase(), sentence_case(phrase)]);
    let bytes = |text: String| -> String {
        let plain = |b: u8| b.is_ascii_alphabetic() || b == b' ';
        text.bytes()
            .map(|b| if plain(b) { char::from(b).to_string() } else { format!(r"\x{b:02x}") })
            .collect()
    };
    let mut spellings: Vec<String> = spellings.map(bytes).collect();
    spellings.sort();
    spellings.dedup();
    spellings.join("|")
}

fn sentence_case(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::super::crash_evidence::{alarm_candidate, tells_alarm};
    use super::super::is_suspicious;
    use super::*;

    #[test]
    fn each_phrase_is_a_crash_and_is_searched_for() {
        for phrase in PHRASES.lines() {
            let capitals = phrase.to_uppercase();
            let capitals = if capitals.to_lowercase() == phrase { &capitals } else { phrase };
            let (stamped, sentence) =
                (format!("E (12) main: {phrase}: 0x20000000"), sentence_case(phrase));
            for line in [&stamped, capitals, &sentence] {
                assert!(tells_foreign_crash(line), "{line}");
                assert!(is_suspicious(line) && tells_alarm(line), "{line}");
                assert!(alarm_candidate(line.as_bytes()).is_some(), "not searched: {line}");
            }
        }
    }

    #[test]
    fn the_name_of_a_file_is_no_test() {
        assert!(tells_foreign_crash("断言失败: test_ring.c:77"));
    }

    #[test]
    fn what_is_denied_or_tested_is_none() {
        for line in [
            "kein schwerwiegender Fehler",
            "Selbsttest: Ausnahmefehler wird abgefangen",
            "fataler Fehler: 0",
            "致命的エラーなし",
            "致命的なエラーはありません",
            "没有致命错误",
            "致命错误: 0",
            "非法访问 0 次",
            "TCP セグメンテーション オフロード: 有効",
            "自检完成，系统停止",
            "看门狗复位测试",
            "치명적 오류 없음",
            "критическая ошибка: нет",
            "aucune erreur fatale",
            "nessun errore fatale",
            "sin error fatal",
        ] {
            assert!(!tells_foreign_crash(line), "{line}");
        }
    }
}
