//! Lines and fields of a text file, found by byte search; any bytes are legal input.

use std::path::Path;

use csv_core::ReadFieldResult;
use memchr::{memchr, memchr_iter};

use crate::data::{DataError, Malformation, bytes};

/// A field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) bytes: &'a [u8],
    /// The byte of the line at which it starts, from 1.
    pub(crate) column: u64,
}

/// Reads the text of a whole file, if it exists. It is UTF-8.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, DataError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = bytes::read(path)?;
    bytes::check_text(&text, path)?;
    Ok(Some(text))
}

/// Returns the lines that are not blank, with their numbers from 1, without line end (`\n` or
/// `\r\n`) and byte order mark.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let bytes = bytes::without_mark(bytes);
    let ends = memchr_iter(b'\n', bytes).chain([bytes.len()]);
    let starts = core::iter::once(0).chain(memchr_iter(b'\n', bytes).map(|end| end + 1));
    starts
        .zip(ends)
        .map(|(start, end)| {
            let line = &bytes[start..end];
            line.strip_suffix(b"\r").unwrap_or(line)
        })
        .zip(1..)
        .map(|(line, number)| (number, line))
        .filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
}

/// Splits a line into exactly `N` fields: at tabs if there is one, else at runs of spaces. The
/// error comes with the column it was found at.
pub(crate) fn fields<const N: usize>(line: &[u8]) -> Result<[Field<'_>; N], (u64, Malformation)> {
    let tabs = memchr(b'\t', line).is_some();
    let mut found = [Field { bytes: &line[..0], column: 1 }; N];
    let mut count = 0;
    let mut start = 0;
    while start <= line.len() {
        let end = memchr(if tabs { b'\t' } else { b' ' }, &line[start..])
            .map_or(line.len(), |at| start + at);
        let field = Field { bytes: &line[start..end], column: start as u64 + 1 };
        start = end + 1;
        match (field.bytes.is_empty(), tabs) {
            (true, false) => continue,
            (true, true) if count < N => return Err((field.column, Malformation::EmptyField)),
            _ => {}
        }
        let Some(place) = found.get_mut(count) else {
            return Err((field.column, Malformation::TooManyFields));
        };
        *place = field;
        count += 1;
    }
    if count < N {
        Err((line.len() as u64 + 1, Malformation::TooFewFields(count)))
    } else {
        Ok(found)
    }
}

/// Splits a line of CSV: nothing separates within quotes, which are left out.
pub(crate) fn csv_fields(line: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut parser = csv_core::ReaderBuilder::new().delimiter(separator).build();
    let (mut rest, mut fields, mut field, mut len) = (line, Vec::new(), vec![0; line.len()], 0);
    loop {
        let (result, read, written) = parser.read_field(rest, &mut field[len..]);
        (rest, len) = (&rest[read..], len + written);
        match result {
            ReadFieldResult::Field { record_end } => {
                fields.push(field[..len].to_vec());
                len = 0;
                if record_end {
                    return fields;
                }
            }
            ReadFieldResult::InputEmpty => {}
            // A field is never longer than its line.
            ReadFieldResult::End | ReadFieldResult::OutputFull => return fields,
        }
    }
}

/// Parses the decimal id in a field.
pub(crate) fn id(field: Field<'_>) -> Result<u32, (u64, Malformation)> {
    if field.bytes.is_empty() || !field.bytes.iter().all(u8::is_ascii_digit) {
        return Err((field.column, Malformation::NotAnInteger));
    }
    let digit =
        |id: Option<u32>, byte: &u8| id?.checked_mul(10)?.checked_add(u32::from(byte - b'0'));
    field.bytes.iter().fold(Some(0), digit).ok_or((field.column, Malformation::IdOutOfRange))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &[u8]) -> Result<[&[u8]; 3], (u64, Malformation)> {
        fields::<3>(line).map(|fields| fields.map(|field| field.bytes))
    }

    #[test]
    fn lines_end_with_newline_or_file_and_blank_ones_count_but_do_not_show() {
        let text = b"\xef\xbb\xbfa\r\n\n \t\nb";
        assert_eq!(lines(text).collect::<Vec<_>>(), [(1, b"a".as_slice()), (4, b"b")]);
        assert_eq!(lines(b"").count(), 0);
        assert_eq!(lines(b"a\n").count(), 1);
    }

    #[test]
    fn tabs_separate_names_with_spaces_and_spaces_separate_otherwise() {
        assert_eq!(texts(b"a b\tr\tc"), Ok([b"a b".as_slice(), b"r", b"c"]));
        assert_eq!(texts(b"  a   r c "), Ok([b"a".as_slice(), b"r", b"c"]));
        assert_eq!(fields::<3>(b"ab r c").expect("fine").map(|field| field.column), [1, 4, 6]);
    }

    #[test]
    fn wrong_numbers_of_fields_name_the_column() {
        assert_eq!(texts(b"a r"), Err((4, Malformation::TooFewFields(2))));
        assert_eq!(texts(b"a\tr\tc\td"), Err((7, Malformation::TooManyFields)));
        assert_eq!(texts(b"a r c d"), Err((7, Malformation::TooManyFields)));
        assert_eq!(texts(b"a\t\tc"), Err((3, Malformation::EmptyField)));
        assert_eq!(texts(b"a\tr\t"), Err((5, Malformation::EmptyField)));
    }

    #[test]
    fn nothing_separates_within_quotes() {
        assert_eq!(csv_fields(b"a,\"b,\"\"c\",,d", b','), [&b"a"[..], b"b,\"c", b"", b"d"]);
        assert_eq!(csv_fields(b"a;\"b;c", b';'), [&b"a"[..], b"b;c"]);
        assert!(csv_fields(b"", b',').is_empty());
    }

    #[test]
    fn ids_are_decimal_and_fit() {
        let id = |bytes: &'static [u8]| id(Field { bytes, column: 3 });
        assert_eq!(id(b"0042"), Ok(42));
        assert_eq!(id(b"-1"), Err((3, Malformation::NotAnInteger)));
        assert_eq!(id(b"4294967296"), Err((3, Malformation::IdOutOfRange)));
    }
}
