//! Lines of each form, and what is wrong with others.

use super::*;

type Read = (bool, Vec<String>, Vec<f32>);

/// Returns the label, features and numbers of a line.
fn read(
    form: &Form,
    numeric: Numeric,
    places: &Places,
    text: &str,
) -> Result<Read, (u64, ClickFault)> {
    let mut line = Line::default();
    form.read(text.as_bytes(), numeric, places, &mut line)?;
    let feature = |(field, name, value): (usize, &[u8], f32)| {
        format!("{field}:{}:{value}", String::from_utf8_lossy(name))
    };
    Ok((line.label, line.features().map(feature).collect(), line.numbers.clone()))
}

fn criteo_line(label: &str) -> String {
    let numbers = (0..13).map(|at| if at == 2 { String::new() } else { at.to_string() });
    let names = (0..26).map(|at| if at == 5 { String::new() } else { format!("{at:x}") });
    [label.to_owned()].into_iter().chain(numbers).chain(names).collect::<Vec<_>>().join("\t")
}

#[test]
fn lines_of_criteo_have_buckets_or_numbers_and_what_is_missing_is() {
    let (line, places) = (criteo_line("1"), Places::default());
    assert_eq!(Form::detect(line.as_bytes(), None), Some(Form::Criteo));
    let (label, features, numbers) =
        read(&Form::Criteo, Numeric::Bucket, &places, &line).expect("a line of Criteo");
    assert!(label && numbers.is_empty());
    let bucket = |at: usize| features[at].as_str();
    assert_eq!(
        [bucket(0), bucket(1), bucket(2), bucket(3)],
        ["26:0:1", "27:1:1", "28:missing:1", "29:about 3:1"]
    );
    // 13 buckets and 25 names: the sixth is missing.
    assert_eq!((features.len(), bucket(13), bucket(18)), (38, "0:0:1", "6:6:1"));
    let (_, features, numbers) =
        read(&Form::Criteo, Numeric::Dense, &places, &line).expect("a line of Criteo");
    assert_eq!((features.len(), numbers.len(), numbers[0]), (25, 13, 0.0));
    assert!(numbers[2].is_nan() && (numbers[3] - 4f32.ln()).abs() < 1e-6);
    assert_eq!(Form::Criteo.field(0, Numeric::Bucket), "C1");
    assert_eq!(Form::Criteo.field(26, Numeric::Bucket), "I1");
}

#[test]
fn lines_of_libsvm_and_libffm_are_told_apart_and_read() {
    let places = Places::default();
    assert_eq!(Form::detect(b"-1 3:1 11:0.5", None), Some(Form::Svm));
    assert_eq!(Form::detect(b"1 0:3:1 2:11:0.5", None), Some(Form::Ffm));
    assert_eq!(Form::detect(b"a,b,c", None), None);
    let svm = read(&Form::Svm, Numeric::Bucket, &places, "-1 3:1  11:0.5");
    assert_eq!(svm, Ok((false, vec!["0:3:1".into(), "0:11:0.5".into()], vec![])));
    let ffm = read(&Form::Ffm, Numeric::Bucket, &places, "1 2:11:0.5");
    assert_eq!(ffm, Ok((true, vec!["2:11:0.5".into()], vec![])));
}

fn schema() -> Schema {
    "age:num, job:cat, id:skip, y:label=yes".parse().expect("a schema")
}

#[test]
fn tables_are_read_in_order_or_by_the_names_in_their_first_line() {
    let form = Form::Table(schema());
    let (places, is_header) = form.places(b"30, clerk, 7, yes", false).expect("an example");
    assert!(!is_header);
    let expected = Ok((true, vec!["0:about 28:1".into(), "1:clerk:1".into()], vec![]));
    assert_eq!(read(&form, Numeric::Bucket, &places, "30, clerk, 7, yes."), expected);
    let (places, is_header) = form.places(b"job;y;more;id;age", false).expect("names");
    assert!(is_header);
    assert_eq!(read(&form, Numeric::Bucket, &places, "clerk;yes;;1;30"), expected);
    let quoted = read(&form, Numeric::Dense, &places, "\"a; b\";no;;1;?").expect("a line");
    assert_eq!((quoted.0, quoted.1.as_slice()), (false, ["0:a; b:1".to_owned()].as_slice()));
    assert!(quoted.2[0].is_nan());
    let missing = form.places(b"job;y;more;age", false);
    assert_eq!(missing, Err((1, ClickFault::NoColumn("id".into()))));
    assert_eq!(form.numbers(Numeric::Dense), ["age"]);
    assert_eq!([0, 1].map(|at| form.field(at, Numeric::Bucket)), ["age", "job"]);
}

#[test]
fn what_is_predicted_may_lack_labels() {
    let ok = |form: &Form, first: &str, line: &str| {
        let (places, _) = form.places(first.as_bytes(), true).expect("places");
        read(form, Numeric::Bucket, &places, line).expect("an example").1.len()
    };
    let line = criteo_line("");
    let unlabelled = &line[1..];
    assert_eq!(ok(&Form::Criteo, unlabelled, unlabelled), 38);
    assert_eq!(ok(&Form::Criteo, &line, &line), 38);
    assert_eq!(ok(&Form::Svm, "3:1", "3:1 4:1"), 2);
    assert_eq!(ok(&Form::Svm, "?", "? 3:1"), 1);
    let table = Form::Table(schema());
    assert_eq!(ok(&table, "30,clerk,7", "30,clerk,7"), 2);
    assert_eq!(ok(&table, "job,age,id", "clerk,30,7"), 2);
    assert_eq!(ok(&table, "30,clerk,7,?", "30,clerk,7,?"), 2);
}

/// A line that is short of a column is none without a label, if others have one.
#[test]
fn all_lines_to_predict_have_labels_or_none_has() {
    let fault = |form: &Form, first: &str, line: &str| {
        let (places, _) = form.places(first.as_bytes(), true).expect("places");
        read(form, Numeric::Bucket, &places, line).expect_err("a fault")
    };
    let columns = |found, expected| (1, ClickFault::Columns { found, expected });
    let line = criteo_line("1");
    let unlabelled = &line[2..];
    assert_eq!(fault(&Form::Criteo, &line, unlabelled), columns(39, 40));
    assert_eq!(fault(&Form::Criteo, unlabelled, &line), columns(40, 39));
    let table = Form::Table(schema());
    assert_eq!(fault(&table, "30,clerk,7,no", "30,clerk,7"), columns(3, 4));
    assert_eq!(fault(&table, "30,clerk,7", "30,clerk,7,no"), columns(4, 3));
    assert_eq!(fault(&table, "30,clerk,7", "30,clerk"), columns(2, 3));
}

#[test]
fn a_file_has_one_text_for_no_click() {
    let form = Form::Table(schema());
    let (places, _) = form.places(b"30,clerk,7,yes", false).expect("places");
    let mut line = Line::default();
    let mut label = |text: &str| {
        let text = format!("30,clerk,7,{text}");
        form.read(text.as_bytes(), Numeric::Bucket, &places, &mut line).map(|()| line.label)
    };
    assert_eq!(["yes", "no", "no.", "yes."].map(&mut label), [true, false, false, true].map(Ok));
    let labels = ["yes".into(), "no".into()];
    assert_eq!(label("yse"), Err((12, ClickFault::ThirdLabel { label: "yse".into(), labels })));
    assert_eq!(label("?"), Err((12, ClickFault::Label("?".into()))));
}

#[test]
fn faults_name_the_column_and_what_is_wrong() {
    let fault = |form: &Form, line: &str| {
        let (places, _) = form.places(line.as_bytes(), false).expect("places");
        read(form, Numeric::Dense, &places, line).expect_err("a fault")
    };
    let table = Form::Table(schema());
    assert_eq!(fault(&table, "x,clerk,7,no"), (1, ClickFault::NotANumber));
    assert_eq!(fault(&table, "nan,clerk,7,no"), (1, ClickFault::NotFinite));
    assert_eq!(fault(&table, "1e39,clerk,7,no"), (1, ClickFault::NotFinite));
    assert_eq!(fault(&table, "1,clerk"), (1, ClickFault::Columns { found: 2, expected: 4 }));
    assert_eq!(fault(&table, "1,clerk,7,"), (11, ClickFault::Label("".into())));
    assert_eq!(fault(&Form::Svm, "2 3:1"), (1, ClickFault::Label("2".into())));
    assert_eq!(fault(&Form::Svm, "\t"), (1, ClickFault::Label("".into())));
    assert_eq!(fault(&Form::Svm, "1 3:1 4"), (7, ClickFault::Index { has_fields: false }));
    assert_eq!(fault(&Form::Svm, "1 3:inf"), (3, ClickFault::NotFinite));
    assert_eq!(fault(&Form::Ffm, "1 3:1"), (3, ClickFault::Index { has_fields: true }));
    assert_eq!(fault(&Form::Ffm, "1 4096:3:1"), (3, ClickFault::Field(4096)));
    let short = criteo_line("1").rsplit_once('\t').expect("columns").0.to_owned();
    assert_eq!(fault(&Form::Criteo, &short), (1, ClickFault::Columns { found: 39, expected: 40 }));
}

#[test]
fn schemas_without_a_label_or_a_feature_are_refused() {
    let refused = |text: &str| text.parse::<Schema>().expect_err("a fault");
    assert_eq!(refused("a:num,b:cat"), SchemaError::Labels(0));
    assert_eq!(refused("a:label,b:label=x"), SchemaError::Labels(2));
    assert_eq!(refused("a:label,b:skip"), SchemaError::Nothing);
    for text in ["a", "a:int,b:label", ":num,b:label", "a:num,b:label="] {
        assert!(matches!(refused(text), SchemaError::Column(_)), "{text}");
    }
    assert_eq!(schema().to_string().parse(), Ok(schema()));
}
