//! Ratings that people gave, where `ADAPM_DATA` names the folder with them.

use std::path::Path;

use adapm_tasks::data::{DATA_VARIABLE, locate};
use adapm_tasks::mf::Ratings;

use crate::{rmse, run, small};

#[test]
fn a_few_epochs_predict_ratings_better_than_their_mean() {
    if std::env::var_os(DATA_VARIABLE).is_none() {
        return;
    }
    let Ok(path) = locate("mf", Path::new("libmf-demo")) else { return };
    let ratings = Ratings::load(&path).expect("reads");
    let config = small(|config| (config.dim, config.epochs, config.l2) = (16, 10, 0.1));
    let report = run(&ratings, &config).expect("trains");
    let untrained = rmse(&run(&ratings, &small(|config| config.epochs = 0)).expect("predicts"));
    assert!(rmse(&report) < 0.97 * untrained, "{} {untrained}", rmse(&report));
}
