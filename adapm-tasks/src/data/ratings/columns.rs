//! Columns of a file of ratings: which one is the row, the column, the value.
//!
//! A first line without a number names the columns, and is believed in any order; case, blanks and
//! signs in names do not count, nor does a type after a colon (`user_id:token`). If one of the
//! three is not among the names that are known here, and a single column is left that is neither
//! known nor a time, it is that one. If several names stand for one of the three, the one listed
//! first here counts, so that `movieId` goes before `title`. Without names the order is row,
//! column, value, and perhaps a time.

use crate::data::error::{Problem, RatingFault, UnknownColumns};

/// Places of the three fields of a rating that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) value: usize,
    /// Fields of a line.
    pub(super) all: usize,
    /// Names of the three, if the first line has names.
    pub(super) names: Option<[String; 3]>,
}

impl Columns {
    /// Returns the columns of a file without names, by the number of fields of its first line.
    pub(super) fn unnamed(fields: &[&[u8]]) -> Result<Self, RatingFault> {
        let all = fields.len();
        match all {
            0..UNTIMED => Err(RatingFault::TooFewFields { found: all, expected: UNTIMED }),
            UNTIMED => Ok(Self::in_order(all)),
            TIMED if is_time(fields[2]) && !is_time(fields[3]) => Err(RatingFault::TimeBeforeValue),
            TIMED => Ok(Self::in_order(all)),
            _ => Err(RatingFault::NoNames { found: all }),
        }
    }

    /// Row, column, value, and what follows.
    pub(super) fn in_order(all: usize) -> Self {
        Self { row: 0, column: 1, value: 2, all, names: None }
    }

    /// Returns the columns of these names.
    pub(super) fn named(found: Vec<String>) -> Result<Self, UnknownColumns> {
        let plain: Vec<String> = found.iter().map(|name| plain(name)).collect();
        let mut parts = [None; 3];
        for (part, known) in KNOWN.iter().enumerate() {
            let ranks = plain.iter().map(|name| known.iter().position(|known| known == name));
            let best = ranks.clone().flatten().min();
            let mut places = ranks.enumerate().filter(|(_, rank)| rank.is_some() && *rank == best);
            parts[part] = places.next().map(|(place, _)| place);
            if places.next().is_some() {
                return Err(UnknownColumns { found, problem: Problem::Twice(part) });
            }
        }
        // `i` and `j` are row and column where there is no `u`.
        if let ([None, ..], Some(row), Some(column)) = (parts, at(&plain, "i"), at(&plain, "j")) {
            (parts[0], parts[1]) = (Some(row), Some(column));
        }
        let is_left = |place: &usize| {
            let name = plain[*place].as_str();
            !name.is_empty()
                && !name.starts_with("unnamed")
                && !TIMES.contains(&name)
                && !KNOWN.iter().any(|known| known.contains(&name))
        };
        let mut left = (0..plain.len()).filter(is_left);
        let mut missing = (0..3).filter(|part| parts[*part].is_none());
        match (missing.next(), missing.next(), left.next(), left.next()) {
            (None, ..) => {}
            (Some(part), None, Some(place), None) => parts[part] = Some(place),
            (Some(part), ..) => {
                return Err(UnknownColumns { found, problem: Problem::Missing(part) });
            }
        }
        let [Some(row), Some(column), Some(value)] = parts else {
            unreachable!("what was missing has been found or refused")
        };
        let names = Some([row, column, value].map(|place| found[place].clone()));
        Ok(Self { row, column, value, all: found.len(), names })
    }

    /// Returns true if each of the three is a name that is known here: then a comment that holds
    /// them is a line of names.
    pub(super) fn are_known(names: &[String]) -> bool {
        let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
        KNOWN.iter().all(|known| plain.iter().any(|name| known.contains(&name.as_str())))
    }
}

fn at(plain: &[String], name: &str) -> Option<usize> {
    plain.iter().position(|other| other == name)
}

/// Returns a name without what does not count.
fn plain(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns true for seconds or milliseconds since 1970 that are a date since 1973.
fn is_time(field: &[u8]) -> bool {
    let number = str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    number.is_some_and(|number| (1e8..1e14).contains(&number) && number.fract() == 0.0)
}

/// Fields of a rating without its time, and with it.
pub(super) const UNTIMED: usize = 3;
pub(super) const TIMED: usize = 4;

/// Names of rows, of columns, of values; those that say more first.
const KNOWN: [&[&str]; 3] = [
    &[
        "userid",
        "user",
        "uid",
        "u",
        "useridx",
        "userindex",
        "userno",
        "username",
        "users",
        "customerid",
        "customer",
        "custid",
        "reviewerid",
        "reviewer",
        "memberid",
        "member",
        "personid",
        "person",
        "visitorid",
        "visitor",
        "profileid",
        "profile",
        "accountid",
        "account",
        "readerid",
        "reader",
        "playerid",
        "player",
        "rowid",
        "row",
        "rows",
        "sourceid",
        "source",
        "src",
    ],
    &[
        "itemid",
        "item",
        "iid",
        "i",
        "itemidx",
        "itemindex",
        "itemno",
        "items",
        "movieid",
        "movie",
        "filmid",
        "film",
        "bookid",
        "book",
        "isbn",
        "isbn13",
        "isbn10",
        "productid",
        "product",
        "asin",
        "parentasin",
        "sku",
        "goodid",
        "goodsid",
        "songid",
        "song",
        "trackid",
        "track",
        "albumid",
        "album",
        "artistid",
        "artist",
        "gameid",
        "game",
        "appid",
        "animeid",
        "anime",
        "businessid",
        "business",
        "gmapid",
        "restaurantid",
        "restaurant",
        "placeid",
        "place",
        "venueid",
        "venue",
        "recipeid",
        "recipe",
        "jokeid",
        "joke",
        "articleid",
        "article",
        "videoid",
        "video",
        "beerid",
        "beer",
        "wineid",
        "wine",
        "hotelid",
        "hotel",
        "courseid",
        "course",
        "contentid",
        "content",
        "columnid",
        "column",
        "columns",
        "colid",
        "col",
        "j",
        "targetid",
        "target",
        "dst",
        "itemname",
        "movietitle",
        "booktitle",
        "title",
    ],
    &[
        "rating",
        "ratings",
        "ratingvalue",
        "userrating",
        "bookrating",
        "movierating",
        "r",
        "score",
        "scores",
        "ratingscore",
        "reviewscore",
        "reviewrating",
        "reviewoverall",
        "overall",
        "stars",
        "star",
        "starrating",
        "rate",
        "grade",
        "value",
        "values",
        "val",
        "v",
        "x",
        "preference",
        "weight",
        "count",
        "counts",
        "playcount",
        "plays",
        "listencount",
        "interaction",
    ],
];

/// Names of times, which are not used.
const TIMES: [&str; 14] = [
    "time",
    "timestamp",
    "t",
    "ts",
    "date",
    "datetime",
    "unixtime",
    "unixreviewtime",
    "reviewtime",
    "ratingtimestamp",
    "ratingdate",
    "year",
    "day",
    "index",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &str) -> Result<[usize; 3], String> {
        let columns = Columns::named(names.split(',').map(str::to_owned).collect());
        columns
            .map(|columns| [columns.row, columns.column, columns.value])
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_believed_in_any_order() {
        for (names, expected) in [
            ("userId,movieId,rating,timestamp", [0, 1, 2]),
            ("userId,movieId,timestamp,rating", [0, 1, 3]),
            ("rating,userId,movieId", [1, 2, 0]),
            ("User-ID,ISBN,Book-Rating", [0, 1, 2]),
            ("user_id:token,item_id:token,rating:float", [0, 1, 2]),
            (",uid,iid,score", [1, 2, 3]),
            ("Unnamed: 0,stars,product_id,customer_id", [3, 2, 1]),
            ("u,i,r", [0, 1, 2]),
            ("i,j,x", [0, 1, 2]),
            ("row,column,value", [0, 1, 2]),
            ("title,movieId,userId,rating", [2, 1, 3]),
            // What is left is the one that is missing.
            ("user,cheese,rating", [0, 1, 2]),
            ("taste,user,item,timestamp", [1, 2, 0]),
        ] {
            assert_eq!(named(names), Ok(expected), "{names}");
        }
    }

    #[test]
    fn names_that_are_not_known_are_named() {
        assert_eq!(
            named("a,b,c").expect_err("which is which?"),
            "no name of a column of users (rows) among `a`, `b`, `c`; name the columns user, item and rating, \
             or uid, userId, row (a line of values has a number)"
        );
        let error = named("user,item,tag,genre").expect_err("two may be the value");
        assert!(error.starts_with("no name of a column of values among `user`, `item`"), "{error}");
        let error = named("user,item,rating,Rating").expect_err("two have its name");
        assert!(error.starts_with("two columns of values among"), "{error}");
        assert!(named("user,item").is_err() && named("").is_err());
    }

    #[test]
    fn without_names_three_fields_or_four_are_in_order() {
        let unnamed = |fields: &[&str]| {
            Columns::unnamed(&fields.iter().map(|field| field.as_bytes()).collect::<Vec<_>>())
        };
        assert_eq!(unnamed(&["1", "2", "3"]), Ok(Columns::in_order(3)));
        assert_eq!(unnamed(&["1", "2", "3", "978300760"]), Ok(Columns::in_order(4)));
        assert_eq!(unnamed(&["1", "2", "978300760", "3"]), Err(RatingFault::TimeBeforeValue));
        assert_eq!(unnamed(&["1", "2", "3", "4", "5"]), Err(RatingFault::NoNames { found: 5 }));
        assert_eq!(unnamed(&["1", "2"]), Err(RatingFault::TooFewFields { found: 2, expected: 3 }));
    }
}
