//! Values of a file that has more of them than a piece.

use std::{env, fs, process};

use super::*;
use crate::export::Table;
use crate::files;

/// So many that they are three pieces and some.
pub(crate) const LEN: usize = 3 * PIECE / 4 + 5;

/// A file of bytes, values and a checksum, which is gone once it is opened.
pub(crate) fn in_file(name: &str, change: impl FnOnce(&mut [u8])) -> Values {
    let path = env::temp_dir().join(format!("adapm-values-{name}-{}", process::id()));
    let before = b"head".to_vec();
    let mut sum = Sum::Crc(crc32c::crc32c(&before));
    let mut bytes = before.clone();
    bytes.extend(numbers().flat_map(f32::to_le_bytes));
    sum.add(&bytes[4..]);
    let end = bytes.len() as u64;
    bytes.extend(sum.bytes());
    change(&mut bytes);
    fs::write(&path, bytes).expect("the folder for temporary files can be written");
    let file = files::open(&path).expect("it was just written");
    fs::remove_file(&path).expect("it was just written");
    let before = Sum::Crc(crc32c::crc32c(&before));
    Values::in_file((file, &path), before, 4..end, end).expect("it is whole")
}

pub(crate) fn numbers() -> impl Iterator<Item = f32> {
    (0..LEN).map(|number| number as f32 - 1000.5)
}

#[test]
fn who_asks_in_order_holds_a_piece_at_a_time() {
    let (values, expected) = (in_file("ahead", |_| {}), numbers().collect::<Vec<_>>());
    let mut ahead = Ahead::new(&values);
    let (mut reads, mut begin) = (0, usize::MAX);
    for start in (0..LEN).step_by(7) {
        let range = start..LEN.min(start + 7);
        assert_eq!(ahead.get(range.clone()), Ok(&expected[range]));
        assert!(ahead.piece.len() <= PIECE / 4);
        reads += usize::from(ahead.first != begin);
        begin = ahead.first;
    }
    assert_eq!(reads, 4);
    // What is longer than a piece is read as it is asked for.
    assert_eq!(ahead.get(0..LEN), Ok(&expected[..]));
    assert_eq!(ahead.get(LEN..LEN), Ok(&[][..]));
}

#[test]
fn what_is_written_by_pieces_is_what_is_written_from_memory() {
    let memory: Values = numbers().collect::<Vec<_>>().into();
    let written = |values: &Values, width: usize| {
        let name = |row: usize| row.to_string().into_bytes().into();
        let table = Table::of_values("rows", [LEN / width, width], name, values, |values, row| {
            values.get(row * width..(row + 1) * width).map(<[f32]>::to_vec)
        });
        let (mut npy, mut lines) = (Vec::new(), Vec::new());
        table.write_npy(&mut npy).expect("memory takes all bytes");
        table.write_lines("", &mut lines).expect("memory takes all bytes");
        (npy, lines)
    };
    let file = in_file("written", |_| {});
    for width in [3, 100, PIECE] {
        assert!(written(&file, width) == written(&memory, width), "{width}");
    }
}

#[test]
fn a_share_is_read_though_another_is_damaged_and_a_check_reads_all() {
    let (damaged, odd) = (2 * PIECE + 100, 3 * PIECE);
    let file = in_file("share", |bytes| {
        bytes[4 + damaged] ^= 1;
        bytes[4 + odd..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let read = |first: usize, len| {
        let mut into = vec![0.0; len];
        file.read(first, &mut into).map(|()| into)
    };
    let expected: Vec<f32> = numbers().collect();
    assert_eq!(read(0, damaged / 4), Ok(expected[..damaged / 4].to_vec()));
    assert_eq!(read(odd / 4 + 1, 4), Ok(expected[odd / 4 + 1..][..4].to_vec()));
    let corrupt = |error: CheckpointError| matches!(error, CheckpointError::Corrupt { .. });
    assert!(read(odd / 4 - 3, 4).is_err_and(corrupt));
    assert!(file.check().is_err_and(corrupt) && file.clone().load().is_err_and(corrupt));
    // Damage in each piece, and in the checksum.
    for at in (4..4 + 4 * LEN + 4).step_by(PIECE / 3) {
        let file = in_file(&format!("damage-{at}"), |bytes| bytes[at] ^= 1);
        assert!(file.check().is_err_and(corrupt), "{at}");
    }
    assert_eq!(in_file("whole", |_| {}).check(), Ok(()));
}

#[test]
fn a_file_that_became_shorter_or_changed_is_told_by_its_name() {
    let path = env::temp_dir().join(format!("adapm-values-shorter-{}", process::id()));
    fs::write(&path, [0; 24]).expect("the folder for temporary files can be written");
    let file = files::open(&path).expect("it was just written");
    let values = Values::in_file((file, &path), Sum::Crc(0), 4..20, 20).expect("it is whole");
    fs::write(&path, [0; 10]).expect("it can be written again");
    let mut into = [0.0; 4];
    let error = values.read(0, &mut into).expect_err("it ends early");
    assert_eq!(error, CheckpointError::Truncated { path: path.clone() });
    assert_eq!(values.check(), Err(error));
    fs::remove_file(&path).expect("it is there");
}

#[test]
fn shares_of_a_file_have_the_checksum_of_all_of_it() {
    let damaged = |shares: usize, byte: Option<usize>| {
        let values = in_file("shares", |bytes| byte.into_iter().for_each(|at| bytes[at] ^= 1));
        let all = (0..shares).map(|share| values.sum_up_share(share, shares));
        let all = all.collect::<Result<Vec<_>, _>>().expect("it can be read");
        values.compare_shares(&all).is_err()
    };
    let values = in_file("alone", |_| {});
    assert_eq!(values.sum_up_share(0, 1), Ok(None), "it is compared at once, and not read again");
    assert!(in_file("alone-damaged", |bytes| bytes[9] ^= 1).sum_up_share(0, 1).is_err());
    for shares in [2, 3, 7] {
        assert!(!damaged(shares, None), "{shares}");
        for byte in (4..4 * LEN).step_by(LEN / 3) {
            assert!(damaged(shares, Some(byte)), "{shares}, byte {byte}");
        }
    }
    let values = in_file("none", |_| {});
    assert_eq!(values.compare_shares(&[None, Some((1, 4))]), Ok(()), "all of it is read");
}
