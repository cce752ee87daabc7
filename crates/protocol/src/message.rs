//! The `BenchmarkMessage` of the rpcx-benchmark family and its reply.

use crate::hello::BenchmarkMessage;

/// The value of every string field: 54 bytes of UTF-8, as in rpcx-benchmark.
const TEXT: &str = "许多往事在眼前一幕一幕，变的那麼模糊";

/// The value of every number field.
const NUMBER: i32 = 100_000;

/// Encoded length of the message of [`benchmark`], in bytes.
pub const LENGTH: usize = 581;

/// Returns the message to send: all fields but `field5` are set, as in rpcx-benchmark.
pub fn benchmark() -> BenchmarkMessage {
    let text = || TEXT.to_owned();
    BenchmarkMessage {
        field1: text(),
        field2: NUMBER,
        field3: NUMBER,
        field4: Some(text()),
        field5: Vec::new(),
        field6: Some(NUMBER),
        field7: Some(text()),
        field9: Some(text()),
        field12: Some(true),
        field13: Some(true),
        field14: Some(true),
        field16: Some(NUMBER),
        field17: Some(true),
        field18: Some(text()),
        field22: Some(NUMBER.into()),
        field23: Some(NUMBER),
        field24: Some(true),
        field25: Some(NUMBER),
        field29: Some(NUMBER),
        field30: Some(true),
        field59: Some(true),
        field60: Some(NUMBER),
        field67: Some(NUMBER),
        field68: Some(NUMBER),
        field78: Some(true),
        field80: Some(true),
        field81: Some(true),
        field100: Some(NUMBER),
        field101: Some(NUMBER),
        field102: Some(text()),
        field103: Some(text()),
        field104: Some(NUMBER),
        field128: Some(NUMBER),
        field129: Some(text()),
        field130: Some(NUMBER),
        field131: Some(NUMBER),
        field150: Some(NUMBER),
        field271: Some(NUMBER),
        field272: Some(NUMBER),
        field280: Some(NUMBER),
    }
}

/// Returns the reply of `pb.Hello/Say`, and of a frame with [`crate::frame::Reply::Message`]: the
/// request with `field1` = "OK" and `field2` = 100.
pub fn say(mut message: BenchmarkMessage) -> BenchmarkMessage {
    "OK".clone_into(&mut message.field1);
    message.field2 = 100;
    message
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn the_message_has_the_length_of_rpcx_benchmarks() {
        assert_eq!(benchmark().encode_to_vec().len(), LENGTH);
    }

    #[test]
    fn the_reply_says_ok() {
        let reply = say(benchmark());
        assert_eq!((reply.field1.as_str(), reply.field2), ("OK", 100));
        assert_eq!(
            BenchmarkMessage {
                field1: TEXT.to_owned(),
                field2: NUMBER,
                ..reply
            },
            benchmark()
        );
    }
}
