//! What every page must hold to, whatever the data.

use super::*;
use crate::chart::Key;
use crate::group::Names;

const LIBRARIES: [&str; 3] = [
    include_str!("vendor/vega.min.js"),
    include_str!("vendor/vega-lite.min.js"),
    include_str!("vendor/vega-embed.min.js"),
];

/// The page without its libraries, its script and the licence texts, none of which come from data.
fn own_part(page: &str) -> String {
    let mut page = page.to_owned();
    for library in LIBRARIES {
        let end = library.rfind("//# sourceMappingURL").unwrap_or(library.len());
        let code = library[..end].trim_end();
        assert!(page.contains(code), "a library is missing from the page");
        page = page.replace(code, "");
    }
    page = page.replace(include_str!("templates/page.js").trim_end(), "");
    match (page.find("<details class=\"licences\">"), page.rfind("</details>")) {
        (Some(start), Some(end)) => page.replace_range(start..end, ""),
        _ => panic!("a page with charts shows the libraries' licences"),
    }
    page
}

fn estimate(mean: f64) -> Estimate {
    Estimate { mean: Some(mean), ci95: Some([mean * 0.9, mean * 1.1]) }
}

/// Two links x two sizes x three schemes, with and without competitor, a published table, a run.
fn sample() -> Report {
    let mut report = Report {
        title: "Sample".to_owned(),
        answer: vec!["The second scheme is faster.".to_owned(), "Not always.".to_owned()],
        question: Some("Which?\n\nAnd why?".to_owned()),
        method: Method {
            command: "flowstart compare".to_owned(),
            directory: "out dir".to_owned(),
            ..Method::default()
        },
        ..Report::default()
    };
    for (l, link) in ["dsl-fast", "lte"].into_iter().enumerate() {
        report.links.push(Link {
            name: link.to_owned(),
            rate_mbit: Some(50.0),
            rtt_ms: Some(50.0),
            buffer: "208 packets (50 ms)".to_owned(),
            aqms: vec!["drop-tail".to_owned()],
            competitors: vec!["bulk:cubic".to_owned()],
            ..Link::default()
        });
        for (size, size_bytes) in [("70KB", 70_000), ("2MB", 2_000_000)] {
            for (k, scheme) in ["slow-start", "jump-start", "blitzstart:estimate=1.5"].into_iter().enumerate() {
                let factor = 1.0 + k as f64 / 2.0;
                report.cells.push(Cell {
                    id: format!("c{}", report.cells.len()),
                    link: link.to_owned(),
                    aqm: "drop-tail".to_owned(),
                    size: size.to_owned(),
                    size_bytes,
                    scheme: scheme.to_owned(),
                    competitor: if l == 0 { "bulk:cubic" } else { "none" }.to_owned(),
                    is_baseline: k == 0,
                    n: 30,
                    ideal_fct_ms: Some(400.0),
                    fct_ms: estimate(1400.0 / factor),
                    speedup: if k == 0 { Estimate::default() } else { estimate(factor) },
                    verdict: (k > 0).then_some(Verdict::of_interval(Kind::Faster)),
                    dropped_delta: if k == 0 { Estimate::default() } else { estimate(10.0) },
                    inflation: estimate(0.02 * factor),
                    causes: Some(Causes {
                        fct_ms: 1400.0 / factor,
                        ideal_fct_ms: 400.0,
                        causes_ms: [0.0, 1000.0 / factor, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 400.0 / factor - 400.0],
                    }),
                    share: if l == 0 { estimate(0.4) } else { Estimate::default() },
                    samples: Samples {
                        fct_ms: (0..30).map(|i| 1400.0 / factor + f64::from(i)).collect(),
                        share: if l == 0 { vec![0.4, 0.5] } else { Vec::new() },
                        dropped_packets: vec![0.0; 30],
                        max_queue_delay_ms: (0..30).map(|i| 5.0 + f64::from(i)).collect(),
                        media_delay_ms: Vec::new(),
                        size_fct: Vec::new(),
                    },
                    ..Cell::default()
                });
            }
        }
    }
    report.published = Some(PublishedTable {
        source: "a table".to_owned(),
        cells: vec![PublishedCell {
            estimate: 1.0,
            link: "dsl-fast".to_owned(),
            size: "2MB".to_owned(),
            ours_speedup: estimate(1.8),
            ours_fct_delta_ms: Some(-640.0),
            published_speedup: Some(1.9),
            published_fct_delta_ms: Some(-664.0),
            ours_loss_delta: estimate(170.0),
            published_loss_delta: Some(176.0),
            verdict: Some(Verdict::of_interval(Kind::Faster)),
        }],
        checks: vec![Check { statement: "It is faster.".to_owned(), pass: Some(false), ..Check::default() }],
        ..PublishedTable::default()
    });
    report.runs.push(ExampleRun {
        cell: "c1".to_owned(),
        link: "dsl-fast".to_owned(),
        size: "2MB".to_owned(),
        scheme: "jump-start".to_owned(),
        rtt_ms: 50.0,
        from_ms: -1000.0,
        to_ms: 1000.0,
        flows: vec![RunFlow {
            name: "new".to_owned(),
            measured: true,
            departures: (0..900).map(|i| [f64::from(i), 1500.0]).collect(),
            ..RunFlow::default()
        }],
        queue_packets: vec![[0.0, 1.0], [5.0, 9.0]],
        drops: vec![5.0],
        ..ExampleRun::default()
    });
    report
}

fn sample_trace() -> TraceReport {
    TraceReport {
        scheme: "jump-start".to_owned(),
        size: "2MB".to_owned(),
        link: Link { name: "lte".to_owned(), rate_mbit: Some(32.0), ..Link::default() },
        fct_ms: Some(900.0),
        sent: (0..100).map(|i| [f64::from(i), f64::from(i) * 1400.0]).collect(),
        acked: (0..100).map(|i| [f64::from(i) + 50.0, f64::from(i) * 1400.0]).collect(),
        dropped: vec![[3.0, 4200.0]],
        events: vec![TraceEvent { time_ms: 1.0, kind: TraceEventKind::Launch, detail: "cwnd 100".to_owned() }],
        ..TraceReport::default()
    }
}

/// Text that would break out of an element, an attribute, a script or an expression.
const HOSTILE: &str = r#"</script><img src=x onerror="alert(1)">'"\]&"#;

fn specs(page: &str) -> Vec<serde_json::Value> {
    page.split("<script type=\"application/json\" class=\"spec\">")
        .skip(1)
        .map(|rest| {
            let text = rest.split("</script>").next().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|e| panic!("a specification is not JSON: {e}"))
        })
        .collect()
}

#[test]
fn nothing_undefined_and_nothing_fetched() -> Result<(), RenderError> {
    let mut report = sample();
    report.cells[1].fct_ms = Estimate { mean: Some(f64::NAN), ci95: Some([f64::NAN, f64::INFINITY]) };
    report.cells[1].samples.fct_ms = vec![f64::NAN; 3];
    report.cells[2].ideal_fct_ms = Some(0.0);
    report.runs[0].fct_ms = Some(f64::NAN);
    report.runs[0].cwnd = vec![[f64::NAN, 1.0], [1.0, f64::INFINITY]];
    let mut trace = sample_trace();
    trace.share = Some(f64::NAN);
    trace.sent.push([f64::NAN, f64::NAN]);
    for page in [render(&report)?, render_trace(&trace)?] {
        assert!(!page.contains("sourceMappingURL"));
        let own = own_part(&page);
        for word in ["NaN", "undefined", "Infinity", ">inf<", ">null<"] {
            assert!(!own.contains(word), "the page contains {word}");
        }
        // Addresses may stand in text (licences, schema names), not where a browser would fetch them.
        for opening in ["<script src", "<link rel=\"stylesheet\"", "<img", "<iframe", "@import", "url(http"] {
            assert!(!own.contains(opening), "the page contains {opening}");
        }
        for tag in own.split('<').filter(|tag| ["script", "link", "img"].iter().any(|name| tag.starts_with(name))) {
            let attributes = tag.split('>').next().unwrap_or_default();
            assert!(!attributes.contains("http"), "{attributes}");
        }
    }
    Ok(())
}

#[test]
fn a_call_beside_the_flows_has_a_section_of_its_own() -> Result<(), RenderError> {
    let mut report = sample();
    assert!(!render(&report)?.contains("call-section"));
    report.cells[1].call =
        Some(Call { not_shown: estimate(0.162), longest_freeze_ms: estimate(775.0), ..Call::default() });
    report.cells[2].call = Some(Call { frozen: Estimate { mean: Some(f64::NAN), ci95: None }, ..Call::default() });
    let page = render(&report)?;
    let section = page.split("id=\"call-section\"").nth(1).and_then(|rest| rest.split("</section>").next());
    let section = section.unwrap_or_default();
    assert!(section.contains(">16.2") && section.contains(">775<"), "{section}");
    // One row for each cell with a call, and no number where there is none.
    assert_eq!(section.matches("<th scope=\"row\">").count(), 2);
    assert!(!section.contains("NaN") && !page.contains("media-section"));
    // On a phone each row is a card, with a label for each number.
    assert!(section.contains("class=\"plain stacked\"") && section.matches("data-label=").count() == 2 * 10);
    Ok(())
}

#[test]
fn user_text_is_escaped() -> Result<(), RenderError> {
    let mut report = sample();
    let hostile = HOSTILE.to_owned();
    report.title = hostile.clone();
    report.answer = vec![hostile.clone()];
    report.analysis = Some(hostile.clone());
    report.links[0].name = hostile.clone();
    report.links[0].buffer = hostile.clone();
    report.method.directory = hostile.clone();
    report.method.files = vec![DataFile { name: hostile.clone(), what: hostile.clone() }];
    for cell in &mut report.cells[..6] {
        cell.link = hostile.clone();
        cell.scheme.push_str(HOSTILE);
        cell.id = hostile.clone();
    }
    report.runs[0].scheme = hostile.clone();
    if let Some(published) = &mut report.published {
        published.source = hostile.clone();
        published.cells[0].link = hostile.clone();
        published.checks[0].measured = hostile.clone();
    }
    let mut trace = sample_trace();
    trace.scheme = hostile.clone();
    trace.exit_reason = Some(hostile.clone());
    trace.events[0].detail = hostile;
    for page in [render(&report)?, render_trace(&trace)?] {
        let own = own_part(&page);
        assert!(!own.contains("<img") && !own.contains("onerror=\""));
        assert!(!specs(&page).is_empty());
    }
    Ok(())
}

#[test]
fn undefined_metrics_are_en_dashes() -> Result<(), RenderError> {
    let mut report = Report::default();
    report.cells.push(Cell { id: "c1".to_owned(), scheme: "slow-start".to_owned(), ..Cell::default() });
    // Somebody has shared a link, so there are columns for it.
    report.cells.push(Cell { id: "c2".to_owned(), share: estimate(0.5), ..Cell::default() });
    let page = render(&report)?;
    for label in ["FCT", "sent twice", "share", "harm (Mbit)"] {
        assert!(page.contains(&format!("data-label=\"{label}\" data-sort=\"\">–</td>")), "{label}");
    }
    Ok(())
}

#[test]
fn empty_reports_render() -> Result<(), RenderError> {
    let page = render(&Report::default())?;
    assert!(page.contains("This report has no cells."));
    assert!(page.len() < 60_000, "a page without charts does not carry the libraries");
    let page = render_trace(&TraceReport::default())?;
    assert!(page.contains("Nothing was recorded."));
    let bare =
        Report { runs: vec![ExampleRun::default()], published: Some(PublishedTable::default()), ..Report::default() };
    render(&bare)?;
    Ok(())
}

#[test]
fn verdicts_are_told_by_shape_in_the_table_and_in_the_plot() -> Result<(), RenderError> {
    let all = [
        (Verdict::of_interval(Kind::Faster), "▲", "triangle-up"),
        (Verdict::of_interval(Kind::FasterByWaste), "◭", "M0,-1"),
        (Verdict::of_interval(Kind::Slower), "▼", "triangle-down"),
        (Verdict::of_interval(Kind::Unclear), "●", "circle"),
        (Verdict::of_interval(Kind::Same), "=", "M-1,-0.7"),
        (Verdict::of_one_run(Kind::Faster), "◆", "diamond"),
        (Verdict::of_interval(Kind::Negligible), "≈", "M-1,-0.4"),
    ];
    for (place, (verdict, glyph, shape)) in all.into_iter().enumerate() {
        let cell = Cell { speedup: estimate(1.5), verdict: Some(verdict), ..Cell::default() };
        let page = render(&Report { cells: vec![cell], ..Report::default() })?;
        let table = page.split("<tbody>").nth(1).unwrap_or_default();
        assert!(table.contains("role=\"img\"") && table.contains(glyph), "{glyph}");
        let plot = &specs(&page)[0];
        let row = plot["data"]["values"].as_str().and_then(|text| text.lines().nth(1)).unwrap_or_default();
        assert!(row.starts_with(&format!("0\t{place}\t1.5")), "{row}");
        let shapes = plot["hconcat"][1]["layer"][5]["encoding"]["shape"]["scale"]["range"][place].as_str();
        assert!(shapes.is_some_and(|name| name.starts_with(shape)), "{shapes:?}");
    }
    Ok(())
}

#[test]
fn the_plot_names_what_varies_and_has_the_costs_of_the_baseline() -> Result<(), RenderError> {
    let plot = |report: &Report| Ok::<_, RenderError>(specs(&render(report)?).swap_remove(0));
    let report = sample();
    let all = plot(&report)?;
    let text = all["transform"].to_string();
    // Two links and two sizes are settings, schemes are rows.
    assert!(text.contains("dsl-fast, beside bulk:cubic, 70KB") && text.contains("blitzstart:estimate=1.5"), "{text}");
    let rows: Vec<&str> = all["data"]["values"].as_str().unwrap_or_default().lines().collect();
    assert_eq!(rows.len(), 1 + 8, "a row for each comparison");
    let row: Vec<f64> = rows[1].split('\t').filter_map(|value| value.parse().ok()).collect();
    // Sent twice by the scheme and by the baseline of its setting.
    assert!((row[5] - 0.03).abs() < 1e-9 && (row[9] - 0.02).abs() < 1e-9, "{row:?}");
    // What is compared need not be a scheme: here it is the link, and the baseline is named after its link.
    let mut cells = vec![report.cells[0].clone(), report.cells[6].clone()];
    (cells[1].speedup, cells[1].verdict) = (estimate(1.5), Some(Verdict::of_interval(Kind::Faster)));
    (cells[1].is_baseline, cells[1].baseline, cells[1].competitor) = (false, "c0".to_owned(), "bulk:cubic".to_owned());
    assert_eq!(plot(&Report { cells, ..Report::default() })?["description"], "lte against dsl-fast");
    let one = Report { cells: report.cells[..2].to_vec(), ..Report::default() };
    let text = plot(&one)?["transform"].to_string();
    assert!(!text.contains("dsl-fast") && text.contains("jump-start"), "{text}");
    Ok(())
}

#[test]
fn aqms_are_colours_of_one_panel() -> Result<(), RenderError> {
    let mut report = sample();
    report.cells.retain(|cell| cell.competitor == "none" && cell.size == "2MB");
    let more: Vec<Cell> = report.cells.iter().map(|cell| Cell { aqm: "codel".to_owned(), ..cell.clone() }).collect();
    report.cells.extend(more);
    let page = render(&report)?;
    let all = specs(&page);
    let cost = all.iter().find(|spec| spec["description"].to_string().contains("inflation")).unwrap_or(&all[0]);
    let panels = cost["concat"].as_array().map_or(0, Vec::len);
    let colours = &cost["concat"][0]["encoding"]["color"]["scale"]["range"];
    let shapes = &cost["concat"][0]["encoding"]["shape"]["scale"]["range"];
    assert_eq!(panels, 1);
    // Three schemes with two AQMs: a colour for each AQM, a shape for each scheme.
    assert!(colours[0] == colours[1] && colours[1] == colours[2] && colours[2] != colours[3], "{colours}");
    assert!(shapes[0] == shapes[3] && shapes[0] != shapes[1], "{shapes}");
    Ok(())
}

#[test]
fn two_settings_that_vary_make_a_map_for_each_scheme() -> Result<(), RenderError> {
    let mut report = sample();
    for size in ["1MB", "3MB"] {
        let more: Vec<Cell> = report.cells.iter().filter(|cell| cell.size == "2MB").cloned().collect();
        report.cells.extend(more.into_iter().map(|cell| Cell { size: size.to_owned(), ..cell }));
    }
    report.cells.iter_mut().for_each(|cell| cell.competitor = "none".to_owned());
    let page = render(&report)?;
    let heat = specs(&page).into_iter().find(|spec| spec["description"].to_string().contains("Speed-up by link"));
    let maps = heat.as_ref().and_then(|spec| spec["concat"].as_array()).cloned().unwrap_or_default();
    assert_eq!(
        maps.iter().map(|map| map["title"].clone()).collect::<Vec<_>>(),
        ["jump-start", "blitzstart:estimate=1.5"]
    );
    assert_eq!(maps[0]["data"]["values"].as_str().map(|text| text.lines().count()), Some(1 + 2 * 4));
    // Links that are a grid of rates and RTTs are two axes by themselves.
    report.cells.retain(|cell| cell.size == "2MB" && cell.scheme != "jump-start");
    let (mut links, mut cells) = (Vec::new(), Vec::new());
    for (k, (rate, rtt)) in
        [(10.0, 20.0), (10.0, 90.0), (50.0, 20.0), (50.0, 90.0), (5.0, 20.0), (5.0, 90.0)].into_iter().enumerate()
    {
        links.push(Link { name: format!("l{k}"), rate_mbit: Some(rate), rtt_ms: Some(rtt), ..Link::default() });
        cells.extend(report.cells[..2].iter().map(|cell| Cell { link: format!("l{k}"), ..cell.clone() }));
    }
    let page = render(&Report { links, cells, ..Report::default() })?;
    assert!(page.contains("Speed-up by rate and RTT"));
    Ok(())
}

#[test]
fn names_of_120_characters_stand_in_full_in_the_table_only() -> Result<(), RenderError> {
    let long = |rate: u32| {
        format!(
            "rate={rate}mbit,rtt=30ms,buffer=1bdp,up_rate=5mbit,up_buffer=100pkt,access_rate=1gbit,access_jitter=1ms/1ms,loss=0.1%,hops=2"
        )
    };
    let mut report = sample();
    for (from, to) in [("dsl-fast", long(20)), ("lte", long(40))] {
        report.links.iter_mut().filter(|link| link.name == from).for_each(|link| link.name.clone_from(&to));
        report.cells.iter_mut().filter(|cell| cell.link == from).for_each(|cell| cell.link.clone_from(&to));
    }
    let page = render(&report)?;
    assert!(page.contains("rate=20mbit,<wbr>rtt=30ms"));
    for spec in specs(&page).iter().filter(|spec| spec["vconcat"].is_null()) {
        let text = spec.to_string();
        assert!(!text.contains("access_rate"), "{text}");
    }
    Ok(())
}

#[test]
fn replay_commands_can_be_pasted() -> Result<(), RenderError> {
    let page = render(&sample())?;
    // The apostrophes that the directory's blank needs, as HTML writes them.
    assert!(page.contains("flowstart trace --cell c1 --rep 0 --from &#x27;out dir&#x27;"), "no replay command");
    Ok(())
}

#[test]
fn charts_are_complete_and_small() -> Result<(), RenderError> {
    let mut report = sample();
    for cell in &mut report.cells {
        cell.samples.fct_ms = (0..10_000).map(|i| f64::from(i % 997)).collect();
    }
    let page = render(&report)?;
    let specs = specs(&page);
    // Forest plot, scatter, distributions of FCT, queue, and share, Pareto picture, waterfall, one run.
    assert_eq!(specs.len(), 8);
    for spec in &specs {
        let text = spec.to_string();
        assert!(spec["description"].is_string() && spec["$schema"].is_string());
        assert!(!text.contains("\"url\"") && text.len() < 200_000, "{} bytes", text.len());
    }
    assert_eq!(page.matches("hidden>chart specification").count(), specs.len());
    assert!(page.matches("aria-label=").count() > specs.len());
    Ok(())
}

#[test]
fn one_size_and_nobody_else_still_has_its_cost() -> Result<(), RenderError> {
    let mut report = sample();
    report.cells.retain(|cell| cell.competitor == "none" && cell.size == "2MB");
    report.published = None;
    report.runs.clear();
    let page = render(&report)?;
    assert!(page.contains("No other flow uses the link, so nobody is harmed."));
    assert!(!page.contains("data-label=\"share\"") && !page.contains("data-label=\"harm (Mbit)\""));
    let specs = specs(&page);
    let cost = specs.iter().find(|spec| spec["description"].to_string().contains("inflation")).unwrap_or(&specs[0]);
    assert_eq!(cost["concat"].as_array().map(Vec::len), Some(1));
    // A header and a row for each of the three schemes, with a size that needs no scale.
    assert_eq!(cost["concat"][0]["data"]["values"].to_string().matches("\\n").count(), 3);
    assert!(cost["concat"][0]["encoding"]["size"]["scale"].is_null());
    Ok(())
}

#[test]
fn bars_end_at_the_fct_even_when_a_cause_is_negative() -> Result<(), RenderError> {
    let mut report = sample();
    report.cells.truncate(1);
    report.cells[0].causes = Some(Causes {
        fct_ms: 500.0,
        ideal_fct_ms: 400.0,
        causes_ms: [-0.000_001, 130.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -30.0],
    });
    let page = render(&report)?;
    let specs = specs(&page);
    let bars = specs.iter().find(|spec| spec["description"].to_string().contains("limit and the causes"));
    let layers = bars.map(|spec| spec["concat"][0]["layer"].clone()).unwrap_or_default();
    // Scheme, part, from, to: the limit is shortened, and the numbers below the chart say why.
    assert_eq!(layers[0]["data"]["values"], "i\tpart\tfrom\tto\n0\t0\t0\t370\n0\t2\t370\t500");
    assert_eq!(layers[1]["data"]["values"], "i\tfct\n0\t500");
    assert!(page.contains(">−30.0</td>") && page.contains(">130.0</td>"));
    Ok(())
}

#[test]
fn a_report_without_causes_says_why() -> Result<(), RenderError> {
    let mut report = sample();
    report.cells.iter_mut().for_each(|cell| cell.causes = None);
    assert!(!render(&report)?.contains("Where the time went"));
    report.unexplained = Some("Too many cells.".to_owned());
    assert!(render(&report)?.contains("Too many cells."));
    Ok(())
}

#[test]
fn a_trace_page_shows_the_causes_and_their_sum() -> Result<(), RenderError> {
    let mut trace = sample_trace();
    trace.causes = Some(Causes {
        fct_ms: 900.0,
        ideal_fct_ms: 500.0,
        causes_ms: [0.0, 300.0, 0.0, 0.0, 80.0, 0.0, 20.0, 0.0, 0.0],
    });
    let page = render_trace(&trace)?;
    let numbers = |ms: &str, percent: &str| {
        format!(
            "</small></th><td class=\"num\" data-label=\"ms\">{ms}</td>\
             <td class=\"num\" data-label=\"% of the delay\">{percent}</td>"
        )
    };
    assert!(page.contains(&numbers("300.0", "75")));
    assert!(page.contains(&format!("FCT minus the physical limit{}", numbers("400.0", "100"))));
    Ok(())
}

#[test]
fn runs_beside_each_other_begin_together() -> Result<(), RenderError> {
    let mut report = sample();
    let mut later = report.runs[0].clone();
    later.scheme = "slow-start".to_owned();
    later.from_ms = -120.0;
    later.queue_packets = vec![[-120.0, 7.0], [900.0, 8.0]];
    report.runs.push(later);
    let page = render(&report)?;
    let runs: Vec<_> = specs(&page).into_iter().filter(|spec| spec["vconcat"].is_array()).collect();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        for panel in run["vconcat"].as_array().into_iter().flatten() {
            assert_eq!(panel["layer"][0]["encoding"]["x"]["scale"]["domain"], serde_json::json!([-0.12, 1.0]));
        }
        let queue = run["vconcat"][2]["layer"][0]["data"]["values"].as_str().unwrap_or_default();
        let first = queue.lines().nth(1).and_then(|line| line.split('\t').next()).and_then(|t| t.parse::<f64>().ok());
        assert!(first.is_some_and(|t| t <= -0.12), "{queue}");
        assert!(queue.lines().last().is_some_and(|line| line.starts_with("1\t")), "{queue}");
    }
    Ok(())
}

#[test]
fn long_traces_are_thinned() -> Result<(), RenderError> {
    let mut trace = sample_trace();
    trace.sent = (0..100_000).map(|i| [f64::from(i), f64::from(i)]).collect();
    let page = render_trace(&trace)?;
    let table = specs(&page)[0]["vconcat"][0]["data"]["values"].to_string();
    let rows = table.matches("\\n").count();
    assert!((20_000..=20_010).contains(&rows), "{rows}");
    assert!(page.contains("are shown thinned"));
    Ok(())
}

/// A run whose scheme compares windows until startup ends, and whose congestion avoidance follows.
fn with_variables(scheme: &str) -> TraceReport {
    let variable = |algorithm: &str, name: &str, unit: &str, points: &[[f64; 2]], until_ms| TraceVariable {
        algorithm: algorithm.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        points: points.to_vec(),
        until_ms,
    };
    TraceReport {
        scheme: scheme.to_owned(),
        cwnd: vec![[0.0, 12_000.0], [80.0, 24_000.0]],
        variables: vec![
            variable("search", "curr_delv", "bytes", &[[20.0, 9000.0]], Some(60.0)),
            variable("cubic", "W_max", "bytes", &[[70.0, 30_000.0]], None),
            variable("search", "prev_delv", "bytes", &[[20.0, 5000.0]], Some(60.0)),
            variable("search", "norm_diff", "", &[[20.0, -0.5], [40.0, 0.3]], Some(60.0)),
        ],
        ..sample_trace()
    }
}

#[test]
fn inner_variables_have_a_panel_for_each_algorithm_and_unit_and_a_switch_each() -> Result<(), RenderError> {
    let page = render_trace(&with_variables("search"))?;
    let specs = specs(&page);
    let panels = specs[1]["vconcat"].as_array().expect("panels below each other");
    let title = |panel: &serde_json::Value| panel["layer"][0]["encoding"]["y"]["title"].clone();
    assert_eq!(panels.iter().map(title).collect::<Vec<_>>(), ["search (KB)", "search", "cubic (KB)"]);
    assert_eq!(panels[0]["layer"].as_array().map(Vec::len), Some(2));
    // The axes are those of the other panels, and a value holds while its algorithm is in charge.
    let x = |spec: &serde_json::Value| spec["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"].clone();
    assert_eq!(x(&specs[0]), x(&specs[1]));
    assert_eq!(panels[0]["layer"][0]["data"]["values"], "t\tv\n0.02\t9\n0.06\t9");
    for (place, name) in ["curr_delv", "prev_delv", "norm_diff", "W_max"].into_iter().enumerate() {
        let signal = format!("show_0_{place}");
        assert_eq!(specs[1]["params"][place]["name"], signal.as_str());
        assert!(page.contains(&format!("data-signal=\"{signal}\"")) && page.contains(name), "{name}");
    }
    assert!(!render_trace(&sample_trace())?.contains("Inner variables"));
    Ok(())
}

#[test]
fn schemes_lie_over_each_other_with_a_line_and_a_switch_each() -> Result<(), RenderError> {
    let slow = TraceReport { fct_ms: None, exit_reason: None, ..with_variables("slow-start") };
    let report = OverlayReport {
        answer: vec!["search finishes first.".to_owned()],
        runs: vec![with_variables("search"), slow],
        ..OverlayReport::default()
    };
    let page = render_overlay(&report)?;
    let specs = specs(&page);
    assert_eq!(specs.len(), 3, "the overlay, and the variables of each run");
    let panels = specs[0]["vconcat"].as_array().expect("panels below each other");
    // Acknowledged bytes and cwnd; the other series are empty.
    assert_eq!(panels.len(), 2);
    let lines = |panel: &serde_json::Value| {
        let layers = panel["layer"].as_array().into_iter().flatten();
        layers.filter(|layer| layer["mark"]["type"] == "line").map(|layer| layer["mark"]["opacity"].clone()).collect()
    };
    for panel in panels {
        let lines: Vec<serde_json::Value> = lines(panel);
        assert_eq!(lines[0]["expr"], "show_0 ? 1 : 0");
        assert_eq!((lines.len(), &lines[1]["expr"]), (2, &"show_1 ? 1 : 0".into()));
    }
    assert!(page.contains("data-signal=\"show_1\"") && page.contains("search, slow-start: 2MB on lte"));
    assert!(page.contains("the transfer ended in startup") && page.contains("the run ended in startup"));
    assert!(render_overlay(&OverlayReport::default())?.contains("Nothing was recorded."));
    Ok(())
}

#[test]
fn a_run_says_why_startup_ended_or_that_it_did_not() -> Result<(), RenderError> {
    let ended = TraceReport { exit_ms: Some(80.0), exit_reason: Some("loss".to_owned()), ..sample_trace() };
    assert!(render_trace(&ended)?.contains("because: loss"));
    assert!(render_trace(&sample_trace())?.contains("the transfer ended in startup"));
    assert!(render_trace(&TraceReport { fct_ms: None, ..sample_trace() })?.contains("the run ended in startup"));
    Ok(())
}

#[test]
fn reports_survive_json() -> Result<(), serde_json::Error> {
    let mut report = sample();
    // Values that a decimal text holds exactly.
    report.cells.iter_mut().for_each(|c| {
        *c = Cell {
            id: c.id.clone(),
            fct_ms: Estimate { mean: Some(100.0), ci95: Some([90.5, 110.5]) },
            ..Cell::default()
        }
    });
    report.runs.clear();
    report.published = None;
    let back: Report = serde_json::from_str(&serde_json::to_string(&report)?)?;
    assert_eq!(back, report);
    assert!(serde_json::from_str::<Report>(r#"{"titel": "misspelt"}"#).is_err());
    Ok(())
}

/// A cell of one link and size.
fn cell(scheme: &str, fct: [f64; 3], inflation: [f64; 3]) -> Cell {
    let known = |[mean, low, high]: [f64; 3]| Estimate { mean: Some(mean), ci95: Some([low, high]) };
    Cell {
        link: "lte".to_owned(),
        size: "2MB".to_owned(),
        scheme: scheme.to_owned(),
        ideal_fct_ms: Some(100.0),
        fct_ms: known(fct),
        inflation: known(inflation),
        ..Cell::default()
    }
}

#[test]
fn schemes_that_nobody_beats_are_named_and_what_intervals_leave_open_too() -> Result<(), RenderError> {
    let cells = vec![
        cell("soonest", [200.0, 190.0, 210.0], [0.2, 0.19, 0.21]),
        cell("cheapest", [400.0, 390.0, 410.0], [0.0, 0.0, 0.0]),
        // Later and dearer than the soonest, but its intervals reach down to it.
        cell("close", [205.0, 195.0, 215.0], [0.21, 0.2, 0.22]),
        cell("hopeless", [500.0, 490.0, 510.0], [0.5, 0.49, 0.51]),
    ];
    let page = render(&Report { cells, ..Report::default() })?;
    let at = page.find("Schemes that nobody beats").unwrap_or_default();
    let table = page[at..].split("</table>").next().unwrap_or_default();
    assert!(table.contains(r#"<td class="place" data-label="nobody beats">soonest (2.00; 20.0"#), "{table}");
    assert!(table.contains("; cheapest (4.00; 0.0"), "{table}");
    assert!(table.contains(r#"intervals">close (2.05; 21.0"#), "{table}");
    assert!(!table.contains("hopeless"), "{table}");
    Ok(())
}

#[test]
fn four_sizes_make_a_chart_of_speed_ups_and_three_do_not() -> Result<(), RenderError> {
    let at = |kilobytes: u64, scheme: &str| Cell {
        size: format!("{kilobytes}KB"),
        size_bytes: kilobytes * 1000,
        is_baseline: scheme == "slow-start",
        model_speedup: Some(2.0),
        rounds_speedup: (scheme == "quick-start").then_some(1.8),
        speedup: Estimate { mean: Some(1.5), ci95: Some([1.4, 1.6]) },
        ..cell(scheme, [1.5, 1.4, 1.6], [0.0; 3])
    };
    let page = |sizes: &[u64], scheme: &str| {
        let cells = sizes.iter().flat_map(|kilobytes| [at(*kilobytes, "slow-start"), at(*kilobytes, scheme)]);
        render(&Report { cells: cells.collect(), ..Report::default() })
    };
    let title = "Speed-up against transfer size";
    let four = page(&[1, 10, 100, 1000], "jump-start")?;
    assert!(four.contains(title) && four.contains("closed form over the physical limit"));
    assert!(!four.contains("equation (2)"));
    assert!(page(&[1, 10, 100, 1000], "quick-start")?.contains("equation (2)"));
    assert!(!page(&[1, 10, 100], "jump-start")?.contains(title));
    Ok(())
}

#[test]
fn aqms_share_the_panel_of_speed_ups_and_have_colours() -> Result<(), RenderError> {
    let at = |kilobytes: u64, aqm: &str, scheme: &str| Cell {
        size: format!("{kilobytes}KB"),
        size_bytes: kilobytes * 1000,
        aqm: aqm.to_owned(),
        is_baseline: scheme == "slow-start" && aqm == "taildrop",
        speedup: Estimate { mean: Some(1.5), ci95: None },
        ..cell(scheme, [1.5, 1.4, 1.6], [0.0; 3])
    };
    let sizes = [1, 10, 100, 1000];
    let of = |kilobytes: u64| {
        let pairs =
            [("taildrop", "slow-start"), ("taildrop", "blitzstart"), ("pie", "slow-start"), ("pie", "blitzstart")];
        pairs.map(|(aqm, scheme)| at(kilobytes, aqm, scheme))
    };
    let cells: Vec<Cell> = sizes.into_iter().flat_map(of).collect();
    let names = Names::of(&cells.iter().collect::<Vec<_>>());
    let Some(chart) = chart::sizes(&cells, &names, &Key::of(&cells, &names)) else { panic!("four sizes") };
    let panels = chart.spec["concat"].as_array().map_or(0, Vec::len);
    assert_eq!(panels, 1, "{}", chart.spec);
    // A line without data would make Vega warn: neither the model nor the count of rounds is known here.
    assert_eq!(chart.spec["concat"][0]["layer"].as_array().map_or(0, Vec::len), 4);
    let colours: Vec<&str> = chart.legend.iter().take(4).map(|item| item.colour).collect();
    assert!(colours[0] == colours[1] && colours[2] == colours[3] && colours[0] != colours[2], "{colours:?}");
    Ok(())
}

#[test]
fn two_offered_loads_make_a_chart_and_one_does_not() -> Result<(), RenderError> {
    let at = |load: f64| Cell {
        load: Some(load),
        arrival: format!("poisson:load={load}mbit"),
        ..cell("slow-start", [1.0, 0.9, 1.1], [0.0; 3])
    };
    let title = "Mean FCT against offered load";
    let two = render(&Report { cells: vec![at(0.1), at(0.2)], ..Report::default() })?;
    assert!(two.contains(title) && two.contains("offered load (% of the link"));
    let one = render(&Report { cells: vec![at(0.1)], ..Report::default() })?;
    assert!(!one.contains(title));
    Ok(())
}

#[test]
fn points_make_curves_in_place_of_distributions() -> Result<(), RenderError> {
    let at = |x: f64, approved: f64| Cell {
        curves: vec![CurvePoint {
            metric: "requests approved (%)".to_owned(),
            variant: "qs_thresh=0.9".to_owned(),
            x_title: "web sessions".to_owned(),
            x,
            y: estimate(approved),
        }],
        ..cell("quick-start", [1.0, 0.9, 1.1], [0.0; 3])
    };
    let page = render(&Report { cells: vec![at(5.0, 70.0), at(10.0, 60.0)], ..Report::default() })?;
    assert!(page.contains("Metrics against web sessions") && page.contains("requests approved (%)"));
    assert!(!own_part(&page).contains("id=\"distributions\"") && !own_part(&page).contains("flowstart trace"));
    // Without a value there is nothing to draw.
    let page = render(&Report { cells: vec![at(5.0, 0.0)], ..Report::default() })?;
    assert!(!page.contains("Metrics against web sessions"));
    Ok(())
}

#[test]
fn connections_are_points() -> Result<(), RenderError> {
    let mut with = cell("quick-start", [1.0, 0.9, 1.1], [0.0; 3]);
    with.samples.size_fct = vec![[1460.0, 120.0], [146_000.0, 400.0]];
    let page = render(&Report { cells: vec![with], ..Report::default() })?;
    assert!(page.contains("One point is one connection") && page.contains("FCT (s)"));
    Ok(())
}

#[test]
fn a_change_compares_each_cell_with_itself_and_shows_those_that_changed_first() -> Result<(), RenderError> {
    let mut cells: Vec<Change> = sample().cells[..3]
        .iter()
        .map(|cell| Change {
            before: cell.clone(),
            after: cell.clone(),
            pairs: 30,
            fct_ratio: Estimate { mean: Some(1.0), ci95: None },
            verdict: Some(Verdict::of_interval(Kind::Same)),
            ..Change::default()
        })
        .collect();
    cells[2].fct_ratio = Estimate { mean: Some(0.8), ci95: Some([0.75, 0.85]) };
    cells[2].verdict = Some(Verdict::of_interval(Kind::Slower));
    cells[2].before.inflation = estimate(0.4);
    let page = render_changes(&ChangeReport { title: HOSTILE.to_owned(), cells, ..ChangeReport::default() })?;
    let plot = specs(&page).swap_remove(0);
    let rows: Vec<&str> = plot["data"]["values"].as_str().unwrap_or_default().lines().skip(1).collect();
    // Row, verdict, ratio, its ends, what is sent twice after; then lost and harm, which are unknown; then before.
    assert_eq!(rows.len(), 3);
    assert!(rows[0].starts_with("0\t4\t1\t1\t1\t") && rows[2].starts_with("2\t2\t0.8\t0.75\t0.85\t0.04\t"), "{rows:?}");
    assert!(rows[2].contains("\t0.4\t"), "{rows:?}");
    let table = page.split("<tbody>").nth(1).unwrap_or_default();
    let place = |name: &str| table.find(name).unwrap_or(usize::MAX);
    assert!(place("blitzstart:estimate=1.5</td>") < place("slow-start</td>"), "{table}");
    assert!(page.contains("slower than before") && !own_part(&page).contains("<img"));
    assert!(render_changes(&ChangeReport::default())?.contains("There is nothing to compare."));
    Ok(())
}

/// Two AQMs with two schemes each: the first scheme on the second AQM is compared with the first AQM.
fn with_two_kinds_of_baselines() -> Vec<Cell> {
    let of = |id: &str, aqm: &str, scheme: &str, baseline: &str| Cell {
        id: id.to_owned(),
        aqm: aqm.to_owned(),
        baseline: baseline.to_owned(),
        is_baseline: baseline.is_empty(),
        speedup: if baseline.is_empty() { Estimate::default() } else { estimate(1.5) },
        verdict: (!baseline.is_empty()).then_some(Verdict::of_interval(Kind::Faster)),
        ..cell(scheme, [150.0, 140.0, 160.0], [0.0; 3])
    };
    vec![
        of("c0", "taildrop", "slow-start", ""),
        of("c1", "taildrop", "jump-start", "c0"),
        of("c2", "cake", "slow-start", "c0"),
        of("c3", "cake", "jump-start", "c2"),
    ]
}

#[test]
fn an_interval_that_goes_on_beyond_the_plot_ends_in_an_arrow() -> Result<(), RenderError> {
    let wide = Estimate { mean: Some(1.5), ci95: Some([0.1, 90.0]) };
    let of = |scheme: &str, baseline: &str, speedup: Estimate| Cell {
        id: scheme.to_owned(),
        baseline: baseline.to_owned(),
        is_baseline: baseline.is_empty(),
        speedup,
        verdict: (!baseline.is_empty()).then_some(Verdict::of_interval(Kind::Unclear)),
        ..cell(scheme, [150.0, 140.0, 160.0], [0.0; 3])
    };
    let cells = vec![
        of("slow-start", "", Estimate::default()),
        of("a", "slow-start", wide),
        of("b", "slow-start", estimate(1.5)),
    ];
    let page = render(&Report { cells, ..Report::default() })?;
    let table = specs(&page)[0]["data"]["values"].as_str().unwrap_or_default().to_owned();
    let ends: Vec<String> =
        table.lines().map(|line| line.rsplitn(3, '\t').take(2).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(ends, ["above,below", "1,1", "0,0"], "{table}");
    Ok(())
}

/// Transfers lose time and flows without end lose bytes: no axis and no column has both.
#[test]
fn harm_in_two_units_has_a_column_and_a_row_of_panels_for_each() -> Result<(), RenderError> {
    let of = |id: &str, competitor: &str, is_baseline: bool| Cell {
        id: format!("{id}/{competitor}"),
        competitor: competitor.to_owned(),
        baseline: if is_baseline { String::new() } else { format!("slow-start/{competitor}") },
        is_baseline,
        ideal_fct_ms: Some(100.0),
        speedup: if is_baseline { Estimate::default() } else { estimate(1.5) },
        verdict: (!is_baseline).then_some(Verdict::of_interval(Kind::Faster)),
        inflation: estimate(0.01),
        goodput_lost_mbit: if competitor == "cubic" { estimate(7.5) } else { Estimate::default() },
        extra_fct_ms: if competitor == "short" { estimate(31.0) } else { Estimate::default() },
        ..cell(id, [150.0, 140.0, 160.0], [0.0; 3])
    };
    let both = ["cubic", "short"].map(|other| [of("slow-start", other, true), of("a", other, false)]);
    let page = render(&Report { cells: both.concat(), ..Report::default() })?;
    let specs = specs(&page);
    let header = specs[0]["data"]["values"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
    let place = |name: &str| header.split('\t').position(|column| column == name);
    let (late, less) = (place("c2"), place("c3"));
    let rows: Vec<Vec<&str>> = specs[0]["data"]["values"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    let harm: Vec<[&str; 2]> = rows
        .iter()
        .map(|row| [late, less].map(|place| place.and_then(|place| row.get(place)).copied().unwrap_or("")))
        .collect();
    assert_eq!(harm, [["-1", "7.5"], ["31", "-1"]], "{header}");
    let text = specs.iter().map(ToString::to_string).collect::<String>();
    assert!(text.contains("harm (ms)") && text.contains("harm (Mbit)") && text.contains("harm (ms later)"), "{text}");
    Ok(())
}

/// The labels of the forest plot's rows: setting and name.
fn labels(page: &str) -> (String, String) {
    let transform = &specs(page)[0]["transform"];
    let of = |place: usize| transform[place]["calculate"].as_str().unwrap_or_default().to_owned();
    (of(1), of(0))
}

#[test]
fn rows_name_their_baseline_where_baselines_differ() -> Result<(), RenderError> {
    let mut cells = with_two_kinds_of_baselines();
    let page = render(&Report { cells: cells.clone(), ..Report::default() })?;
    let (settings, names) = labels(&page);
    let expected = r#"["jump-start against slow-start","slow-start against taildrop","jump-start against slow-start"]"#;
    assert!(names.starts_with(expected), "{names}");
    assert!(settings.starts_with(r#"["taildrop","cake","cake"]"#), "{settings}");
    assert!(page.contains("All 3 comparisons with their baselines"));
    assert!(page.contains("<small>over taildrop</small>"), "the table says it, too");
    // One name for all is said once.
    cells.retain(|cell| cell.id != "c2");
    cells[2].baseline = "c0".to_owned();
    cells[2].aqm = "taildrop".to_owned();
    let page = render(&Report { cells, ..Report::default() })?;
    assert!(page.contains("All 2 comparisons with slow-start") && !labels(&page).1.contains("against"));
    assert!(!page.contains("<small>over"));
    Ok(())
}

#[test]
fn pictures_of_schemes_leave_out_what_another_aqm_changes() -> Result<(), RenderError> {
    let of_size = |kilobytes: u64| {
        with_two_kinds_of_baselines().into_iter().map(move |mut cell| {
            cell.id = format!("{}-{kilobytes}", cell.id);
            if !cell.baseline.is_empty() {
                cell.baseline = format!("{}-{kilobytes}", cell.baseline);
            }
            Cell { size: format!("{kilobytes}KB"), size_bytes: kilobytes * 1000, ..cell }
        })
    };
    let cells: Vec<Cell> = [10, 100, 1000, 2000].into_iter().flat_map(of_size).collect();
    let names = Names::of(&cells.iter().collect::<Vec<_>>());
    let Some(map) = chart::heat(&cells, &[]) else { panic!("eight fields") };
    let panels = map.spec["concat"].as_array().cloned().unwrap_or_default();
    let fields = panels.iter().map(|panel| panel["data"]["values"].as_str().map_or(0, |text| text.lines().count() - 1));
    assert_eq!(fields.collect::<Vec<_>>(), [8], "jump-start with each AQM and size");
    let Some(lines) = chart::sizes(&cells, &names, &Key::of(&cells, &names)) else { panic!("four sizes") };
    let points = lines.spec["concat"][0]["data"]["values"].as_str().map_or(0, |text| text.lines().count() - 1);
    assert_eq!(points, 8, "{}", lines.spec["concat"][0]["data"]["values"]);
    Ok(())
}

#[test]
fn a_row_is_called_after_its_scheme_and_then_after_its_avoidance() -> Result<(), RenderError> {
    let of = |transport: &str, avoidance: &str, scheme: &str| Cell {
        transport: transport.to_owned(),
        avoidance: avoidance.to_owned(),
        is_baseline: scheme == "slow-start",
        speedup: if scheme == "slow-start" { Estimate::default() } else { estimate(1.5) },
        verdict: Some(Verdict::of_interval(Kind::Faster)),
        ..cell(scheme, [150.0, 140.0, 160.0], [0.0; 3])
    };
    let of_transport =
        |transport: &str, avoidance: &str| ["slow-start", "jump-start"].map(|scheme| of(transport, avoidance, scheme));
    let cells = [of_transport("model-quic", "reno"), of_transport("model-tcp", "cubic")].concat();
    let (settings, names) = labels(&render(&Report { cells: cells.clone(), ..Report::default() })?);
    assert!(names.starts_with(r#"["jump-start, reno","jump-start, cubic"]"#), "{names}");
    assert!(settings.starts_with(r#"["model-quic","model-tcp"]"#), "{settings}");
    // Transports alone are what rows are called after, because nothing else varies.
    let mut cells = [of("model-quic", "reno", "stack"), of("model-tcp", "cubic", "stack")];
    (cells[0].id, cells[1].baseline) = ("c0".to_owned(), "c0".to_owned());
    cells[0].speedup = Estimate::default();
    let page = render(&Report { cells: cells.to_vec(), ..Report::default() })?;
    assert!(page.contains("model-tcp against model-quic"), "{:?}", labels(&page));
    Ok(())
}

#[test]
fn maps_have_the_marks_of_verdicts_and_units_once() -> Result<(), RenderError> {
    let (mut links, mut cells) = (Vec::new(), Vec::new());
    let verdicts = [Kind::Faster, Kind::FasterByWaste, Kind::Slower, Kind::Unclear, Kind::Same];
    for (k, (rate, rtt)) in
        [(5.0, 20.0), (5.0, 90.0), (10.0, 20.0), (10.0, 90.0), (50.0, 20.0), (50.0, 90.0)].into_iter().enumerate()
    {
        links.push(Link { name: format!("l{k}"), rate_mbit: Some(rate), rtt_ms: Some(rtt), ..Link::default() });
        for scheme in ["slow-start", "jump-start", "idle"] {
            cells.push(Cell {
                link: format!("l{k}"),
                is_baseline: scheme == "slow-start",
                speedup: if scheme == "slow-start" { Estimate::default() } else { estimate(1.5) },
                verdict: Some(Verdict::of_interval(if scheme == "idle" {
                    Kind::Same
                } else {
                    verdicts[k % verdicts.len()]
                })),
                ..cell(scheme, [150.0, 140.0, 160.0], [0.0; 3])
            });
        }
    }
    let Some(map) = chart::heat(&cells, &links) else { panic!("six fields") };
    let panels = map.spec["concat"].as_array().cloned().unwrap_or_default();
    assert_eq!(panels.iter().map(|panel| panel["title"].clone()).collect::<Vec<_>>(), ["jump-start"]);
    let text = panels[0]["transform"][2]["calculate"].as_str().unwrap_or_default();
    assert!(text.starts_with(r#"["▲ 1.50","◭ 1.50","▼ 1.50","● 1.50","= 1.50","▲ 1.50"]"#), "{text}");
    assert!(map.sentence.contains("◭ faster, but by sending much twice"), "{}", map.sentence);
    assert!(map.sentence.contains("One map is left out because all in it is the same"), "{}", map.sentence);
    let rates = &panels[0]["encoding"]["x"];
    assert_eq!((&rates["title"], &rates["scale"]["domain"][0]), (&"rate (Mbit/s)".into(), &"5".into()));
    // Where all is the same there is no map.
    cells.retain(|cell| cell.scheme != "jump-start");
    assert!(chart::heat(&cells, &links).is_none());
    Ok(())
}

#[test]
fn a_call_pays_in_frames_and_a_conversation_in_its_score() -> Result<(), RenderError> {
    let beside = |call: Option<Call>, media: Option<Media>| {
        let mut cells = sample().cells[..3].to_vec();
        for cell in &mut cells {
            (cell.goodput_lost_mbit, cell.call, cell.media) = (estimate(0.2), call, media);
        }
        render(&Report { cells, ..Report::default() })
    };
    let call = Call { not_shown: estimate(0.162), ..Call::default() };
    let page = beside(Some(call), None)?;
    let plot = specs(&page).swap_remove(0);
    let text = plot.to_string();
    assert!(text.contains("call: not shown") && text.contains("16.2\u{202f}%") && !text.contains("harm ("), "{text}");
    let score = Media { worst_1s_mos: estimate(2.5), ..Media::default() };
    let text = specs(&beside(None, Some(score))?).swap_remove(0).to_string();
    assert!(text.contains("MOS, worst 1 s") && text.contains("2.50") && !text.contains("harm ("), "{text}");
    assert!(specs(&beside(None, None)?).swap_remove(0).to_string().contains("harm (Mbit)"));
    Ok(())
}

#[test]
fn the_set_up_says_what_changes_and_in_what_comparisons_differ() -> Result<(), RenderError> {
    let links = sample().links;
    let sentence = |cells: &[Cell]| -> Result<String, RenderError> {
        let page = render(&Report { links: links.clone(), cells: cells.to_vec(), ..Report::default() })?;
        let text =
            page.split("<p class=\"wide\">").nth(1).and_then(|rest| rest.split("</p>").next()).unwrap_or_default();
        let text = text.replace("<b>", "").replace("</b>", "");
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let sample = sample().cells;
    let one = sentence(&sample[..3])?;
    assert!(one.ends_with("Only the startup scheme changes, so differences come from this."), "{one}");
    let two = sentence(&with_two_kinds_of_baselines())?;
    let expected = "From cell to cell the AQM of the queue and startup scheme change. A cell and its baseline differ in \
                    nothing but the AQM of the queue or startup scheme, so differences between them come from this.";
    assert!(two.ends_with(expected), "{two}");
    let all = sentence(&sample)?;
    assert!(all.contains("the link, other flows, transfer size and startup scheme change."), "{all}");
    assert!(all.contains("differ in nothing but the startup scheme, so"), "{all}");
    let links: Vec<Cell> = [0, 6].map(|k| Cell { speedup: Estimate::default(), ..sample[k].clone() }).to_vec();
    assert!(sentence(&links)?.ends_with("From cell to cell the link and other flows change."), "{}", sentence(&links)?);
    Ok(())
}

#[test]
fn a_time_that_is_no_completion_time_is_called_what_it_is() -> Result<(), RenderError> {
    let mut report = sample();
    report.published = None;
    report.cells.truncate(3);
    let usual = render(&report)?;
    assert!(usual.contains("data-label=\"FCT\"") && usual.contains("\"title\":\"FCT (ms)\""));
    for cell in &mut report.cells {
        (cell.time, cell.ideal_fct_ms) = (Time::FirstPicture, None);
    }
    let page = render(&report)?;
    assert!(page.contains("data-label=\"first picture\"") && !page.contains("data-label=\"FCT\""));
    assert!(page.contains("\"title\":\"time to the first picture (ms)\"") && !page.contains("\"completion time\""));
    assert!(page.contains("<dt>time to the first picture</dt>"));
    // Runs completed, but there is no limit to set them against.
    assert!(page.contains("Nothing bounds the time to the first picture") && !page.contains("No run completed"));
    report.cells.iter_mut().for_each(|cell| cell.fct_ms = Estimate::default());
    assert!(render(&report)?.contains("No run completed"));
    // Among others there is no common name but waiting.
    report.cells[0].time = Time::Completion;
    assert!(render(&report)?.contains("time that users wait (ms)"));
    Ok(())
}
