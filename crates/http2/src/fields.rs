//! The fields of a reply's head or trailers.

/// Names and values.
pub type List = Vec<(Vec<u8>, Vec<u8>)>;

/// The fields of a reply's head or trailers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    list: List,
    status: Option<u16>,
    content_length: Option<u64>,
}

impl Fields {
    /// Returns the fields of a list.
    ///
    /// # Errors
    /// Describes the rule of RFC 9113, sections 8.2 and 8.3, that the list breaks.
    pub(crate) fn new(list: List) -> Result<Self, &'static str> {
        let mut fields = Self::default();
        let mut is_regular = false;
        for (name, value) in &list {
            check_value(value)?;
            if name.first() == Some(&b':') {
                if is_regular {
                    return Err("a pseudo-header comes after a header");
                }
                if name != b":status" || fields.status.is_some() {
                    return Err("a pseudo-header is unknown or there twice");
                }
                fields.status = Some(status(value)?);
                continue;
            }
            is_regular = true;
            check_name(name)?;
            if name == b"content-length" {
                let length = decimal(value).ok_or("a content-length is not a number")?;
                if fields.content_length.is_some_and(|other| other != length) {
                    return Err("there are two content-lengths");
                }
                fields.content_length = Some(length);
            }
        }
        fields.list = list;
        Ok(fields)
    }

    /// Returns the value of the first field of this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut list = self.list.iter();
        let found = list.find(|(other, _)| other == name.as_bytes())?;
        Some(&found.1)
    }

    /// Returns the names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the status; `None` for trailers.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    pub(crate) fn content_length(&self) -> Option<u64> {
        self.content_length
    }
}

/// Headers of an HTTP/1.1 connection, which HTTP/2 does not allow.
const OF_CONNECTIONS: [&[u8]; 5] = [
    b"connection",
    b"proxy-connection",
    b"keep-alive",
    b"transfer-encoding",
    b"upgrade",
];

pub(crate) fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_allowed = |byte: &u8| matches!(byte, 0x21..=0x7E) && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.iter().all(is_allowed) || name.contains(&b':') {
        return Err("the name of a header is not valid");
    }
    if OF_CONNECTIONS.contains(&name) {
        return Err("a header is HTTP/1.1's and not allowed in HTTP/2");
    }
    Ok(())
}

pub(crate) fn check_value(value: &[u8]) -> Result<(), &'static str> {
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err("the value of a header is not valid");
    }
    Ok(())
}

fn status(value: &[u8]) -> Result<u16, &'static str> {
    match decimal(value) {
        Some(status @ 100..=999) if value.len() == 3 => Ok(status as u16),
        _ => Err("the status is not a number of three digits"),
    }
}

pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(list: &[(&str, &str)]) -> Result<Fields, &'static str> {
        let list = list.iter();
        let owned = list.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        Fields::new(owned.collect())
    }

    #[test]
    fn a_field_that_is_not_allowed_is_told() {
        for (list, says) in [
            (&[("a", "b"), (":status", "200")][..], "after a header"),
            (&[(":status", "200"), (":status", "200")], "twice"),
            (&[(":path", "/")], "unknown"),
            (&[(":status", "20")], "three digits"),
            (&[(":status", "+20")], "three digits"),
            (&[("Upper", "x")], "name"),
            (&[("", "x")], "name"),
            (&[("a b", "x")], "name"),
            (&[("a", "x\ny")], "value"),
            (&[("connection", "close")], "HTTP/1.1"),
            (&[("content-length", "-1")], "not a number"),
            (&[("content-length", "1"), ("content-length", "2")], "two"),
        ] {
            let error = fields(list).unwrap_err();
            assert!(error.contains(says), "{list:?}: {error}");
        }
    }

    #[test]
    fn fields_are_found_by_name() {
        let fields = fields(&[(":status", "204"), ("a", "b"), ("a", "c")]).unwrap();
        assert_eq!(fields.status(), Some(204));
        assert_eq!(fields.get("a"), Some(&b"b"[..]));
        assert_eq!(fields.get("b"), None);
        assert_eq!(fields.iter().count(), 3);
    }
}
