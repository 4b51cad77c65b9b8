//! Errors of clap as one line.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns the reason for which clap refuses words, without the usage.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    impossible(error).unwrap_or_else(|| joined(&error.render().to_string()))
}

/// Explains a wrong value of a flag in the words of other errors; `None` if something else
/// is wrong.
fn impossible(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let (value, source) = (text(ContextKind::InvalidValue)?, error.source()?);
    let wanted = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "give a smaller whole number".to_owned(),
        Some(_) => "give a whole number".to_owned(),
        None if source.is::<ParseFloatError>() => "give a number".to_owned(),
        None => in_words(&source.to_string(), value),
    };
    Some(format!("{flag} {value}: {wanted}"))
}

/// A reason of clap's or of ours: `7 is not in 0..=5` becomes what to give.
fn in_words(reason: &str, value: &str) -> String {
    let range = reason.strip_prefix(value).and_then(|rest| rest.strip_prefix(" is not in "));
    match range.and_then(|range| range.split_once("..=")) {
        Some((min, max)) => format!("give a whole number from {min} to {max}"),
        None => reason.to_owned(),
    }
}

/// Returns the paragraphs of an error without the usage below it, joined to one line.
fn joined(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim);
    let said =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    said.filter(|line| !line.is_empty()).fold(String::new(), |mut joined, line| {
        if !joined.is_empty() {
            let continues = joined.ends_with(':') || line.starts_with('[') || line.starts_with('<');
            joined.push_str(if continues { " " } else { "; " });
        }
        joined + line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_one_line_without_usage() {
        let text = "error: unexpected argument '--nod' found\n\n  tip: a similar argument exists: '--nodes'\n\n\
                    Usage: adapm train kge\n\nFor more information, try '--help'.\n";
        assert_eq!(
            joined(text),
            "unexpected argument '--nod' found; tip: a similar argument exists: '--nodes'"
        );
        let text = "error: required arguments were not provided:\n  --load <FILE>\n\nUsage: adapm";
        assert_eq!(joined(text), "required arguments were not provided: --load <FILE>");
        let text = "error: invalid value 'x'\n  [possible values: a, b]\n";
        assert_eq!(joined(text), "invalid value 'x' [possible values: a, b]");
    }
}
