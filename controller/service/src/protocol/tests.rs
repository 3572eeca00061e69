//! Messages as they travel.

use proptest::prelude::*;

use super::*;

#[test]
fn a_message_is_what_its_fields_say() {
    let of = |line: &str| Incoming::from_line(line.as_bytes());
    let Ok(Incoming::Request(request)) =
        of(r#"{"jsonrpc":"2.0","id":7,"method":"rpc.end","params":{"call":3}}"#)
    else {
        panic!("no request")
    };
    assert_eq!((request.id, request.method.as_str()), (7, "rpc.end"));
    assert_eq!(request.params::<EndCall>().unwrap(), EndCall { call: 3 });
    assert!(matches!(of(r#"{"jsonrpc":"2.0","method":"x"}"#), Ok(Incoming::Notification(_))));
    assert!(matches!(
        of(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        Ok(Incoming::Response(1, Ok(_)))
    ));
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    assert!(matches!(of(error), Ok(Incoming::Response(1, Err(_)))));
    for line in [
        "",
        "[]",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","more":1}"#,
    ] {
        assert!(of(line).is_err(), "{line}");
    }
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"rpc.end","params":{"call":3,"more":1}}"#;
    let Ok(Incoming::Request(request)) = Incoming::from_line(line) else { panic!("no request") };
    let error = request.params::<EndCall>().unwrap_err();
    assert_eq!(error.code, error_code::INVALID_PARAMS);
    assert!(error.message.contains("rpc.end") && error.message.contains("more"), "{error}");
}

#[tokio::test]
async fn lines_have_a_limit_and_an_end() {
    let mut lines = LineReader::new(&b"one\n\ntwo"[..]);
    assert_eq!(lines.next().await.unwrap().unwrap(), b"one");
    assert_eq!(lines.next().await.unwrap().unwrap(), b"");
    assert!(matches!(lines.next().await, Err(LineReadError::Torn)));
    let long = vec![b'x'; MOST_LINE + 1];
    let mut lines = LineReader::new(&long[..]);
    assert!(matches!(lines.next().await, Err(LineReadError::TooLong)));
}

proptest! {
    /// Whatever a peer sends is a message or an error.
    #[test]
    fn no_line_makes_the_reader_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(Incoming::from_line(&line));
    }
}
