//! Tests of reading folders and files of ratings.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("adapm-mf-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("a file in it");
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn found(names: &[&str]) -> Option<[Option<String>; 3]> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort_unstable();
    let Files { train, valid, test } = find(Path::new("f"), &names)?;
    let name = |path: PathBuf| path.file_name().expect("a file").to_string_lossy().into_owned();
    Some([Some(name(train)), valid.map(name), test.map(name)])
}

#[test]
fn folders_are_known_by_the_names_in_them() {
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(
        found(&["test.txt", "train.txt"]),
        Some([some("train.txt"), None, some("test.txt")])
    );
    assert_eq!(
        found(&["train.mmc", "test.mmc", "valid.mtx"]),
        Some([some("train.mmc"), some("valid.mtx"), some("test.mmc")])
    );
    assert_eq!(
        found(&["real_matrix.te.txt", "real_matrix.tr.txt"]),
        Some([some("real_matrix.tr.txt"), None, some("real_matrix.te.txt")])
    );
    assert_eq!(
        found(&["movies.dat", "ratings.dat", "users.dat"]),
        Some([some("ratings.dat"), None, None])
    );
    assert_eq!(found(&["links.csv", "ratings.csv"]), Some([some("ratings.csv"), None, None]));
    assert_eq!(found(&["u.data", "u.item"]), Some([some("u.data"), None, None]));
    assert_eq!(found(&["README"]), None);
}

#[test]
fn ids_are_mapped_and_what_train_does_not_know_is_unseen() {
    let folder = Folder::new(&[
        ("train.txt", "900 5 1\n30 18446744073709551615 2\n900 18446744073709551615 4\n900 5 3\n"),
        ("test.csv", "30,5,7\n31,5,8\n30,6,9\n"),
    ]);
    let ratings = Ratings::load(&folder.0).expect("well formed");
    assert_eq!((ratings.rows(), ratings.columns(), ratings.train_len()), (2, 2, 4));
    assert_eq!(
        [0, 1, 2].map(|row| ratings.row_id(row)),
        [Some(RatingId::Number(30)), Some(RatingId::Number(900)), None]
    );
    assert_eq!(ratings.column_id(1), Some(RatingId::Number(u64::MAX)));
    let mut cells = Vec::new();
    ratings.for_each(0..2, |cell| cells.push((cell.row, cell.column, cell.value)));
    assert_eq!(cells, [(0, 1, 2.0), (1, 0, 1.0), (1, 0, 3.0), (1, 1, 4.0)]);
    assert_eq!((ratings.cells_in(0..1), ratings.cells_in(1..2)), (1, 3));
    assert_eq!(ratings.test.cells, [Cell { row: 0, column: 0, value: 7.0 }]);
    let unseen = |row, column, value| Unseen { row, column, value };
    assert_eq!(ratings.test.unseen, [unseen(None, Some(0), 8.0), unseen(Some(0), None, 9.0)]);
    assert_eq!(
        ratings.counts(),
        RatingCounts { repeated: 1, unseen_test: 2, ..RatingCounts::default() }
    );
    assert_eq!((ratings.mean(), ratings.range), (2.5, (1.0, 4.0)));
    assert!(!ratings.is_generated() && ratings.best_rmse().is_none());
}

#[test]
fn the_order_of_the_lines_does_not_matter() {
    let (a, b) = ("1 1 1\n2 1 2\n1 9 3\n", "1 9 3\n2 1 2\n1 1 1\n");
    let load = |train| {
        let folder = Folder::new(&[("train.txt", train), ("test.txt", "1 1 1\n")]);
        let ratings = Ratings::load(&folder.0).expect("well formed");
        (ratings.train, ratings.test, ratings.row_ids, ratings.column_ids)
    };
    assert!(load(a) == load(b));
}

#[test]
fn of_a_single_file_one_in_ten_is_held_out_always_the_same() {
    let lines: String =
        (0..1000).map(|i| format!("{}\t{}\t{}\t8\n", i % 40, i / 40, i % 5)).collect();
    let folder = Folder::new(&[("u.data", &lines)]);
    let ratings = Ratings::load(&folder.0.join("u.data")).expect("well formed");
    assert!((70..130).contains(&ratings.test_len()), "{}", ratings.test_len());
    assert_eq!(ratings.train_len() + ratings.test_len() as u64, 1000);
    assert!(
        ratings.source().to_string().ends_with("u.data (u i r time by tabs, one in ten held out)")
    );
    assert!(Ratings::load(&folder.0).expect("the same") == ratings);
}

#[test]
fn files_without_ratings_and_folders_without_files_are_errors() {
    let error = |files: &[(&str, &str)]| {
        let folder = Folder::new(files);
        let error = Ratings::load(&folder.0).expect_err("nothing there").to_string();
        error.replace(&folder.0.display().to_string(), "F")
    };
    assert!(error(&[]).starts_with("no train.txt, ratings.dat, ratings.csv or u.data in F;"));
    assert!(error(&[("train.txt", "")]).starts_with("no rating in F/train.txt;"));
    assert!(
        error(&[("train.txt", "1 1 1\n"), ("test.txt", "\n")])
            .starts_with("no rating in F/test.txt;")
    );
    let located = error(&[("train.txt", "1 1 1\n"), ("test.txt", "1 1 nan\n")]);
    assert!(located.starts_with("F/test.txt:1:5: not a finite number"), "{located}");
    let missing = Ratings::load(Path::new("no/such/file")).expect_err("missing");
    assert!(
        matches!(missing, DataError::Unreadable { error, .. } if error.kind() == io::ErrorKind::NotFound)
    );
}

#[test]
fn repeats_of_a_cell_are_on_one_side_of_what_is_held_out() {
    let lines: String =
        (0..2000).map(|i| format!("{},{},{}\n", i % 20, i / 20 % 50, i % 5)).collect();
    let folder = Folder::new(&[("all.csv", &lines)]);
    let ratings = Ratings::load(&folder.0).expect("well formed");
    let counts = ratings.counts();
    assert_eq!((counts.trained_test, counts.repeated), (0, ratings.train_len() / 2));
    assert!((140..260).contains(&ratings.test_len()), "{}", ratings.test_len());
    // The order of lines does not matter.
    let turned: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
    let other = Folder::new(&[("all.csv", &turned)]);
    assert_eq!(Ratings::load(&other.0).expect("well formed").test_len(), ratings.test_len());
}

#[test]
fn cells_of_test_that_are_in_train_are_counted() {
    let folder = Folder::new(&[
        ("train.csv", "user,item,rating\n1,a b,3\n1,c,4\n2,c,5\n"),
        ("dev.csv", "item,user,rating\nc,1,1\n"),
        ("test.csv", "rating,user,item\n1,1,c\n2,2,a b\n3,3,c\n"),
    ]);
    let counts = Ratings::load(&folder.0).expect("well formed").counts();
    let expected = RatingCounts {
        trained_valid: 1,
        trained_test: 1,
        unseen_test: 1,
        ..RatingCounts::default()
    };
    assert_eq!(counts, expected);
}

#[test]
fn what_was_not_trained_on_is_predicted_by_its_ids() {
    let checkpoint = crate::mf::checkpoint::tests::checkpoint();
    let folder = Folder::new(&[
        ("new.csv", "item,user,rating\n3,7,2\n3,18446744073709551615,1\n4,7,5\n3,ann,4\n"),
        ("train.csv", "1,2,3\n"),
        ("test.csv", "7,3,4\n"),
    ]);
    let load = |name: &str, split| {
        Ratings::load_for(&folder.0.join(name), &checkpoint, split).expect("well formed")
    };
    let new = load("new.csv", Split::Test);
    let cell = |row, value| Cell { row, column: 0, value };
    assert_eq!(new.test.cells, [cell(0, 2.0), cell(1, 1.0)]);
    assert_eq!((new.counts().unseen_test, new.valid_len(), new.range), (2, 0, (1.0, 5.0)));
    assert!(
        new.source()
            .to_string()
            .ends_with("new.csv (user, item, rating by commas; not the data trained on)")
    );
    assert!(checkpoint.check_data(&new).is_ok());
    assert_eq!(load("", Split::Test).test.cells, [cell(0, 4.0)]);
    assert_eq!(load("", Split::Valid).valid_len(), 0);
}

#[test]
fn a_folder_with_one_file_that_may_be_ratings_is_read() {
    assert_eq!(
        found(&["BX-Book-Ratings.csv", "BX-Books.csv", "BX-Users.csv"]),
        Some([Some("BX-Book-Ratings.csv".to_owned()), None, None])
    );
    assert_eq!(
        found(&["README.md", "data.tsv.gz"]),
        Some([Some("data.tsv.gz".to_owned()), None, None])
    );
    assert_eq!(found(&["a.csv", "b.csv"]), None);
    assert_eq!(found(&["train.del", "valid.del"]), None);
}

#[test]
fn a_single_rating_is_trained_on_and_nothing_is_held_out() {
    let folder = Folder::new(&[("ratings.csv", "userId,movieId,rating\n1,1,3.5\n")]);
    let ratings = Ratings::load(&folder.0).expect("well formed");
    assert_eq!((ratings.train_len(), ratings.test_len(), ratings.mean()), (1, 0, 3.5));
}

#[test]
fn real_data_is_read_where_it_is() {
    let Some(root) = std::env::var_os(crate::data::DATA_VARIABLE) else { return };
    let root = Path::new(&root).join("mf");
    if let Ok(ratings) = Ratings::load(&root.join("douban-3000")) {
        assert_eq!((ratings.train_len(), ratings.test_len()), (123_202, 13_689));
    }
    if let Ok(ratings) = Ratings::load(&root.join("libmf-demo")) {
        assert_eq!((ratings.train_len(), ratings.test_len()), (5_000, 794));
    }
}

#[test]
fn one_cell_in_ten_is_held_out_in_each_row_and_column() {
    let held = |row: u64, column: u64| is_in_test(RatingId::Number(row), RatingId::Number(column));
    for row in (0..50).map(|row| row * 1_000) {
        let of_row = (0..1_000).filter(|column| held(row, *column)).count();
        let of_column = (0..1_000).filter(|other| held(*other, row)).count();
        assert!(
            (60..150).contains(&of_row) && (60..150).contains(&of_column),
            "{of_row} {of_column}"
        );
    }
    let names = (0..1_000)
        .filter(|name| is_in_test(RatingId::Name(&format!("user {name}")), RatingId::Number(3)));
    assert!((60..150).contains(&names.count()));
}

#[test]
fn ratings_whose_cells_are_in_a_file_are_those_of_memory() {
    let line = |at: u32| format!("user{}\t{}\t{}\n", at * at % 17, at * 5 % 23, at % 10);
    let lines = |count: u32, step: usize| (0..count).step_by(step).map(line).collect::<String>();
    let (all, some) = (lines(700, 1), lines(900, 9));
    let apart: &[(&str, &str)] = &[("train.tsv", &all), ("test.tsv", &some), ("dev.tsv", &some)];
    for files in [apart, &[("ratings.tsv", &all)], &[("ratings.tsv", "a,b,1\n")]] {
        let folder = Folder::new(files);
        let read = |held_max| {
            let files = Files::of(&folder.0).expect("a known folder");
            assemble(&files, &FileCache::default(), held_max).expect("well formed")
        };
        let (held, spilled) = (read(700), read(64));
        assert_eq!(held.train_len() > 64, spilled.spilled_bytes() == Some(12 * held.train_len()));
        assert_eq!(held.spilled_bytes(), None);
        assert!(held == spilled, "{held:?}, {spilled:?}");
        assert_eq!((held.digest(), held.mean().to_bits()), {
            (spilled.digest(), spilled.mean().to_bits())
        });
    }
}
