//! Consistent overhead byte stuffing: packets without zero bytes, ended by one.

/// Appends a packet and its end.
pub(crate) fn encode(packet: &[u8], out: &mut Vec<u8>) {
    // Each block begins with the distance to its end; a zero byte ends a block and goes.
    let mut code = out.len();
    out.push(0);
    for &byte in packet {
        if byte != 0 {
            out.push(byte);
        }
        let distance = out.len() - code;
        if byte == 0 || distance == 0xff {
            out[code] = distance as u8;
            code = out.len();
            out.push(0);
        }
    }
    out[code] = (out.len() - code) as u8;
    out.push(0);
}

/// Decodes a packet without its end; nothing if it is malformed.
pub(crate) fn decode(mut packet: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(packet.len());
    while let Some((&distance, rest)) = packet.split_first() {
        let len = usize::from(distance).checked_sub(1)?;
        let (block, rest) = rest.split_at_checked(len)?;
        out.extend_from_slice(block);
        if distance != 0xff && !rest.is_empty() {
            out.push(0);
        }
        packet = rest;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(packet, &mut out);
        out
    }

    #[test]
    fn known_packets() {
        assert_eq!(encoded(&[]), [1, 0]);
        assert_eq!(encoded(&[0]), [1, 1, 0]);
        assert_eq!(encoded(&[1, 0, 2]), [2, 1, 2, 2, 0]);
        assert_eq!(decode(&[3, 1]), None);
        assert_eq!(decode(&[0]), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(packet in proptest::collection::vec(0_u8..4, 0..600)) {
            let bytes = encoded(&packet);
            prop_assert_eq!(bytes.iter().position(|&b| b == 0), Some(bytes.len() - 1));
            prop_assert_eq!(decode(&bytes[..bytes.len() - 1]), Some(packet));
        }

        #[test]
        fn long_runs_decode(byte: u8, len in 0_usize..1200) {
            let bytes = encoded(&vec![byte; len]);
            prop_assert_eq!(decode(&bytes[..bytes.len() - 1]), Some(vec![byte; len]));
        }

        #[test]
        fn any_bytes_are_taken_without_harm(bytes: Vec<u8>) {
            decode(&bytes);
        }
    }
}
