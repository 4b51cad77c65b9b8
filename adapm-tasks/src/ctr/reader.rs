//! Reading clicks: a file, or a folder with several parts.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use crate::ctr::clicks::{Clicks, Origin};
use crate::ctr::encoder::{Dictionary, Encoder, Scale};
use crate::ctr::examples::{Feature, Findings, Gathered, HELD_FEATURES_MAX};
use crate::ctr::form::{Form, Line, Numeric, Schema};
use crate::ctr::head::Head;
use crate::data::bytes::HEAD_BYTES;
use crate::data::{ClickFault, DataError, Malformation, bytes};
use crate::run::{Digest, Split};

/// How files become examples.
///
/// Defaults to features of at least two examples of train, in a dictionary.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Encoding {
    /// Columns, if the files are tables.
    pub schema: Option<Schema>,
    /// What becomes of columns of numbers.
    pub numeric: Numeric,
    /// Examples of train in which a feature occurs at least to have a key of its own; 0 is 1.
    pub min_count: u64,
    /// Bits of a hash instead of a dictionary.
    pub hash_bits: Option<u32>,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { schema: None, numeric: Numeric::default(), min_count: 2, hash_bits: None }
    }
}

/// The files of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Examples to train on.
    pub train: PathBuf,
    /// Examples to select on; without, the last tenth of train that is not for test.
    pub valid: Option<PathBuf>,
    /// Examples to report on; without, the last seventh of train.
    pub test: Option<PathBuf>,
}

impl Files {
    /// Returns a file, or those of a folder: `train`, `valid` (or `validation`) and `test` with any
    /// ending, or with these words, or `data`, as endings (`adult.data`, `adult.test`). Each may be
    /// compressed by gzip.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read, or has no train.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        if !path.is_dir() {
            return Ok(Self { train: path.to_path_buf(), valid: None, test: None });
        }
        let entries = path.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(|error| bytes::failure(path, &error))?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.sort_unstable();
        let find = |words: &[&str]| {
            let is_it = |file: &&PathBuf| {
                let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
                let name = name.strip_suffix(".gz").unwrap_or(&name);
                let (first, last) = (name.split('.').next(), name.rsplit('.').next());
                words.iter().any(|word| first == Some(word) || last == Some(word))
            };
            files.iter().find(is_it).cloned()
        };
        let missing = || DataError::MissingClicks { folder: path.to_path_buf() };
        Ok(Self {
            train: find(&["train", "data"]).ok_or_else(missing)?,
            valid: find(&["valid", "validation"]),
            test: find(&["test"]),
        })
    }
}

impl Clicks {
    /// Reads clicks; the form of files is recognised.
    ///
    /// Files are read once. What they hold is kept in memory, or, from 4 million features on, in a
    /// temporary file; names of features are kept in memory, unless they are hashed.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, a malformed line (with file, line, column), a file
    /// without examples.
    pub fn load(files: &Files, encoding: &Encoding) -> Result<Self, DataError> {
        load(files, encoding, HELD_FEATURES_MAX)
    }

    /// Reads clicks for the model with this head: if they are those that it was trained on, the
    /// same parts; else of a folder the file of `split`, of a single file all examples, for
    /// `split`.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_for(files: &Files, head: &Head, split: Split) -> Result<Self, DataError> {
        let Head { encoder, trained_on, .. } = head;
        let lookup = encoder.lookup();
        let mut key = |field: usize, name: &[u8]| Ok(lookup.find(field, name));
        let found = read(files, open(&files.train)?, encoder, HELD_FEATURES_MAX, &mut key)?;
        let Read { gathered, ends, digest } = found;
        let [train, valid, test] = if digest == *trained_on {
            parts(ends, files)
        } else {
            let own = match split {
                Split::Valid => (files.valid.is_some(), ends[0]..ends[1]),
                Split::Test => (files.test.is_some(), ends[1]..ends[2]),
            };
            let is_single = files.valid.is_none() && files.test.is_none();
            let all = if is_single { 0..ends[0] } else { 0..0 };
            let part = if own.0 { own.1 } else { all };
            match split {
                Split::Valid => [0..0, part, 0..0],
                Split::Test => [0..0, 0..0, part],
            }
        };
        let scale = |numbers: &mut [f32]| Scale::apply(&encoder.numbers, numbers);
        let examples = gathered.finish(|_, _| {}, scale).map_err(|error| temporary(&error))?;
        let origin = Origin::Files(files.train.display().to_string());
        let (encoder, findings) = (encoder.clone(), Findings::default());
        let mut clicks = Self { examples, train, valid, test, encoder, origin, digest, findings };
        let rows = clicks.part(split);
        let features = rows.flat_map(|row| clicks.examples.features(row).iter());
        let shares = |feature: &&Feature| lookup.is_shared(feature.field as usize, feature.key);
        clicks.findings.keyless = features.filter(shares).count() as u64;
        Ok(clicks)
    }
}

/// [`Clicks::load`] with up to `held_max` features in memory.
fn load(files: &Files, encoding: &Encoding, held_max: usize) -> Result<Clicks, DataError> {
    let Encoding { schema, numeric, min_count, hash_bits } = encoding;
    let (numeric, hash_bits) = (*numeric, *hash_bits);
    let mut train = open(&files.train)?;
    let form = detect(&mut train, &files.train, schema.as_ref())?;
    let names = form.numbers(numeric);
    let numbers = names.into_iter().map(Scale::new).collect();
    let mut encoder = Encoder { form, numeric, hash_bits, fields: Vec::new(), numbers };
    let mut dictionary = Dictionary::new(hash_bits);
    let mut key = |field: usize, name: &[u8]| {
        dictionary.add(field, name).map(Some).ok_or(ClickFault::TooManyFeatures)
    };
    let Read { gathered, ends, digest } = read(files, train, &encoder, held_max, &mut key)?;
    let [train, valid, test] = parts(ends, files);
    let Encoder { form, fields, numbers, .. } = &mut encoder;
    let wanted = form.fields(numeric);
    let mut findings = Findings::default();
    let name = |field: usize| form.field(field, numeric);
    let rename = |starts: &[u64], all: &mut [Feature]| {
        (*fields, findings) = dictionary.settle(*min_count, wanted, (starts, all), train.end, name);
    };
    let scale = |all: &mut [f32]| {
        let of_train = &all[..train.end * numbers.len()];
        Scale::fit(numbers, of_train);
        Scale::apply(numbers, all);
    };
    let examples = gathered.finish(rename, scale).map_err(|error| temporary(&error))?;
    let origin = Origin::Files(format!("{} ({})", files.train.display(), encoder.form));
    Ok(Clicks { examples, train, valid, test, encoder, origin, digest, findings })
}

/// The examples of all files of a data set.
struct Read {
    gathered: Gathered,
    /// Examples up to the end of train, valid and test.
    ends: [usize; 3],
    /// Of their lines.
    digest: u64,
}

/// The key of a feature, by field and name; `None`: it has none, and is left out.
type KeyOf<'a> = dyn FnMut(usize, &[u8]) -> Result<Option<u32>, ClickFault> + 'a;

/// Reads all files, of which that of train is open.
fn read(
    files: &Files,
    train: Lines,
    encoder: &Encoder,
    held_max: usize,
    key: &mut KeyOf<'_>,
) -> Result<Read, DataError> {
    let mut gathered = Gathered::new(encoder.numbers.len(), held_max);
    let (mut ends, mut digest) = ([0; 3], Digest::new());
    let paths = [Some(&files.train), files.valid.as_ref(), files.test.as_ref()];
    let mut train = Some(train);
    for (path, end) in paths.into_iter().zip(&mut ends) {
        if let Some(path) = path {
            let before = gathered.len();
            let lines = train.take().map_or_else(|| open(path), Ok)?;
            read_file((lines, path), encoder, &mut gathered, &mut digest, key)?;
            if gathered.len() == before {
                return Err(DataError::NoClick { path: path.clone() });
            }
        }
        digest.word(gathered.len() as u64);
        *end = gathered.len();
    }
    Ok(Read { gathered, ends, digest: digest.sum() })
}

/// Reads the examples of a file, line by line.
fn read_file(
    file: (Lines, &Path),
    encoder: &Encoder,
    gathered: &mut Gathered,
    digest: &mut Digest,
    key: &mut KeyOf<'_>,
) -> Result<(), DataError> {
    let mut features = Vec::new();
    each(file, encoder, false, |text, line| {
        digest.bytes(text);
        features.clear();
        for (field, name, value) in line.features() {
            let key = key(field, name).map_err(|fault| (1, fault))?;
            features.extend(key.map(|key| Feature { key, field: field as u32, value }));
        }
        if gathered.len() >= EXAMPLES_MAX as usize {
            return Err((1, ClickFault::TooManyExamples(EXAMPLES_MAX)));
        }
        gathered.push(line.label, &features, &line.numbers);
        Ok(ControlFlow::Continue(()))
    })
}

/// Passes each example of a file for a model, as [`each`] does; they may lack labels.
pub(crate) fn each_to_predict(
    path: &Path,
    encoder: &Encoder,
    mut take: impl FnMut(&Line) -> ControlFlow<()>,
) -> Result<(), DataError> {
    each((open(path)?, path), encoder, true, |_, line| Ok(take(line)))
}

/// Passes each example of a file, as text and as what it says, until `take` breaks off.
fn each(
    file: (Lines, &Path),
    Encoder { form, numeric, .. }: &Encoder,
    may_lack_label: bool,
    mut take: impl FnMut(&[u8], &Line) -> Taken,
) -> Result<(), DataError> {
    let (mut places, mut line) = (None, Line::default());
    each_line(file, |text| {
        let places = match &places {
            Some(places) => places,
            None => {
                let (found, is_header) = form.places(text, may_lack_label)?;
                let places = &*places.insert(found);
                if is_header {
                    return Ok(ControlFlow::Continue(()));
                }
                places
            }
        };
        form.read(text, *numeric, places, &mut line)?;
        take(text, &line)
    })
}

/// Whether there is to be another line, or what is wrong with this one, and in which column.
type Taken = Result<ControlFlow<()>, (u64, ClickFault)>;

/// Passes each line that is not blank, without its end, until `take` breaks off.
fn each_line(
    (mut lines, path): (Lines, &Path),
    mut take: impl FnMut(&[u8]) -> Taken,
) -> Result<(), DataError> {
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let read = (&mut lines).take(LINE_MAX).read_until(b'\n', &mut text);
        if read.map_err(|error| bytes::failure(path, &error))? == 0 {
            return Ok(());
        }
        let is_whole = (text.len() as u64) < LINE_MAX || text.ends_with(b"\n");
        let content = text.strip_suffix(b"\n").unwrap_or(&text);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        // Tabs are columns that are empty.
        let taken = match content.iter().all(|byte| *byte == b' ') {
            _ if !is_whole => Err((1, ClickFault::LineTooLong)),
            true => Ok(ControlFlow::Continue(())),
            false => take(content),
        };
        let taken = taken.map_err(|(column, fault)| {
            let reason = Malformation::Click(fault);
            DataError::Malformed { path: path.to_path_buf(), line, column, reason }
        })?;
        if taken.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// A file that is read line by line.
type Lines = BufReader<bytes::Source>;

fn open(path: &Path) -> Result<Lines, DataError> {
    Ok(BufReader::with_capacity(HEAD_BYTES, bytes::open(path)?))
}

/// Determines the form of a file by its first line, of which nothing is taken: a pipe can be read
/// but once.
fn detect(lines: &mut Lines, path: &Path, schema: Option<&Schema>) -> Result<Form, DataError> {
    let head = lines.fill_buf().map_err(|error| bytes::failure(path, &error))?;
    let mut lines = (1..).zip(head.split(|byte| *byte == b'\n'));
    let first = lines.find(|(_, line)| !line.trim_ascii().is_empty());
    let (line, first) = first.ok_or_else(|| DataError::NoClick { path: path.to_path_buf() })?;
    Form::detect(first.trim_ascii_end(), schema).ok_or_else(|| {
        let columns = first.split(|byte| *byte == b'\t').count();
        DataError::UnknownClicks { path: path.to_path_buf(), line, columns }
    })
}

/// Returns the parts of examples whose files end there.
fn parts([train, valid, test]: [usize; 3], files: &Files) -> [Range<usize>; 3] {
    let of_test = if files.test.is_some() { valid..test } else { train - train / 7..train };
    let rest = if files.test.is_some() { train } else { of_test.start };
    let of_valid = if files.valid.is_some() { train..valid } else { rest - rest / 10..rest };
    let end = if files.valid.is_some() { rest } else { of_valid.start };
    [0..end, of_valid, of_test]
}

fn temporary(error: &io::Error) -> DataError {
    bytes::failure(&std::env::temp_dir(), error)
}

/// Examples that are supported: rows are numbers of 32 bits.
const EXAMPLES_MAX: u32 = u32::MAX;

/// Bytes of a line that are supported.
const LINE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::ctr::config::TrainConfig;

    fn schema() -> Encoding {
        let schema = Some("x:num,job:cat,y:label".parse().expect("a schema"));
        Encoding { schema, ..Encoding::default() }
    }

    fn table(rows: std::ops::Range<usize>) -> String {
        rows.map(|row| format!("{row},job {},{}\n", row % 5, row % 2)).collect()
    }

    fn folder(files: &[(&str, String)]) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("the folder is writable");
        }
        folder
    }

    #[test]
    fn a_file_is_divided_and_files_of_a_folder_are_parts() {
        let single = folder(&[("all.csv", table(0..700))]);
        let path = single.path().join("all.csv");
        let clicks = Clicks::load(&Files::of(&path).expect("a file"), &schema()).expect("a table");
        assert_eq!((clicks.train, clicks.valid, clicks.test), (0..540, 540..600, 600..700));
        let parts = [("a.data", table(0..30)), ("a.test", table(0..7)), ("VALID.csv", table(0..5))];
        let folder = folder(&parts);
        let files = Files::of(folder.path()).expect("parts");
        let clicks = Clicks::load(&files, &schema()).expect("tables");
        assert_eq!((clicks.train, clicks.valid, clicks.test), (0..30, 30..35, 35..42));
    }

    #[test]
    fn what_a_model_is_asked_has_the_same_keys_and_the_parts_of_its_training_data() {
        for hash_bits in [None, Some(8)] {
            let encoding = Encoding { hash_bits, ..schema() };
            let folder = folder(&[("all.csv", table(0..700)), ("new.csv", table(690..710))]);
            let files = |name| Files::of(&folder.path().join(name)).expect("a file");
            let clicks = Clicks::load(&files("all.csv"), &encoding).expect("a table");
            let load = |name| {
                let head = Head::of(&clicks, &TrainConfig::default());
                Clicks::load_for(&files(name), &head, Split::Test).expect("a table")
            };
            let same = load("all.csv");
            assert_eq!((same.train, same.valid, same.test), (0..540, 540..600, 600..700));
            for row in 0..700 {
                assert_eq!(same.examples.features(row), clicks.examples.features(row));
                assert_eq!(same.examples.label(row), clicks.examples.label(row));
            }
            // Numbers from 541 on are in other buckets than those of train.
            let keyless = |count| if hash_bits.is_some() { 0 } else { count };
            assert_eq!(same.findings.keyless, keyless(100));
            let new = load("new.csv");
            assert_eq!(new.findings.keyless, keyless(20));
            assert_eq!((new.train.len(), new.valid.len(), new.test), (0, 0, 0..20));
            for row in 0..10 {
                assert_eq!(new.examples.features(row), clicks.examples.features(690 + row));
            }
        }
    }

    /// What does not fit into memory is in a file: the same examples.
    #[test]
    fn examples_that_are_spilled_are_those_that_are_held() {
        let folder = folder(&[("all.csv", table(0..700))]);
        let files = Files::of(&folder.path().join("all.csv")).expect("a file");
        for numeric in [Numeric::Bucket, Numeric::Dense] {
            let encoding = Encoding { numeric, ..schema() };
            let held = load(&files, &encoding, HELD_FEATURES_MAX).expect("a table");
            let spilled = load(&files, &encoding, 100).expect("a table");
            let bytes = [&held, &spilled].map(|clicks| clicks.examples.spilled_bytes().is_some());
            assert_eq!(bytes, [false, true]);
            assert_eq!((&held.encoder, held.findings), (&spilled.encoder, spilled.findings));
            for row in 0..700 {
                assert_eq!(held.examples.features(row), spilled.examples.features(row));
                assert_eq!(held.examples.numbers(row), spilled.examples.numbers(row));
                assert_eq!(held.examples.label(row), spilled.examples.label(row));
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_once() {
        let folder = folder(&[]);
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("the folder is writable");
        let clicks = std::thread::scope(|scope| {
            scope.spawn(|| fs::write(&path, table(0..700)).expect("somebody reads"));
            Clicks::load(&Files::of(&path).expect("a file"), &schema()).expect("a table")
        });
        assert_eq!((clicks.train, clicks.valid, clicks.test), (0..540, 540..600, 600..700));
    }

    #[test]
    fn numbers_are_scaled_by_train() {
        let encoding = Encoding { numeric: Numeric::Dense, ..schema() };
        let folder = folder(&[
            ("train.csv", "0,a,1\n?,a,0\n3,b,1\n".into()),
            ("test.csv", "3,a,1\n".into()),
        ]);
        let files = Files::of(folder.path()).expect("parts");
        let encoding = Encoding { min_count: 1, ..encoding };
        let clicks = Clicks::load(&Files { valid: files.test.clone(), ..files }, &encoding);
        let clicks = clicks.expect("tables");
        // ln(1 + x) is 0 and ln 4: mean and deviation are half of that.
        let numbers: Vec<f32> = (0..5).map(|row| clicks.examples.numbers(row)[0]).collect();
        let expected = [-1.0, 0.0, 1.0, 1.0, 1.0];
        assert!(numbers.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{numbers:?}");
    }

    #[test]
    fn faults_name_file_line_and_column() {
        let fault = |name: &str, text: &str, encoding: &Encoding| {
            let folder = folder(&[(name, text.to_owned())]);
            let files = Files::of(&folder.path().join(name)).expect("a file");
            Clicks::load(&files, encoding).expect_err("a fault").to_string()
        };
        let text = fault("a.csv", "1,a,1\n\n2,b,2\n", &schema());
        assert!(text.contains("a.csv:3:5: '2' is no label"), "{text}");
        let text = fault("a.csv", "1,a,1\n2,b\n", &schema());
        assert!(text.contains("a.csv:2:1: 2 columns, 3 are expected"), "{text}");
        let text = fault("a.csv", "a,b\n", &Encoding::default());
        assert!(text.contains("give its columns, such as --schema"), "{text}");
        let text = fault("a.csv", "\n\n", &schema());
        assert!(text.contains("no example in"), "{text}");
        let text = fault("a.csv", "job,x,y\n", &schema());
        assert!(text.contains("no example in"), "{text}");
        let text = fault("a.svm", &format!("1 {}", "1:1 ".repeat(1 << 18)), &Encoding::default());
        assert!(text.contains("a.svm:1:1: a line without end"), "{text}");
        let empty = folder(&[("other.txt", String::new())]);
        let text = Files::of(empty.path()).expect_err("no train").to_string();
        assert!(text.contains("no train.* or *.data in"), "{text}");
    }
}
