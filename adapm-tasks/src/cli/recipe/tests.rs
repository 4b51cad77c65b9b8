//! Every recipe is a command that the library accepts.

use std::sync::atomic::AtomicBool;

use crate::wv as library_wv;

use super::*;
use crate::cli::args::{Given, SettingsArgs};
use crate::cli::failure::Failure;
use crate::cli::program::{Program, TrainArgs};
use crate::cli::verbs::{Cli, TrainTask, Verb};
use crate::run::Run;

fn read(words: &[&str]) -> Result<(TrainTask, Given), Failure> {
    let words = ["adapm", "train"].iter().chain(words).map(OsString::from).collect();
    let (cli, given) = Cli::read(words)?;
    let Some(Verb::Train { task }) = cli.verb else { panic!("another verb") };
    Ok((task, given))
}

/// Begins to train with the settings of `task` on generated data, which checks them, and stops at
/// once.
fn begin(task: &TrainTask) -> Result<(), Failure> {
    let stop = AtomicBool::new(true);
    match task {
        TrainTask::Kge(args) => begin_one(args, &stop),
        TrainTask::Mf(args) => begin_one(args, &stop),
        TrainTask::Ctr(args) => begin_one(args, &stop),
        TrainTask::Gnn(args) => begin_one(args, &stop),
        TrainTask::Wv(args) => {
            let text = library_wv::Text::generated(1, 100);
            let corpus = library_wv::Corpus::count(text, 1, 1)?;
            let run = Run::alone().stopped_by(&stop);
            library_wv::train(&corpus, None, &args.config, &run).map(drop)?;
            Ok(())
        }
    }
}

fn begin_one<P: Program>(args: &TrainArgs<P>, stop: &AtomicBool) -> Result<(), Failure> {
    let (data, _) = P::read(args).map_err(|error| *error.0)?;
    P::train(&data, &args.config, &Run::alone().stopped_by(stop))?;
    Ok(())
}

#[test]
fn settings_of_every_recipe_are_accepted_and_its_figures_say_where_they_are_from() {
    for (task, _) in FILES {
        for recipe in all(task) {
            let name = recipe.name.as_str();
            let (asked, given) = read(&[task, "--recipe", name, "--data-seed", "1"]).expect(name);
            begin(&asked).expect(name);
            assert!(given.among(&["data"]).is_empty(), "{name}: other data is given");
            let (_, given) = read(&[task, "--recipe", name]).expect(name);
            assert_eq!(given.among(&["data"]), format!("--recipe {name}"));
            let Recipe { figures, machine, date, .. } = &recipe;
            let is_run = !machine.is_empty() && date.len() == "2026-11-21".len();
            let is_none = machine.is_empty() && date.is_empty();
            // One recipe was not run: its data was not at hand.
            let is_right = if name == "Criteo" { is_none } else { is_run };
            assert!(is_right && figures.is_empty() == is_none, "{name}: {machine} {date}");
            let is_list = SettingsArgs::is_list(name);
            assert!(!is_list && find(task, &name.to_lowercase()).is_ok(), "{name}");
        }
        let mut names: Vec<_> =
            all(task).into_iter().map(|recipe| recipe.name.to_lowercase()).collect();
        names.sort_unstable();
        assert!(
            names.windows(2).all(|two| two[0] != two[1]),
            "two recipes of {task} have one name"
        );
    }
}

#[test]
fn settings_of_every_recipe_can_be_written_and_read() {
    let folder = std::env::temp_dir().join(format!("adapm-recipes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a file");
    let file = folder.join("settings.toml");
    let read_file = |task: &str| {
        read(&[task, "--config", file.to_str().expect("a name in UTF-8")]).expect("settings")
    };
    for (task, _) in FILES {
        for recipe in all(task) {
            let (_, given) = read(&[task, "--recipe", &recipe.name]).expect("a recipe");
            let written = given.to_toml(task);
            std::fs::write(&file, &written).expect("a file can be written");
            let (_, again) = read_file(task);
            let mut expected = given.settings().clone();
            expected.remove("recipe");
            assert_eq!(again.settings(), &expected, "{}: {written}", recipe.name);
            assert_eq!(again.to_toml(task), written);
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn flags_given_by_hand_win_and_those_of_the_recipe_are_told_apart() {
    let words =
        ["kge", "--recipe", "umls", "--epochs", "7", "--reciprocal=false", "--data", "mine"];
    let (task, given) = read(&words).expect("a recipe");
    let TrainTask::Kge(args) = task else { panic!("another task") };
    assert_eq!(
        (args.config.epochs, args.config.n3, args.config.reciprocal),
        (7, Some(0.005), false)
    );
    assert_eq!(given.settings()["data"], "mine");
    assert_eq!(given.among(&["epochs", "n3", "dim"]), "--epochs --recipe UMLS");
    assert_eq!(given.among(&["epochs", "dim"]), "--epochs");
    let (task, _) = read(&["kge", "--reciprocal"]).expect("no recipe");
    assert!(matches!(task, TrainTask::Kge(args) if args.config.reciprocal));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_or_with_all() {
    let refused = |task: &str, name: &str| match read(&[task, "--recipe", name]) {
        Err(Failure::Recipe(error)) => error.to_string(),
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(refused("kge", "uml"), "no recipe uml of kge; did you mean UMLS?");
    let all = refused("kge", "xyz");
    assert!(
        all.starts_with("no recipe xyz of kge: there are ") && all.contains("FB15k-237"),
        "{all}"
    );
}

#[test]
fn without_a_name_recipes_are_listed() {
    for words in
        [["kge", "--recipe"].as_slice(), &["mf", "--recipe", "list"], &["wv", "--recipe", "--json"]]
    {
        let (task, _) = read(words).expect("a list");
        let recipe = match &task {
            TrainTask::Kge(args) => &args.settings,
            TrainTask::Mf(args) => &args.settings,
            TrainTask::Gnn(args) => &args.settings,
            TrainTask::Wv(args) => &args.settings,
            TrainTask::Ctr(args) => &args.settings,
        };
        assert!(recipe.lists(), "{words:?}");
    }
}
