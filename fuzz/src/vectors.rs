//! Target `vectors`: any file is vectors of words in one of word2vec's forms, or is refused in one
//! line; vectors survive writing and reading, in both forms.
//!
//! The first byte chooses the form, and whether the rest is the file or the content of a sound one.
//! Not here: opening files.

use adapm_tasks::testing::{vectors_bytes, vectors_of};
use adapm_tasks::wv::{Format, Vectors};

/// Reads `bytes` as a file. Returns true if it has vectors.
pub fn vectors(bytes: &[u8]) -> bool {
    let Some((&form, rest)) = bytes.split_first() else { return false };
    let format = if form & 1 == 0 { Format::Text } else { Format::Binary };
    let file = if form & 2 == 0 { sound(form, format, rest) } else { rest.to_vec() };
    match vectors_of(&file, format) {
        Ok(vectors) => {
            let count = vectors.words().len();
            assert_eq!(
                vectors.values().len(),
                count * vectors.dim(),
                "as many values as the header says"
            );
            assert!(vectors.values().iter().all(|value| value.is_finite()), "values are numbers");
            for format in [Format::Text, Format::Binary] {
                again(&vectors, format);
            }
            true
        }
        Err(error) => {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            false
        }
    }
}

fn again(vectors: &Vectors, format: Format) {
    let written = vectors_bytes(vectors, format);
    let again = vectors_of(&written, format).expect("what was read can be written");
    let bits = |vectors: &Vectors| {
        vectors.values().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(&again), bits(vectors), "values are read as they are written, {format}");
    assert_eq!(
        vectors_bytes(&again, format),
        written,
        "words are read as they are written, {format}"
    );
}

/// Returns a file whose header is mostly right: one vector per piece of `bytes`, one number per
/// byte.
fn sound(form: u8, format: Format, bytes: &[u8]) -> Vec<u8> {
    let dim = usize::from(form >> 2 & 3) + 1;
    let pieces = bytes.chunks_exact(dim);
    let claimed = pieces.len() + usize::from(form >> 5 == 7);
    let mut file = format!("{claimed} {dim}\n").into_bytes();
    for (number, piece) in pieces.enumerate() {
        file.extend(format!("w{number}").into_bytes());
        if format == Format::Binary {
            file.push(b' ');
        }
        for byte in piece {
            let value = f32::from(*byte) / 16.0 - 8.0;
            match format {
                Format::Text => file.extend(format!(" {value}").into_bytes()),
                _ => file.extend(value.to_le_bytes()),
            }
        }
        // gensim leaves the end of a line out.
        if form & 16 == 0 || format == Format::Text {
            file.push(b'\n');
        }
    }
    file
}
