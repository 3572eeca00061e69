//! Names of things in a question: chips, peripherals, registers, functions, error codes, files.

use std::collections::BTreeSet;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// A chip: `STM32F405`.
    Chip,
    /// A peripheral: `uart0`.
    Peripheral,
    /// A register: `CFSR`.
    Register,
    /// A function: `ring_push()`.
    Function,
    /// An error code: `-EINVAL`, `ETIMEDOUT`.
    ErrorCode,
    /// A file: `src/ring.c`.
    File,
}

/// A name in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Entity {
    /// What it stands for.
    pub kind: EntityKind,
    /// The name as it is written.
    pub name: String,
}

/// Beginnings of part numbers, in capitals.
const CHIPS: &[&str] = &[
    "AM33", "AM62", "ATMEGA", "ATSAM", "BCM2", "EFM32", "EFR32", "ESP32", "GD32", "IMX", "LPC",
    "MIMXRT", "MKL", "MSP430", "NRF5", "NRF9", "R8A", "RA4", "RA6", "RK3", "RP2", "SAMD", "STM32",
    "STM8", "TMS570", "XMC",
];

/// Blocks of a chip; a number may follow.
const PERIPHERALS: &[&str] = &[
    "adc", "aes", "can", "crc", "dac", "dma", "dmamux", "emac", "eth", "exti", "fdcan", "flash",
    "fmc", "gpio", "gpt", "hash", "i2c", "i2s", "i3c", "iwdg", "lpuart", "mac", "mdio", "mmc",
    "mpu", "nvic", "otg", "pcie", "phy", "pio", "plic", "pwm", "qspi", "rcc", "rng", "rtc", "sai",
    "scb", "sdhci", "sdio", "sdmmc", "spi", "systick", "tim", "timer", "twi", "uart", "usart",
    "usb", "vic", "wdt", "wwdg", "xspi",
];

/// Registers that fault handlers print.
const REGISTERS: &[&str] = &[
    "ABFSR",
    "AFSR",
    "BFAR",
    "CFSR",
    "CONTROL",
    "CPSR",
    "DFSR",
    "ELR",
    "ESR",
    "EXC_RETURN",
    "FAR",
    "HFSR",
    "ICSR",
    "MCAUSE",
    "MEPC",
    "MMFAR",
    "MMFSR",
    "MSTATUS",
    "MTVAL",
    "PRIMASK",
    "BASEPRI",
    "SHCSR",
    "SPSR",
    "UFSR",
    "VTOR",
    "BFSR",
    "XPSR",
];

/// Ends of names of files.
const FILES: &[&str] = &[
    "c", "cc", "cpp", "h", "hpp", "s", "S", "ld", "rs", "py", "dts", "dtsi", "overlay", "conf",
    "yaml", "toml", "cmake", "mk", "txt",
];

/// Most names of one text.
const MOST: usize = 256;

/// Returns the names in a text, each once.
pub fn entities(text: &str) -> Vec<Entity> {
    let mut found = BTreeSet::new();
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '+');
    let mut rest = text;
    while found.len() < MOST {
        let Some(start) = rest.find(inside) else { break };
        let word = &rest[start..];
        let end = word.find(|c| !inside(c)).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        rest = behind;
        let name = word.trim_matches(|c| matches!(c, '.' | '-' | '+' | '/'));
        if let Some(kind) = kind_of(name, behind.starts_with("()")) {
            found.insert(Entity { kind, name: name.to_owned() });
        }
    }
    found.into_iter().collect()
}

fn kind_of(name: &str, is_called: bool) -> Option<EntityKind> {
    if name.len() < 2 || name.len() > super::MAX_TOKEN * 4 {
        return None;
    }
    if is_called {
        return Some(EntityKind::Function);
    }
    let end = name.rsplit_once('.').map(|(_, end)| end);
    if end.is_some_and(|end| FILES.contains(&end)) {
        return Some(EntityKind::File);
    }
    let upper = name.to_ascii_uppercase();
    let has_digit = name.bytes().any(|b| b.is_ascii_digit());
    if has_digit && CHIPS.iter().any(|chip| upper.starts_with(chip)) {
        return Some(EntityKind::Chip);
    }
    if REGISTERS.contains(&upper.as_str()) {
        return Some(EntityKind::Register);
    }
    let code = name.strip_prefix('E').is_some_and(|rest| {
        rest.len() >= 3 && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    });
    if code {
        return Some(EntityKind::ErrorCode);
    }
    let lower = name.to_ascii_lowercase();
    let block = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    PERIPHERALS.contains(&block).then_some(EntityKind::Peripheral)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_things_are_found() {
        let text = "STM32F405: HardFault in ring_push() after DMA1 irq, CFSR=0x8200, -EINVAL; see src/ring.c.";
        let found: Vec<_> =
            entities(text).into_iter().map(|entity| (entity.kind, entity.name)).collect();
        let expected = [
            (EntityKind::Chip, "STM32F405"),
            (EntityKind::Peripheral, "DMA1"),
            (EntityKind::Register, "CFSR"),
            (EntityKind::Function, "ring_push"),
            (EntityKind::ErrorCode, "EINVAL"),
            (EntityKind::File, "src/ring.c"),
        ];
        assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn plain_words_are_no_names_and_a_flood_is_bounded() {
        assert_eq!(entities("the board hangs, every time it wakes up"), []);
        let flood: String = (0..10_000).map(|n| format!("f{n}() ")).collect();
        assert_eq!(entities(&flood).len(), MOST);
    }
}
