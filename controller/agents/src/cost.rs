//! What an answer costs: counted by the endpoint where that is plausible, estimated otherwise. Pure.

use serde::{Deserialize, Serialize};

use crate::endpoint::TokenPrices;

/// Bytes of text for one token, roughly: English and C have three to four.
const BYTES_PER_TOKEN: u64 = 4;

/// Bytes for one token at most. Only long runs of one character come near it.
const MAX_BYTES_PER_TOKEN: u64 = 16;

/// Tokens that an endpoint adds around a question: names of roles, its own instructions.
const FRAME_TOKENS: u64 = 1000;

/// By how much an answer may exceed its limit: some endpoints do not count what a model thinks.
const OVER_LIMIT: u64 = 4;

/// What models have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money in millionths of a US dollar.
    pub micro_usd: u64,
}

impl Usage {
    /// Returns both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// Returns no more of each than of the other.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.min(other.tokens),
            micro_usd: self.micro_usd.min(other.micro_usd),
        }
    }

    /// Returns what is left of it.
    #[must_use]
    pub fn without(self, used: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(used.tokens),
            micro_usd: self.micro_usd.saturating_sub(used.micro_usd),
        }
    }
}

/// Numbers of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Of the question.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

impl Tokens {
    /// Returns what they cost; parts of a millionth of a dollar count as one.
    pub fn usage(self, prices: TokenPrices) -> Usage {
        let cost = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let money = cost(self.input, prices.micro_usd_per_million_in)
            + cost(self.output, prices.micro_usd_per_million_out);
        Usage {
            tokens: self.input.saturating_add(self.output),
            micro_usd: u64::try_from(money.div_ceil(1_000_000)).unwrap_or(u64::MAX),
        }
    }
}

/// Estimates the tokens of a text.
pub fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Returns the tokens of an exchange, and a note where they are not what the endpoint says.
pub(crate) fn counted(
    reported: Option<Tokens>,
    question: usize,
    answer: usize,
    max_tokens: u32,
) -> (Tokens, Option<String>) {
    let estimated = Tokens { input: estimate(question), output: estimate(answer) };
    let Some(said) = reported else {
        return (estimated, Some("the endpoint reports no usage: it is estimated".to_owned()));
    };
    let least = |bytes: usize| bytes as u64 / MAX_BYTES_PER_TOKEN;
    // A token has at least a byte.
    let most_input = question as u64 + FRAME_TOKENS;
    let most_output = OVER_LIMIT * u64::from(max_tokens) + answer as u64;
    if (least(question)..=most_input).contains(&said.input)
        && (least(answer)..=most_output).contains(&said.output)
    {
        return (said, None);
    }
    let note = format!(
        "the endpoint reports {} tokens for {question} bytes and {} for {answer}: it is estimated",
        said.input, said.output
    );
    (estimated, Some(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plausible_numbers_count_and_others_are_estimated() {
        let tokens = |input, output| Tokens { input, output };
        for (reported, expected, noted) in [
            (Some(tokens(1000, 100)), tokens(1000, 100), false),
            (Some(tokens(250, 25)), tokens(250, 25), false),
            (Some(tokens(249, 25)), tokens(1000, 100), true),
            (Some(tokens(1000, 24)), tokens(1000, 100), true),
            (Some(tokens(0, 0)), tokens(1000, 100), true),
            (Some(tokens(5000, 8400)), tokens(5000, 8400), false),
            (Some(tokens(5001, 100)), tokens(1000, 100), true),
            (Some(tokens(1000, 8401)), tokens(1000, 100), true),
            (Some(tokens(u64::MAX, u64::MAX)), tokens(1000, 100), true),
            (None, tokens(1000, 100), true),
        ] {
            let (found, note) = counted(reported, 4000, 400, 2000);
            assert_eq!((found, note.is_some()), (expected, noted), "{reported:?}");
        }
    }

    #[test]
    fn money_is_rounded_up_and_does_not_overflow() {
        let prices = TokenPrices {
            micro_usd_per_million_in: 3_000_000,
            micro_usd_per_million_out: 15_000_000,
        };
        let usage = Tokens { input: 1000, output: 100 }.usage(prices);
        assert_eq!(usage, Usage { tokens: 1100, micro_usd: 4500 });
        let cheap = TokenPrices { micro_usd_per_million_in: 1, micro_usd_per_million_out: 0 };
        assert_eq!(Tokens { input: 1, output: 0 }.usage(cheap).micro_usd, 1);
        assert_eq!(Tokens { input: 1, output: 0 }.usage(TokenPrices::default()).micro_usd, 0);
        let most = Tokens { input: u64::MAX, output: u64::MAX }.usage(prices);
        assert_eq!(most, Usage { tokens: u64::MAX, micro_usd: u64::MAX });
    }
}
