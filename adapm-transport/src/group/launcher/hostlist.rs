//! Slurm's compact lists of hosts: `gpu[01-03,7],cpu1` is gpu01, gpu02, gpu03, gpu7, cpu1.
//!
//! A name may have several brackets (`r[1-2]n[1-4]`); numbers keep the leading zeros of the start
//! of their range. Slurm's variables have no suffixes with steps such as `[0-6:2]`, which are not
//! parsed.

/// Returns the hosts of a list in its order; `None` if it is invalid, empty, or has more than
/// [`HOSTS_MAX`].
pub(crate) fn expand(list: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    for name in split(list)? {
        if name.is_empty() {
            return None;
        }
        hosts.extend(expand_name(name)?);
        if hosts.len() > HOSTS_MAX {
            return None;
        }
    }
    Some(hosts)
}

/// Splits at the commas outside of brackets.
fn split(list: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (at, character) in list.char_indices() {
        match character {
            '[' | ']' if inside == (character == '[') => return None,
            '[' | ']' => inside = !inside,
            ',' if !inside => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ if character.is_whitespace() => return None,
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    (!inside).then_some(parts)
}

/// Expands one name: its first bracket varies slowest.
fn expand_name(name: &str) -> Option<Vec<String>> {
    let mut hosts = vec![String::new()];
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']')?;
        let numbers = numbers(ranges)?;
        if hosts.len().checked_mul(numbers.len())? > HOSTS_MAX {
            return None;
        }
        hosts = hosts
            .iter()
            .flat_map(|host| numbers.iter().map(move |number| format!("{host}{before}{number}")))
            .collect();
        rest = after;
    }
    Some(hosts.into_iter().map(|host| host + rest).collect())
}

/// Expands the content of a bracket: `01-03,7`.
fn numbers(ranges: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| {
            (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(first) || !digits(last) {
            return None;
        }
        let (low, high) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        if high.checked_sub(low)? >= HOSTS_MAX as u64 || numbers.len() > HOSTS_MAX {
            return None;
        }
        numbers.extend((low..=high).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Some(numbers)
}

/// Maximum digits of a number; every host of a range is as wide as its first number.
const DIGITS_MAX: usize = 20;

/// Maximum number of hosts, as in one Slurm cluster.
const HOSTS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_commas_and_leading_zeros_are_expanded_in_order() {
        for (list, hosts) in [
            ("gpu[01-03,7],cpu1", "gpu01 gpu02 gpu03 gpu7 cpu1"),
            ("a", "a"),
            ("a,b.example.org", "a b.example.org"),
            ("n[8-11]", "n8 n9 n10 n11"),
            ("n[098-101]-ib", "n098-ib n099-ib n100-ib n101-ib"),
            ("r[1-2]n[1-2]x", "r1n1x r1n2x r2n1x r2n2x"),
            ("n[5]", "n5"),
        ] {
            assert_eq!(expand(list).map(|hosts| hosts.join(" ")).as_deref(), Some(hosts), "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for list in [
            "",
            ",",
            "a,",
            ",a",
            "n[",
            "n]",
            "n[]",
            "n[1",
            "n1]",
            "n[1-]",
            "n[-1]",
            "n[2-1]",
            "n[a-b]",
            "n[1,]",
            "n[[1]]",
            "n[1-2-3]",
            "a b",
            "n[1;2]",
            "n[99999999999999999999]",
            "n[+1-2]",
        ] {
            assert_eq!(expand(list), None, "{list}");
        }
    }

    #[test]
    fn a_list_that_would_not_fit_is_none() {
        assert_eq!(expand("n[0-65535]").map(|hosts| hosts.len()), Some(HOSTS_MAX));
        for list in [
            "n[0-65536]",
            "n[1-18446744073709551615]",
            "n[0-255][0-255][0-255]",
            "n[0-60000],m[0-60000]",
            "n[0-40000,0-40000]",
            "n[0000000000000000000000000000000000000000000-60000]",
        ] {
            assert_eq!(expand(list), None, "{list}");
        }
    }
}
