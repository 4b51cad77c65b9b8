//! Numbers as people read them, and names that may have been meant.

use std::time::SystemTime;

use console::measure_text_width;
use indicatif::{DecimalBytes, HumanCount};

/// `272,115`.
pub(crate) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `12.34 MB`, in powers of 1000.
pub(crate) fn bytes(number: u64) -> String {
    DecimalBytes(number).to_string()
}

/// Returns a share in 0..=1 as `99.98 %`. Cut, not rounded: only a whole is 100 %.
pub(crate) fn share(share: f64) -> String {
    format!("{:.2} %", (share * 10_000.0 + 1e-9).floor() / 100.0)
}

/// Returns a figure of merit: `0.2814`.
pub(crate) fn figure(value: f64) -> String {
    format!("{value:.4}")
}

/// Returns a moment as `2026-11-25T09:30:00Z` (ISO 8601).
pub(crate) fn date(moment: SystemTime) -> String {
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut month) = (1970, 0);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let of_month = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= of_month[month] {
        days -= of_month[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

/// Returns a duration given in seconds: `850 us`, `12 ms`, `4.32 s`, `2 min 05 s`, `1 h 02 min`.
pub(crate) fn seconds(seconds: f64) -> String {
    let whole = seconds.round();
    if !seconds.is_finite() {
        "?".to_owned()
    } else if seconds >= 3600.0 {
        format!("{:.0} h {:02.0} min", (whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor())
    } else if whole >= 60.0 {
        format!("{:.0} min {:02.0} s", (whole / 60.0).floor(), whole % 60.0)
    } else if seconds >= 10.0 {
        format!("{seconds:.1} s")
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.001 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}

/// Returns a duration in seconds, rounded up to whole ones: `4 s`, `2 min 05 s`.
pub(crate) fn whole_seconds(duration: f64) -> String {
    let whole = duration.ceil();
    if whole < 60.0 { format!("{whole:.0} s") } else { seconds(whole) }
}

/// `1 node`, `4 nodes`, `2,500 entities`.
pub(crate) fn plural(number: usize, word: &str) -> String {
    let number_of = |word: &str, ending: &str| format!("{} {word}{ending}", count(number as u64));
    match word.strip_suffix("ty") {
        _ if number == 1 => number_of(word, ""),
        Some(stem) => number_of(stem, "ties"),
        None => number_of(word, "s"),
    }
}

/// Breaks `text` between words into lines of at most `width` characters; longer words have a line
/// of their own.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut column = 0;
    for word in text.split(' ') {
        let length = measure_text_width(word);
        let line = lines.last_mut().expect("begins with one");
        if column > 0 && column + 1 + length > width {
            lines.push(word.to_owned());
            column = length;
            continue;
        }
        if column > 0 {
            line.push(' ');
            column += 1;
        }
        line.push_str(word);
        column += length;
    }
    lines
}

/// Returns the same as one text, whose lines after the first are indented by two.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = lines(text, width).into_iter();
    let first = wrapped.next().unwrap_or_default();
    // The indent is part of the width of all lines but the first.
    let rest = text.strip_prefix(first.as_str()).unwrap_or_default().trim_start();
    if rest.is_empty() {
        return first;
    }
    lines(rest, width.saturating_sub(2)).iter().fold(first, |text, line| text + "\n  " + line)
}

/// As many of `parts`, from the first on, as fit into `width` with two spaces between them.
pub(crate) fn fitting(parts: &[String], width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let gap = if text.is_empty() { "" } else { "  " };
        if measure_text_width(&text) + gap.len() + measure_text_width(part) > width {
            break;
        }
        text.push_str(gap);
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::nearest::nearest;

    #[test]
    fn dates_know_leap_years() {
        let date_of = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        // As `date -u -d @SECONDS` says.
        assert_eq!(date_of(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_of(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date_of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_of(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(date_of(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_share_reaches_100_only_as_a_whole() {
        assert_eq!(share(1.0), "100.00 %");
        assert_eq!(share(0.999_999), "99.99 %");
        assert_eq!(share(0.29), "29.00 %");
        assert_eq!(share(0.0), "0.00 %");
    }

    #[test]
    fn durations_have_two_to_four_digits() {
        let texts = [0.0, 85e-6, 0.012, 4.321, 12.34, 59.96, 125.0, 3725.0, f64::NAN].map(seconds);
        let expected = [
            "0 us",
            "85 us",
            "12 ms",
            "4.32 s",
            "12.3 s",
            "1 min 00 s",
            "2 min 05 s",
            "1 h 02 min",
            "?",
        ];
        assert_eq!(texts, expected);
        assert_eq!([0.2, 59.5, 100.1].map(whole_seconds), ["1 s", "1 min 00 s", "1 min 41 s"]);
    }

    #[test]
    fn counts_and_bytes_are_grouped() {
        assert_eq!(
            (count(272_115), bytes(12_340_000)),
            ("272,115".to_owned(), "12.34 MB".to_owned())
        );
        let written =
            [plural(1, "node"), plural(4, "node"), plural(1, "entity"), plural(2_500, "entity")];
        assert_eq!(written, ["1 node", "4 nodes", "1 entity", "2,500 entities"]);
    }

    #[test]
    fn text_wraps_between_words() {
        assert_eq!(wrapped("one two three", 9), "one two\n  three");
        assert_eq!(wrapped("a-word-too-long x", 4), "a-word-too-long\n  x");
        assert_eq!(wrapped("", 4), "");
        assert_eq!(wrapped("one two three", 8), "one two\n  three");
        assert_eq!(wrapped("a bb ccc dddd", 6), "a bb\n  ccc\n  dddd");
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
    }

    #[test]
    fn parts_are_left_out_from_the_end() {
        let parts = ["epoch 1", "loss 0.5", "ETA 3 s"].map(str::to_owned);
        assert_eq!(fitting(&parts, 80), "epoch 1  loss 0.5  ETA 3 s");
        assert_eq!(fitting(&parts, 25), "epoch 1  loss 0.5");
        assert_eq!(fitting(&parts, 3), "");
    }

    #[test]
    fn the_nearest_name_comes_first_whatever_its_case() {
        let names = || ["umls", "codex-s", "FB15k-237", "kinships"].map(str::to_owned).to_vec();
        let near = |wanted| nearest(wanted, names()).0;
        assert_eq!(near("fb15k237").as_deref(), Some("FB15k-237"));
        assert_eq!(near("KINSHIP").as_deref(), Some("kinships"));
        assert_eq!(near("wordnet"), None);
        assert_eq!(nearest("codexs", names()).1[0], "codex-s");
    }
}
