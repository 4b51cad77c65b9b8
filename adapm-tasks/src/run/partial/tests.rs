//! Files of both forms: whole, cut, changed, compressed.

use std::env;
use std::fs;
use std::io::Write as _;
use std::process;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::data::names::Names;
use crate::run::file::Writer;
use crate::run::tensors::Draft;

/// A head of so many names.
#[derive(Debug, PartialEq)]
struct List(usize);

impl Head for List {
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault> {
        let head: usize = parts.head()?;
        let names = parts.names("values")?.ok_or(Fault::Corrupt)?;
        if names.len() == head { Ok(Self(head)) } else { Err(Fault::Corrupt) }
    }

    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let names = reader.count()?;
        (0..names).try_for_each(|_| reader.text().map(drop))?;
        Ok(Self(names as usize))
    }

    fn tensors(&self) -> Option<Vec<Tensor>> {
        Some(vec![Tensor::new("values", 1, 3), Tensor::new("rest", 1, 1)])
    }
}

const VALUES: [f32; 4] = [0.5, -2.0, 3.0, 4.0];

/// Returns a file of either form with a head of so many names.
fn written(is_old: bool, names: usize) -> Vec<u8> {
    let name = |name: usize| format!("name {name}");
    let write = || {
        if is_old {
            let mut writer = Writer::new(b"count", Vec::new())?;
            writer.count(names as u64)?;
            (0..names).try_for_each(|at| writer.text(name(at).as_bytes()))?;
            return writer.values(&VALUES);
        }
        let mut list = Names::default();
        (0..names).for_each(|at| list.push(name(at).as_bytes()));
        let draft = Draft::new("count", &names)?.words("odd", &[7; 3]).names("values", &list);
        let tensors = List(names).tensors().unwrap_or_default();
        draft.write(&tensors, &VALUES.to_vec().into(), Vec::new())
    };
    write().expect("memory takes all bytes")
}

/// Opens a file of these bytes.
fn opened(name: &str, bytes: &[u8]) -> Result<(List, Values), CheckpointError> {
    let path = env::temp_dir().join(format!("adapm-partial-{name}-{}", process::id()));
    fs::write(&path, bytes).expect("the folder for temporary files can be written");
    let opened = open(&path, "count");
    fs::remove_file(&path).expect("it was just written");
    opened
}

fn read(values: &Values, first: usize, count: usize) -> Result<Vec<f32>, CheckpointError> {
    let mut into = vec![0.0; count];
    values.read(first, &mut into).map(|()| into)
}

#[test]
fn values_are_read_at_any_place_whatever_the_length_of_the_head() {
    let files =
        [0, 1, 10_000, 50_000].into_iter().flat_map(|names| [(true, names), (false, names)]);
    for (is_old, names) in files {
        let bytes = written(is_old, names);
        let (head, values) = opened("any", &bytes).expect("it is whole");
        assert_eq!((head, values.len(), values.in_memory()), (List(names), 4, None));
        assert_eq!(read(&values, 2, 2), Ok(vec![3.0, 4.0]));
        assert_eq!(read(&values, 0, 3), Ok(vec![0.5, -2.0, 3.0]));
        assert_eq!(values.check(), Ok(()));
        assert_eq!(values, VALUES.to_vec().into());
        let loaded = values.clone().load().expect("it is whole");
        assert_eq!(loaded.in_memory(), Some(VALUES.as_slice()));
        assert_eq!(loaded.first(2).in_memory(), Some(&VALUES[..2]));
        assert_eq!(loaded.digest(), values.digest());
        let path = env::temp_dir().join(format!("adapm-inspected-{}", process::id()));
        fs::write(&path, &bytes).expect("the folder for temporary files can be written");
        let inspected = inspect(&path).expect("it is whole");
        assert_eq!((&*inspected.task, inspected.bytes), ("count", bytes.len() as u64));
        assert_eq!(inspected.tensors.len(), if is_old { 0 } else { 2 });
        fs::remove_file(&path).expect("it was just written");
        let (_, values) = parse::<List>(&bytes, Path::new("file"), "count").expect("it is whole");
        assert_eq!((values.in_memory(), values.digest()), (Some(&VALUES[..]), loaded.digest()));
    }
}

#[test]
fn tensors_are_those_of_the_head_in_its_order() {
    let read = |tensors: &[Tensor]| {
        let list = Names::default();
        let draft = Draft::new("count", &0_usize)?.names("values", &list);
        let file = draft.write(tensors, &VALUES.to_vec().into(), Vec::new())?;
        Ok(parse::<List>(&file, Path::new("file"), "count").map(|(list, _)| list))
    };
    let tensors =
        |names: [(&'static str, usize); 2]| names.map(|(name, len)| Tensor::new(name, 1, len));
    let file = |names| read(&tensors(names)).map_err(|error: io::Error| error.to_string());
    let corrupt = || CheckpointError::Corrupt { path: "file".into() };
    assert_eq!(file([("values", 3), ("rest", 1)]), Ok(Ok(List(0))));
    assert_eq!(file([("rest", 1), ("values", 3)]), Ok(Err(corrupt())));
    assert_eq!(file([("values", 2), ("rest", 2)]), Ok(Err(corrupt())));
    // What cannot be read is not written.
    for (names, why) in [
        ([("values", 3), ("values", 1)], "two tensors have one name"),
        ([("values", 3), ("__metadata__", 1)], "a name of adapm"),
        ([("values", 3), ("rest", 2)], "fewer values than tensors"),
        ([("values", 2), ("rest", 1)], "more values than tensors"),
    ] {
        let refused = file(names).expect_err("it cannot be written");
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_file_says_whose_it_is_even_if_it_is_cut_or_broken() {
    let error = |bytes: &[u8]| {
        let read = parse::<List>(bytes, Path::new("file"), "count");
        read.expect_err("it is not whole").to_string()
    };
    let whole = written(false, 3);
    assert_eq!(error(&whole[..100]), "file ends early; save it again");
    let mut broken = whole.clone();
    broken[60] = b'{';
    assert_eq!(error(&broken), "file is damaged; save it again");
    let foreign = "file is no checkpoint of adapm; give a file written by --save";
    assert_eq!(error(b"\x02\0\0\0\0\0\0\0{}"), foreign);
    // A header that no model has would take a hundred times as much memory.
    let header = (2_u64 << 20).to_le_bytes();
    assert_eq!(error(&[&header[..], &vec![b' '; 2 << 20]].concat()), foreign);
}

#[test]
fn gzip_is_read_whole() {
    for is_old in [true, false] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&written(is_old, 3)).expect("memory takes every byte");
        let bytes = encoder.finish().expect("memory takes every byte");
        let (head, values) = opened("gzip", &bytes).expect("it is whole");
        assert_eq!((head, values.in_memory()), (List(3), Some(&VALUES[..])));
        assert_eq!((read(&values, 1, 2), values.check()), (Ok(vec![-2.0, 3.0]), Ok(())));
        let (_, plain) = opened("plain", &written(is_old, 3)).expect("it is whole");
        assert_eq!(values.digest(), plain.digest());
    }
}

#[test]
fn a_file_of_another_length_is_refused_when_it_is_opened() {
    for whole in [written(true, 5), written(false, 5)] {
        for len in 0..whole.len() {
            let cut = &whole[..len];
            assert!(opened("cut", cut).is_err(), "cut at {len}");
            assert!(parse::<List>(cut, Path::new("cut"), "count").is_err(), "cut at {len}");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(matches!(opened("long", &longer), Err(CheckpointError::Corrupt { .. })));
    }
}

#[test]
fn damage_anywhere_is_seen_by_the_checksum_and_told_with_the_name_of_the_file() {
    let files = [written(true, 5), written(false, 5)];
    let places = files.iter().flat_map(|file| (0..file.len()).map(move |at| (file, at)));
    for (whole, at) in places {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        let whole = parse::<List>(&changed, Path::new("file"), "count");
        assert!(whole.is_err(), "changed at {at}");
        let path = env::temp_dir().join(format!("adapm-inspect-{}", process::id()));
        fs::write(&path, &changed).expect("the folder for temporary files can be written");
        assert!(inspect(&path).is_err(), "changed at {at}");
        fs::remove_file(&path).expect("it was just written");
        let checked = opened("damage", &changed).and_then(|(_, values)| values.check());
        let error = checked.expect_err("it is damaged").to_string();
        assert!(error.contains("adapm-partial-damage"), "changed at {at}: {error}");
        let loaded = opened("damage", &changed).and_then(|(_, values)| values.load());
        assert_eq!(loaded.expect_err("it is damaged").to_string(), error);
    }
}

#[test]
fn a_number_that_is_not_finite_is_seen_where_it_is_read() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut bytes = written(true, 1);
        let at = bytes.len() - 8 - 4;
        bytes[at..at + 4].copy_from_slice(&odd.to_le_bytes());
        let (_, values) = opened("odd", &bytes).expect("the length is right");
        assert!(read(&values, 0, 3).is_ok());
        assert!(matches!(read(&values, 2, 2), Err(CheckpointError::Corrupt { .. })));
        assert!(values != values.clone(), "what cannot be read is equal to nothing");
    }
}

#[test]
fn numbers_of_a_whole_file_are_finite_even_if_its_checksum_is_right() {
    let mut odd = VALUES;
    odd[1] = f32::NAN;
    let list = Names::default();
    let draft = Draft::new("count", &0_usize).expect("a number").names("values", &list);
    let tensors = List(0).tensors().expect("two");
    let bytes = draft.write(&tensors, &odd.to_vec().into(), Vec::new()).expect("memory takes it");
    let (_, values) = opened("nan", &bytes).expect("the head is whole");
    let corrupt = |outcome: Result<(), CheckpointError>| {
        matches!(outcome, Err(CheckpointError::Corrupt { .. }))
    };
    assert!(corrupt(values.check()) && corrupt(values.load().map(drop)));
    assert!(corrupt(parse::<List>(&bytes, Path::new("file"), "count").map(drop)));
}
