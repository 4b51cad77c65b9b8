//! Names that may have been meant by one that does not exist.

/// Returns the name that may have been meant, and the names nearest first, as many as one line can
/// hold.
pub(crate) fn nearest(wanted: &str, names: Vec<String>) -> (Option<String>, Vec<String>) {
    let wanted = wanted.to_lowercase();
    let closeness = |name: &String| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    let mut ranked: Vec<(f64, String)> =
        names.into_iter().map(|name| (closeness(&name), name)).collect();
    ranked.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    ranked.truncate(NAMES_MAX);
    let near = ranked
        .first()
        .filter(|(closeness, _)| *closeness >= CLOSENESS_MIN)
        .map(|(_, name)| name.clone());
    (near, ranked.into_iter().map(|(_, name)| name).collect())
}

/// Names that one line can hold.
const NAMES_MAX: usize = 8;

/// Jaro-Winkler similarity from which on a name may have been meant.
const CLOSENESS_MIN: f64 = 0.75;
