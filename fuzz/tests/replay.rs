//! Runs every target on its committed corpus and on generated inputs, on any toolchain.
//!
//! A generated input depends only on the seed, the target and its own number. A finding is written
//! below `fuzz/artifacts`, and one printed line gives the command that reproduces it;
//! `ADAPM_FUZZ_INPUTS` and `ADAPM_FUZZ_SEED` ask for more inputs, or others.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use adapm_fuzz::{TARGETS, Target};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const INPUTS: u64 = 10_000;
const INPUT_BYTES_MAX: usize = 512;

/// Of so many generated inputs, at least one must be deep enough to test anything.
const SHALLOW_MAX: u64 = 20;

/// Maximum of all committed inputs together: about eighteen small ones for each of twenty-one
/// targets.
const CORPUS_FILES_MAX: usize = 378;
const CORPUS_BYTES_MAX: usize = 1 << 20;

macro_rules! replays {
    ($($target:ident),+ $(,)?) => {
        $(mod $target {
            #[test]
            fn corpus_finds_nothing() {
                super::corpus_finds_nothing(stringify!($target), adapm_fuzz::$target);
            }

            #[test]
            fn generated_inputs_find_nothing() {
                super::generated_inputs_find_nothing(stringify!($target), adapm_fuzz::$target);
            }
        })+
    };
}

adapm_fuzz::for_all_targets!(replays);

#[test]
fn every_target_has_an_entry_point_and_nothing_else_has_one() {
    let manifest = fs::read_to_string(folder("Cargo.toml")).expect("the manifest is readable");
    let readme = fs::read_to_string(folder("README.md")).expect("the page is readable");
    for (name, _) in TARGETS {
        let entry = format!("fuzz_targets/{name}.rs");
        assert!(folder(&entry).is_file(), "{entry} is missing");
        assert!(
            manifest.contains(&format!("path = \"{entry}\"")),
            "Cargo.toml: no [[bin]] with {entry}"
        );
        assert!(readme.contains(&format!("| `{name}` |")), "README.md: no row for {name}");
    }
    for kind in ["fuzz_targets", "corpus"] {
        let entries = fs::read_dir(folder(kind)).expect("the folder is there");
        for path in entries.flatten().map(|entry| entry.path()) {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            assert!(
                TARGETS.iter().any(|(name, _)| *name == stem),
                "{} is no target's",
                path.display()
            );
        }
    }
}

#[test]
fn the_corpus_is_small() {
    let inputs: Vec<Vec<u8>> =
        TARGETS.iter().flat_map(|(name, _)| corpus(name)).map(|(_, bytes)| bytes).collect();
    let bytes: usize = inputs.iter().map(Vec::len).sum();
    println!("{} inputs of {bytes} bytes", inputs.len());
    assert!(
        inputs.len() <= CORPUS_FILES_MAX && bytes <= CORPUS_BYTES_MAX,
        "pick fewer by coverage: README.md"
    );
}

fn corpus_finds_nothing(name: &str, target: Target) {
    let inputs = corpus(name);
    assert!(!inputs.is_empty(), "fuzz/corpus/{name} holds no input");
    for (path, bytes) in inputs {
        let finding = catch_unwind(|| target(&bytes)).is_err();
        assert!(!finding, "target {name} fails on {}", path.display());
    }
}

fn generated_inputs_find_nothing(name: &str, target: Target) {
    let inputs = number("ADAPM_FUZZ_INPUTS", INPUTS);
    let seed = number("ADAPM_FUZZ_SEED", 1);
    let corpus: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, bytes)| bytes).collect();
    let deep = (0..inputs)
        .filter(|&at| run(name, target, seed, at, &generate(name, seed, at, &corpus)))
        .count();
    println!("target {name}: {inputs} inputs of seed {seed}, {deep} deep");
    assert!(
        deep as u64 * SHALLOW_MAX >= inputs,
        "target {name} rejects nearly all: {deep} of {inputs} are deep"
    );
}

fn run(name: &str, target: Target, seed: u64, at: u64, bytes: &[u8]) -> bool {
    if let Ok(deep) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        return deep;
    }
    let artifacts = folder("artifacts").join(name);
    let path = artifacts.join(format!("seed-{seed}-input-{at}"));
    fs::create_dir_all(&artifacts)
        .and_then(|()| fs::write(&path, bytes))
        .expect("fuzz/artifacts is writable");
    panic!(
        "target {name} fails on input {at} of seed {seed}, kept as {}; again: \
         ADAPM_FUZZ_SEED={seed} ADAPM_FUZZ_INPUTS={} cargo test -p adapm-fuzz {name}::generated",
        path.display(),
        at + 1
    );
}

/// Generates an input: one half are random, the other are inputs of the corpus with a few changes.
fn generate(name: &str, seed: u64, at: u64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let salt =
        name.bytes().fold(seed, |salt, byte| salt.wrapping_mul(257).wrapping_add(u64::from(byte)));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(salt ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if at.is_multiple_of(2) || corpus.is_empty() {
        let mut bytes = vec![0; rng.random_range(0..=INPUT_BYTES_MAX)];
        rng.fill_bytes(&mut bytes);
        return bytes;
    }
    let mut bytes = corpus[rng.random_range(0..corpus.len())].clone();
    for _ in 0..rng.random_range(0..4) {
        change(&mut bytes, &mut rng, corpus);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, rng: &mut Xoshiro256PlusPlus, corpus: &[Vec<u8>]) {
    let at = rng.random_range(0..=bytes.len());
    match rng.random_range(0..5) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = rng.random(),
        2 => bytes.insert(at, rng.random()),
        3 => bytes.truncate(at),
        _ => {
            let other = &corpus[rng.random_range(0..corpus.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[rng.random_range(0..=other.len())..]);
        }
    }
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder("corpus").join(name)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read(&path).expect("a corpus file is readable")))
        .collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"))
}
