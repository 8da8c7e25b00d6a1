//! The MD5 digests with which SQS lets a sender check what arrived ("Calculating the MD5 message digest for message
//! attributes" in its developer guide), and the SHA-256 with which it deduplicates by content. Not a security measure.

use std::collections::BTreeMap;

use md5::{Digest, Md5};
use sha2::Sha256;

use crate::message::{AttributeValue, MessageAttribute};

const TRANSPORT_TEXT: u8 = 1;
const TRANSPORT_BINARY: u8 = 2;
const TRACE_HEADER: &str = "AWSTraceHeader";

/// Returns the MD5 of a text in hexadecimal digits.
pub fn text_md5(text: &str) -> String {
    hexadecimal(&Md5::digest(text.as_bytes()))
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn text_sha256(text: &str) -> String {
    hexadecimal(&Sha256::digest(text.as_bytes()))
}

/// Returns the MD5 of message attributes in hexadecimal digits: over name, type, kind and value of each, by name.
/// `None` if there are none.
pub fn attributes_md5<'a, I>(attributes: I) -> Option<String>
where
    I: IntoIterator<Item = (&'a String, &'a MessageAttribute)>,
{
    let sorted: BTreeMap<&String, &MessageAttribute> = attributes.into_iter().collect();
    if sorted.is_empty() {
        return None;
    }
    let mut digest = Md5::new();
    for (name, attribute) in sorted {
        part(&mut digest, name.as_bytes());
        part(&mut digest, attribute.data_type.as_bytes());
        match &attribute.value {
            AttributeValue::Text(text) => {
                digest.update([TRANSPORT_TEXT]);
                part(&mut digest, text.as_bytes());
            }
            AttributeValue::Binary(bytes) => {
                digest.update([TRANSPORT_BINARY]);
                part(&mut digest, bytes);
            }
        }
    }
    Some(hexadecimal(&digest.finalize()))
}

/// Returns the MD5 of the system attributes, of which a sender can set only `AWSTraceHeader`.
pub fn trace_header_md5(trace_header: &str) -> String {
    let mut digest = Md5::new();
    part(&mut digest, TRACE_HEADER.as_bytes());
    part(&mut digest, b"String");
    digest.update([TRANSPORT_TEXT]);
    part(&mut digest, trace_header.as_bytes());
    hexadecimal(&digest.finalize())
}

fn part(digest: &mut Md5, bytes: &[u8]) {
    // No part is longer than a message, which is far below 4 GiB.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    digest.update(length.to_be_bytes());
    digest.update(bytes);
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(data_type: &str, value: &str) -> MessageAttribute {
        MessageAttribute { data_type: data_type.into(), value: AttributeValue::Text(value.into()) }
    }

    #[test]
    fn a_text_has_the_md5_of_its_bytes() {
        assert_eq!(text_md5("Hello world!"), "86fb269d190d2c85f6e0468ceca42a20");
    }

    // The example of FIPS 180-2.
    #[test]
    fn a_text_has_the_sha_256_of_its_bytes() {
        assert_eq!(text_sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    // The expected bytes are the developer guide's algorithm, written out by hand.
    #[test]
    fn attributes_are_digested_by_name_with_their_types() {
        let attributes = [
            ("b".to_owned(), text("Number", "1")),
            (
                "a".to_owned(),
                MessageAttribute { data_type: "Binary".into(), value: AttributeValue::Binary(vec![0, 255]) },
            ),
        ];
        let digest = attributes_md5(attributes.iter().map(|(name, attribute)| (name, attribute)));
        let by_hand = b"\0\0\0\x01a\0\0\0\x06Binary\x02\0\0\0\x02\x00\xff\0\0\0\x01b\0\0\0\x06Number\x01\0\0\0\x011";
        assert_eq!(digest, Some(hexadecimal(&Md5::digest(by_hand))));
    }

    // Values that AWS returned, as the tests of moto pin them.
    #[test]
    fn a_number_is_digested_as_on_aws() {
        for (value, expected) in [
            ("1493147359900", "235c5c510d26fb653d073faed50ae77c"),
            ("1493147359901", "994258b45346a2cc3f9cbb611aa7af30"),
        ] {
            let attributes = BTreeMap::from([("timestamp".to_owned(), text("Number", value))]);
            assert_eq!(attributes_md5(&attributes).as_deref(), Some(expected));
        }
    }

    #[test]
    fn no_attributes_have_no_digest() {
        assert_eq!(attributes_md5(&BTreeMap::new()), None);
    }

    #[test]
    fn the_trace_header_is_digested_like_an_attribute_of_its_name() {
        let attributes = BTreeMap::from([(TRACE_HEADER.to_owned(), text("String", "Root=1-5-a"))]);
        assert_eq!(Some(trace_header_md5("Root=1-5-a")), attributes_md5(&attributes));
    }
}
