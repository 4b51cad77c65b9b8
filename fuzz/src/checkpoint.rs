//! Target `checkpoint`: any bytes are a checkpoint of one task at most, or are refused in one line;
//! what is read and written again is read as the same.
//!
//! The input is the file itself, or changes to a sound one, of today's form or of the older one,
//! with the checksum corrected or not. Not here: opening and replacing files.

use std::fmt::Debug;
use std::sync::OnceLock;

use adapm_tasks::kge::ModelKind;
use adapm_tasks::run::CheckpointError;
use adapm_tasks::testing::{
    checkpoint_bytes, checkpoint_of, factors_bytes, factors_of, graph_of, read_checkpoint,
    read_factors, read_word_vectors, vocabulary_of, word_vectors_bytes, word_vectors_of,
};
use adapm_verify::arb::Choices;

/// Maximum number of changes in one input.
const CHANGES_MAX: u64 = 8;

/// Reads the file that `bytes` choose. Returns true if it is a checkpoint.
pub fn checkpoint(bytes: &[u8]) -> bool {
    let Some((&form, rest)) = bytes.split_first() else { return false };
    let file = if form & 1 == 0 { changed(form, rest) } else { with_beginning(form, rest) };
    let readers = [
        is_sound(&file, read_checkpoint, checkpoint_bytes),
        is_sound(&file, read_factors, factors_bytes),
        is_sound(&file, read_word_vectors, word_vectors_bytes),
    ];
    let tasks = readers.iter().filter(|is_sound| **is_sound).count();
    assert!(tasks <= 1, "a file is of one task: {readers:?}");
    tasks == 1
}

/// Returns true if the reader of a task takes the file; checks that what it reads can be written,
/// and read again.
fn is_sound<C: Debug>(
    file: &[u8],
    read: fn(&[u8]) -> Result<C, CheckpointError>,
    bytes_of: fn(&C) -> Vec<u8>,
) -> bool {
    match read(file) {
        Ok(checkpoint) => {
            let written = bytes_of(&checkpoint);
            let again = read(&written).expect("what is written is read");
            assert_eq!(bytes_of(&again), written, "it is written as it was read");
            assert!(!format!("{checkpoint:?}").is_empty());
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

/// Returns a sound file with changes.
fn changed(form: u8, bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices::from_bytes(bytes);
    let sound = sound();
    let mut file = sound[usize::from(form >> 2) % sound.len()].clone();
    for _ in 0..choices.below(CHANGES_MAX) {
        let at = choices.below(file.len() as u64 + 1) as usize;
        match choices.below(4) {
            0 => file.truncate(at),
            1 => file.insert(at, choices.below(256) as u8),
            2 if at < file.len() => drop(file.remove(at)),
            _ if at < file.len() => file[at] = choices.below(256) as u8,
            _ => {}
        }
    }
    if form & 2 == 0 {
        sum_up(&mut file);
    }
    file
}

/// Returns the bytes as they are, or after the beginning of a sound file: its header, or what the
/// older files of a task have in common.
fn with_beginning(form: u8, bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    if form & 2 == 0 {
        let sound = sound();
        let other = &sound[usize::from(form >> 2) % sound.len()];
        let len = if is_old(other) {
            let name = other[BEFORE_NAME - 4..BEFORE_NAME].first_chunk().expect("four bytes");
            BEFORE_NAME + u32::from_le_bytes(*name) as usize
        } else {
            8 + u64::from_le_bytes(*other.first_chunk().expect("a length")) as usize
        };
        file.extend_from_slice(&other[..len]);
    }
    file.extend_from_slice(bytes);
    file
}

/// Returns small files of all tasks.
fn sound() -> &'static [Vec<u8>] {
    static SOUND: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let graph = graph_of(&[("train.txt", b"a r b\nb s c\n")]).expect("a small graph");
        let forms = [
            (ModelKind::Complex, 2, false),
            (ModelKind::Complex, 4, true),
            (ModelKind::Rescal, 2, false),
            (ModelKind::TransE, 3, false),
            (ModelKind::RotatE, 2, true),
        ];
        let mut files: Vec<_> = forms
            .into_iter()
            .map(|(kind, dim, reciprocal)| {
                checkpoint_bytes(&checkpoint_of(&graph, kind, dim, reciprocal, 0.5))
            })
            .collect();
        files.extend(
            [&[][..], &[3, u64::MAX]].map(|ids| factors_bytes(&factors_of(ids, 3, 2, 0.5))),
        );
        let words = vocabulary_of(b"a 2\nb 1\n\xff 1\n", 1).expect("a small vocabulary");
        files.push(word_vectors_bytes(&word_vectors_of(&words, 2, 0.5)));
        files.extend(OLD.map(<[u8]>::to_vec));
        files
    })
}

/// Returns true if these are bytes of the older form.
fn is_old(file: &[u8]) -> bool {
    file.starts_with(b"adapmckp")
}

/// Corrects the checksum of all bytes before it: the last four, CRC-32C, or of the older form the
/// last eight, FNV-1a.
fn sum_up(file: &mut [u8]) {
    if !is_old(file) {
        if let Some((content, sum)) = file.split_last_chunk_mut() {
            *sum = crc32c::crc32c(content).to_le_bytes();
        }
        return;
    }
    let Some((content, sum)) = file.split_last_chunk_mut::<8>() else { return };
    let fnv = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    *sum = fnv.to_le_bytes();
}

/// Files of the older form.
const OLD: [&[u8]; 3] = [
    include_bytes!("../../adapm-tasks/tests/cli/old/kge.adapm"),
    include_bytes!("../../adapm-tasks/tests/cli/old/mf.adapm"),
    include_bytes!("../../adapm-tasks/tests/cli/old/wv.adapm"),
];

/// Bytes of magic, version, and the length of the task's name after them.
const BEFORE_NAME: usize = 8 + 4 + 4;
