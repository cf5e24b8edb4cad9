//! `flowstart recommend`: a table of transfers in, a scheme for them out.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const FLEET: &str = "name,weight,rate,rtt,buffer,size,known,aqm,competitor\n\
                     dsl,3,50mbit,30ms,1bdp,300KB,0.5,taildrop,cubic\n\
                     slow,1,2mbit,80ms,300ms,70KB,1,fq-codel,none\n";

fn recommend(folder: &Path, table: &str, options: &[&str]) -> Command {
    let file = folder.join("fleet.csv");
    std::fs::write(&file, table).unwrap();
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.arg("recommend").arg(file).args(options);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.arg("--json").assert().success().get_output().stdout).unwrap()
}

#[test]
fn a_fleet_gets_a_scheme_with_its_cost_and_its_losers() {
    let folder = tempfile::tempdir().unwrap();
    let schemes = ["--scheme", "slow-start", "blitzstart", "jump-start", "--reps", "3"];
    let told = json(&mut recommend(folder.path(), FLEET, &schemes));
    let recommendation = &told["recommendation"];
    assert_eq!(recommendation["scheme"], "jump-start", "{told:#}");
    assert!(told["answer"].as_str().unwrap().starts_with("jump-start: a transfer of this fleet is "));
    // Two parts of the first kind, whose path is known to half of the transfers.
    let shares: Vec<f64> =
        recommendation["kinds"].as_array().unwrap().iter().map(|kind| kind["share"].as_f64().unwrap()).collect();
    assert_eq!((shares.len(), shares.iter().sum::<f64>()), (3, 1.0));
    // Without knowledge Blitzstart is slow start.
    let dearer = [&schemes[..], &["--max-inflation", "0%"]].concat();
    let told = json(&mut recommend(folder.path(), FLEET, &dearer));
    let refused = told["recommendation"]["schemes"][2]["refused"].as_str().unwrap();
    assert!(refused.contains("more than 0.0 %"), "{refused}");
    let unknown = FLEET.replace("0.5", "0").replace(",1,fq", ",0,fq");
    let told = json(&mut recommend(folder.path(), &unknown, &["--scheme", "slow-start", "blitzstart", "--reps", "2"]));
    assert_eq!(told["recommendation"]["scheme"], "slow-start", "{told:#}");
    assert_eq!(told["recommendation"]["schemes"][1]["gain"], 1.0);
}

#[test]
fn numbers_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let told = |jobs: &str| {
        let options = ["--scheme", "slow-start", "suss", "--reps", "2", "--jobs", jobs];
        json(&mut recommend(folder.path(), FLEET, &options))
    };
    assert_eq!(told("1"), told("2"));
}

#[test]
fn bad_input_names_its_line_and_column_and_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (table, options, expected) in [
        (FLEET.replace("50mbit", "fast"), &[][..], "fleet.csv: line 2, rate: `fast` is not a rate"),
        (FLEET.replace("fq-codel", "fq-kodel"), &[], "fleet.csv: line 3, aqm: `fq-kodel`"),
        (FLEET.replace("300KB", "300XB"), &[], "fleet.csv: line 2, size: `300XB`"),
        (FLEET.replace("cubic", "kubic"), &[], "fleet.csv: line 2, competitor: `kubic`"),
        (FLEET.replace(",0.5,", ",2,"), &[], "line 2, known: `2`: allowed is a number of 0 to 1"),
        (FLEET.to_owned(), &["--scheme", "slow-start"], "two are needed"),
        (FLEET.to_owned(), &["--scheme", "slow-start", "blitsstart"], "did you mean `blitzstart`"),
        (FLEET.to_owned(), &["--max-inflation", "-1%"], "--max-inflation"),
        (FLEET.replace("cubic", "none"), &["--max-harm", "1.2"], "nobody else uses a link of this population"),
    ] {
        let refused = recommend(folder.path(), &table, options).assert().code(2);
        let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(refused.get_output().stdout.is_empty());
    }
}
