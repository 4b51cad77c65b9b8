//! Ratings that people gave, where `ADAPM_DATA` names the folder with them.

use std::path::Path;

use adapm_tasks::data::{DATA_VARIABLE, locate};
use adapm_tasks::mf::{Ratings, TrainConfig};

use crate::{rmse, run};

#[test]
fn defaults_predict_ratings_at_least_as_well_as_their_means() {
    if std::env::var_os(DATA_VARIABLE).is_none() {
        return;
    }
    let Ok(path) = locate("mf", Path::new("libmf-demo")) else { return };
    let ratings = Ratings::load(&path).expect("reads");
    let report = run(&ratings, &TrainConfig::default()).expect("trains");
    // Of means by hand those of columns are the best, 0.9473; factors add nothing to shrunken ones.
    assert!(rmse(&report) < 0.92, "{}", rmse(&report));
    let Ok(path) = locate("mf", Path::new("douban-3000")) else { return };
    let ratings = Ratings::load(&path).expect("reads");
    let report = run(&ratings, &TrainConfig::default()).expect("trains");
    assert!(rmse(&report) < 0.736, "{}", rmse(&report));
}
