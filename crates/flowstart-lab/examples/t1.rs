use flowstart_lab::plan::*;
use flowstart_lab::run::*;
use flowstart_lab::spec::link::Link;
use flowstart_lab::spec::*;
use rayon::prelude::*;
use std::path::Path;
fn arg(name: &str, d: &str) -> String {
    let a: Vec<String> = std::env::args().collect();
    a.iter().position(|x| x == name).map(|i| a[i + 1].clone()).unwrap_or(d.into())
}
fn main() {
    let links: Vec<Link> = arg("--links", "dsl-slow dsl-fast 3g lte")
        .split(' ')
        .map(|l| {
            let p = flowstart_lab::spec::link::PRESETS.iter().find(|p| p.name == l).unwrap();
            let mut k = Link::parse("l", &format!("{}{}", p.spec, arg("--extra", "")), Path::new(".")).unwrap();
            k.text = l.into();
            k
        })
        .collect();
    let transport = transport::Transport::parse("t", &arg("--transport", "model-quic:profile=gquic")).unwrap();
    let base = arg("--base", "hystart");
    let bl = arg("--blitz", "");
    let mut schemes = vec![scheme("s", &base, &transport.profile.startup).unwrap()];
    for e in ["0.5", "1", "1.5", "3", "4"] {
        schemes.push(scheme("s", &format!("blitzstart:estimate={e}{bl}"), &transport.profile.startup).unwrap());
    }
    let av = avoidance("a", &arg("--avoidance", "cubic"), &transport.profile.avoidance).unwrap();
    let comp = competitor::Competitor::parse("c", &arg("--competitor", "bulk"), &transport.profile).unwrap();
    let reps: u32 = arg("--reps", "30").parse().unwrap();
    let plan = Plan {
        links,
        aqms: vec![aqm("q", "taildrop").unwrap()],
        sizes: ["70KB", "2MB", "10MB"]
            .iter()
            .map(|s| Written { text: s.to_string(), value: s.parse().unwrap() })
            .collect(),
        schemes,
        avoidance: av,
        competitors: vec![comp],
        transport,
        flows: 1,
        reps,
        seed: 1,
        hint: true,
    };
    let t = std::time::Instant::now();
    let work: Vec<_> = plan.settings().into_iter().flat_map(|s| (0..reps).map(move |r| (s, r))).collect();
    let res: Vec<_> = work.par_iter().map(|(s, r)| repetition(&plan, *s, *r)).collect();
    eprintln!("{:?}", t.elapsed());
    let cells = plan.cells();
    let mut fct = vec![vec![]; cells.len()];
    let mut lost = vec![vec![]; cells.len()];
    let mut share = vec![vec![]; cells.len()];
    for r in res {
        for (c, o) in r {
            let o = &o[0];
            if let (Some(a), Some(b)) = (o.record.completed, o.record.request_sent) {
                fct[c.index].push(a.since(b).as_millis());
                lost[c.index].push(o.record.declared_lost as f64);
                share[c.index].push(o.share.unwrap());
            } else {
                eprintln!("fail {}", plan.id(&c));
            }
        }
    }
    let m = |v: &Vec<f64>| v.iter().sum::<f64>() / v.len() as f64;
    let text = std::fs::read_to_string("/work/shared/reference/blitzstart/table1.csv").unwrap();
    let bi = std::fs::read_to_string("/work/shared/reference/blitzstart/baseline_implied.csv").unwrap();
    let mut errs = vec![];
    let mut abs_ok = 0;
    let mut consts = vec![];
    for c in &cells {
        let (l, s) = (&plan.links[c.link].text, &plan.sizes[c.size].text);
        let b = plan.baseline_of(c).index;
        if c.scheme == 0 {
            let row: Vec<&str> = bi.lines().find(|x| x.starts_with(&format!("{l},{s},"))).unwrap().split(',').collect();
            let (lo, hi, pl): (f64, f64, f64) =
                (row[2].parse().unwrap(), row[3].parse().unwrap(), row[4].parse().unwrap());
            let f = m(&fct[c.index]);
            let x = m(&lost[c.index]);
            let mid = (lo + hi) / 2.0;
            let fo = (f / lo > 0.8) && (f / hi < 1.2);
            let lo_ok = (x - pl).abs() <= (0.3 * pl).max(3.0);
            println!(
                "== {l} {s} BASE fct {f:.0} (paper {lo}-{hi}) {} lost {x:.1} (paper {pl}) {} share {:.2}",
                if fo { "ok" } else { "MISS" },
                if lo_ok { "ok" } else { "MISS" },
                m(&share[c.index])
            );
            let _ = mid;
        } else {
            let e = ["0.5", "1.0", "1.5", "3.0", "4.0"][c.scheme - 1];
            let row: Vec<&str> =
                text.lines().find(|x| x.starts_with(&format!("{l},{s},{e},"))).unwrap().split(',').collect();
            let d: f64 = row[3].parse().unwrap();
            let ld: f64 = row[6].parse().unwrap();
            let brow: Vec<&str> =
                bi.lines().find(|x| x.starts_with(&format!("{l},{s},"))).unwrap().split(',').collect();
            let mid = (brow[2].parse::<f64>().unwrap() + brow[3].parse::<f64>().unwrap()) / 2.0;
            let fac: f64 = row[4].parse().unwrap();
            let psp = if row[5] == "slower" { 1.0 / fac } else { fac };
            let psp2 = mid / (mid + d);
            let sp = m(&fct[b]) / m(&fct[c.index]);
            let counted = !(s == "70KB" && l != "lte");
            let err = (sp / psp).log2();
            if counted {
                errs.push(err.abs());
                consts.push(psp.log2());
            }
            println!(
                "   {e}: fct {:.0} speedup {sp:.2} (paper {psp:.2}/{psp2:.2}) err {err:+.2}{} lossdelta {:+.0} (paper {ld:+})",
                m(&fct[c.index]),
                if counted { "" } else { " -" },
                m(&lost[c.index]) - m(&lost[b])
            );
            if err.abs() < 0.2 {
                abs_ok += 1;
            }
        }
    }
    errs.sort_by(f64::total_cmp);
    consts.sort_by(f64::total_cmp);
    let med = consts[consts.len() / 2];
    let mut ce: Vec<f64> = consts.iter().map(|c| (c - med).abs()).collect();
    ce.sort_by(f64::total_cmp);
    println!(
        "cells {} median err {:.3} constant predictor {:.3} ok {}",
        errs.len(),
        errs[errs.len() / 2],
        ce[ce.len() / 2],
        abs_ok
    );
}
