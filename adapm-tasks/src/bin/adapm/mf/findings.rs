//! What is worth knowing about ratings that were read, a line each.

use adapm_tasks::mf::Ratings;

use crate::format;
use crate::kge::Finding;

/// What was found while the ratings were read.
pub(crate) fn findings(ratings: &Ratings) -> Vec<Finding> {
    let counts = ratings.counts();
    let unseen_valid = "of valid with a row or column unknown to train: the mean of the other is predicted";
    let unseen_test = "of test with a row or column unknown to train: the mean of the other is predicted";
    let problems = [
        (counts.repeated, "repeated in train, trained on each time"),
        (counts.trained_valid, "of valid are in train, too"),
        (counts.trained_test, "of test are in train, too: figures are too good"),
        (counts.unseen_valid, unseen_valid),
        (counts.unseen_test, unseen_test),
    ];
    let mut findings = Vec::new();
    if counts.comments > 0 {
        let lines = if counts.comments == 1 { "line" } else { "lines" };
        let comments = format::count(counts.comments);
        findings.push(Finding::note(format!("{comments} {lines} of comments (# or %) at the top left out")));
    }
    let found = problems.into_iter().filter(|(count, _)| *count > 0);
    findings.extend(found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))));
    findings
}
