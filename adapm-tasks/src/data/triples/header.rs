//! First lines that name the columns of triples.

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Those of head, relation and tail, from 0.
    pub(super) places: [usize; 3],
    /// How many there are.
    pub(super) count: usize,
}

/// The columns that a first line names; `None` if it holds a triple.
pub(super) fn columns(fields: &[&[u8]]) -> Option<Columns> {
    let names: Vec<Vec<u8>> = fields.iter().map(|field| plain(field)).collect();
    let only = |known: &[&str]| {
        let is_known = |name: &[u8]| known.iter().any(|known| known.as_bytes() == name);
        let mut found = (0..names.len()).filter(|column| is_known(&names[*column]));
        found.next().filter(|_| found.next().is_none())
    };
    let relation = only(&RELATIONS)?;
    let ends = ENDS.iter().find_map(|(heads, tails)| only(heads).zip(only(tails)));
    let (head, tail) = ends.or_else(|| {
        let all = |ends: fn(&Ends) -> &'static [&'static str]| {
            ENDS.iter().flat_map(ends).copied().collect::<Vec<_>>()
        };
        only(&all(|ends| ends.0)).zip(only(&all(|ends| ends.1)))
    })?;
    Some(Columns { places: [head, relation, tail], count: fields.len() })
}

/// A name in small letters, without signs and what may follow it.
fn plain(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
    let name: Vec<u8> = letters.collect();
    ENDINGS.iter().find_map(|ending| name.strip_suffix(*ending)).unwrap_or(&name).to_vec()
}

/// Names of heads, and of the tails that go with them.
type Ends = (&'static [&'static str], &'static [&'static str]);

/// In small letters. A `source` beside `head` and `tail` is where a fact is from.
const ENDS: [Ends; 5] = [
    (&["h", "head"], &["t", "tail"]),
    (&["s", "sub", "subj", "subject"], &["o", "ob", "obj", "object"]),
    (&["src", "source"], &["dst", "dest", "destination", "target"]),
    (&["from"], &["to"]),
    (&["start"], &["end"]),
];

/// Names of relations.
const RELATIONS: [&str; 13] = [
    "r",
    "rel",
    "relation",
    "relationship",
    "relationtype",
    "reltype",
    "p",
    "pred",
    "predicate",
    "property",
    "edge",
    "edgetype",
    "type",
];

/// What may follow such a name.
const ENDINGS: [&[u8]; 4] = [b"entity", b"name", b"id", b"label"];

#[cfg(test)]
mod tests {
    use super::*;

    fn places(line: &str) -> Option<[usize; 3]> {
        let fields: Vec<&[u8]> = line.split(',').map(str::as_bytes).collect();
        columns(&fields).map(|columns| columns.places)
    }

    #[test]
    fn names_of_columns_say_which_is_which() {
        for line in ["head,relation,tail", "subject,predicate,object", "h,r,t", "S,P,O", "from,rel,to"] {
            assert_eq!(places(line), Some([0, 1, 2]), "{line}");
        }
        assert_eq!(places("Head_Entity,Tail_Entity,Relation Type"), Some([0, 2, 1]));
        assert_eq!(places("head_id,tail_id,relation_id"), Some([0, 2, 1]));
        assert_eq!(places(":START_ID,:END_ID,:TYPE"), Some([0, 2, 1]));
        assert_eq!(places("id,object,weight,subject,predicate"), Some([3, 4, 1]));
        assert_eq!(places("object,subject,predicate,source"), Some([1, 2, 0]));
        assert_eq!(places("subject,relation,tail"), Some([0, 1, 2]));
    }

    #[test]
    fn triples_are_no_names_of_columns() {
        for line in
            ["a,r,b", "head,head,tail", "Oslo,capital of,Norway", "head,relation", "subject,is,object"]
        {
            assert_eq!(places(line), None, "{line}");
        }
    }
}
