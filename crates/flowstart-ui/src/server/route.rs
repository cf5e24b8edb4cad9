//! Which address leads where.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flowstart_lab::catalogue::ListError;
use flowstart_lab::perform;
use flowstart_lab::report::changes;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_report::{ChangeReport, render_changes};
use form_urlencoded::parse;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::answer::{self, Answer, CSV, HTML, JSON, PLAIN, SCRIPT, STYLE, TOML, elsewhere, file, own, refused, status};
use super::guard::Guard;
use super::kept::Answers;
use crate::ask::{self, Answered, Event, Program, Published};
use crate::page::{self, Site};
use crate::question::{self, FILE, Question, Refusal, Run};
use crate::results::{Folder, FolderError, Kind, REPORT};

/// Questions that are performed at a time; others wait.
const AT_A_TIME: usize = 2;
/// Events that a slow reader may leave unread before runs wait for it.
const UNREAD: usize = 64;
/// For so long a reader may read nothing: it holds a place of a question.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a reader who is slow.
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes of a study file, and the longest time until it is there.
const LONGEST_FILE: usize = 64_000;
const SLOWEST_FILE: Duration = Duration::from_secs(15);
/// The script by which pages ask this server.
const SOURCE: (&str, &str) = ("source.js", include_str!("../templates/source.js"));
/// Two results, and what changed from one to the other.
const BESIDE: &str = "/beside";
const CHANGE: &str = "/change.html";
/// The page of a record.
const RECORD_PAGE: &str = "record.html";

/// The lab behind the pages.
pub struct Lab {
    program: Program,
    site: Site,
    /// Results of before, if there are any to show.
    results: Option<Folder>,
    answers: Answers,
    /// The answer of the first page, which is always there.
    first: OnceLock<Arc<Answered>>,
    places: Arc<Semaphore>,
    /// Places of those who read results of before.
    readers: Arc<Semaphore>,
}

impl Lab {
    /// A lab in which nothing was asked yet, with results of before if there are any to show. Reports name the version
    /// of the program and the machine; runs of a question have `jobs` threads (0: one per core).
    ///
    /// # Errors
    ///
    /// A list of what can be chosen cannot be made.
    pub fn new(
        version: &str,
        host: &str,
        jobs: usize,
        published: Published,
        results: Option<Folder>,
    ) -> Result<Self, ListError> {
        let (version, host) = (version.to_owned(), host.to_owned());
        Ok(Self {
            program: Program { version, host, jobs, published, has_files: true, clock },
            site: Site::served(results.is_some())?,
            results,
            answers: Answers::default(),
            first: OnceLock::new(),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
            readers: Arc::new(Semaphore::new(AT_A_TIME)),
        })
    }
}

/// The time since it was asked first.
fn clock() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// Whether somebody still waits; nobody does once this is dropped.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Performs the question of the first page, so that it is there when somebody comes.
pub(crate) async fn prepare(lab: Arc<Lab>) {
    if let Ok(question) = Question::first() {
        // Whoever opens the page learns what is wrong.
        drop(first_answer(&lab, question).await);
    }
}

/// The answer of the first page.
async fn first_answer(lab: &Arc<Lab>, question: Question) -> Option<Arc<Answered>> {
    if let Some(known) = lab.first.get() {
        return Some(Arc::clone(known));
    }
    let answered = answered(lab, question).await.ok()?;
    Some(Arc::clone(lab.first.get_or_init(|| answered)))
}

/// The answer to a request.
pub(crate) async fn route(lab: Arc<Lab>, guard: &Guard, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    if let Some(mut answer) = guard.refusal(&head) {
        // Who may not ask keeps no connection from those who may.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    let path = head.uri.path().to_owned();
    match (&head.method, &*path) {
        (&Method::POST, "/question") => asked_by_file(&lab, &head, body).await,
        (&Method::GET | &Method::HEAD, _) => shown(lab, &path, head.uri.query().unwrap_or_default()).await,
        (_, "/question") => refused(StatusCode::METHOD_NOT_ALLOWED, "allowed is POST with a study file"),
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "allowed is GET"),
    }
}

async fn shown(lab: Arc<Lab>, path: &str, query: &str) -> Answer {
    match path {
        "/" => lab_page(&lab, query).await,
        "/events" => match Question::of_query(query) {
            Ok(question) => events(&lab, question),
            Err(refusal) => refused(StatusCode::BAD_REQUEST, &refusal.to_string()),
        },
        "/packets" => packets_page(&lab, query).await,
        "/question.toml" => match Question::of_query(query).map(|question| question.file()) {
            Ok(Ok(text)) => file(FILE, TOML, text),
            Ok(Err(problem)) => refused(StatusCode::INTERNAL_SERVER_ERROR, &problem),
            Err(refusal) => refused(StatusCode::BAD_REQUEST, &refusal.to_string()),
        },
        _ => {
            if let Some(asset) = asset(path) {
                return asset;
            }
            if let Some(rest) = path.strip_prefix("/answers/") {
                return part_of_answer(&lab, rest).await;
            }
            let missing = page::problem("There is no such page", path, &lab.site);
            let missing = status(StatusCode::NOT_FOUND, own(HTML, missing));
            if lab.results.is_none() {
                return missing;
            }
            let (path, query) = (path.to_owned(), query.to_owned());
            let Ok(place) = Arc::clone(&lab.readers).acquire_owned().await else { return missing };
            blocking(move || {
                let _place = place;
                of_results(&lab, &path, &query).unwrap_or(missing)
            })
            .await
        }
    }
}

/// A style or a script.
fn asset(path: &str) -> Option<Answer> {
    let name = path.strip_prefix('/')?;
    let assets = page::assets::assets().into_iter().chain([(SOURCE.0, SOURCE.1.into())]);
    let (_, content) = assets.into_iter().find(|(one, _)| *one == name)?;
    Some(own(if name.ends_with(".js") { SCRIPT } else { STYLE }, content.into_owned()))
}

/// Does work that blocks elsewhere.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| refused(StatusCode::INTERNAL_SERVER_ERROR, &format!("this failed: {error}")))
}

/// A place for work that takes long.
async fn place(lab: &Lab) -> Result<OwnedSemaphorePermit, String> {
    Arc::clone(&lab.places).acquire_owned().await.map_err(|error| error.to_string())
}

/// The answer to a question: one that is kept, or a new one. The runs end when nobody waits any more.
async fn answered(lab: &Arc<Lab>, question: Question) -> Result<Arc<Answered>, String> {
    if let Some(kept) = lab.answers.get(&question.query) {
        return Ok(kept);
    }
    let place = place(lab).await?;
    // Somebody else may have asked the same meanwhile.
    if let Some(kept) = lab.answers.get(&question.query) {
        return Ok(kept);
    }
    let wanted = Wanted(Arc::new(AtomicBool::new(true)));
    let (lab, still) = (Arc::clone(lab), Arc::clone(&wanted.0));
    let performed = tokio::task::spawn_blocking(move || {
        let _place = place;
        let answered = ask::perform(question, &lab.program, &|_: &Event| still.load(Ordering::Relaxed))?;
        Ok(lab.answers.add(answered))
    });
    performed.await.map_err(|error| error.to_string())?
}

/// The page of a question.
async fn lab_page(lab: &Arc<Lab>, query: &str) -> Answer {
    let first = Question::first();
    let asked = if query.is_empty() { first.clone() } else { Question::of_query(query) };
    let show = |question: &Question, answered: Option<&Answered>, problem: Option<&str>| {
        own(HTML, page::lab::page(question, answered, problem, &lab.site))
    };
    match (asked, first) {
        (Ok(question), first) => {
            let is_first = first.is_ok_and(|first| first.query == question.query);
            let known = match is_first {
                true => first_answer(lab, question.clone()).await,
                false => lab.answers.get(&question.query),
            };
            show(&question, known.as_deref(), None)
        }
        (Err(refusal), Ok(first)) => status(StatusCode::BAD_REQUEST, show(&first, None, Some(&refusal.to_string()))),
        (Err(refusal), Err(_)) => refused(StatusCode::BAD_REQUEST, &refusal.to_string()),
    }
}

/// What happens while a question is performed, as it happens.
fn events(lab: &Arc<Lab>, question: Question) -> Answer {
    let (sender, receiver) = mpsc::channel(UNREAD);
    let lab = Arc::clone(lab);
    tokio::spawn(async move {
        let place = tokio::select! {
            place = place(&lab) => place,
            () = sender.closed() => return,
        };
        let Ok(place) = place else { return };
        // Runs end with the next one after their reader has gone.
        drop(tokio::task::spawn_blocking(move || {
            let _place = place;
            tell(&lab, question, &sender);
        }));
    });
    answer::events(receiver)
}

/// Sends to a reader who may be slow; whether it is still there.
fn sent(sender: &mpsc::Sender<Bytes>, mut bytes: Bytes) -> bool {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        match sender.try_send(bytes) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(unsent)) => bytes = unsent,
        }
        sleep(PAUSE);
    }
    false
}

/// Performs a question and tells all of it.
fn tell(lab: &Lab, question: Question, sender: &mpsc::Sender<Bytes>) {
    let tell = |event: &Event| match answer::line(event) {
        Some(bytes) => sent(sender, bytes),
        None => !sender.is_closed(),
    };
    if !tell(&Event::Asked(page::lab::asked(&question))) {
        return;
    }
    let answered = match lab.answers.get(&question.query) {
        Some(kept) => {
            let mut events = kept.runs.iter().cloned().map(Event::Run);
            let done = kept.performed.rows.len() as u64;
            if !events.all(|event| tell(&event)) || !tell(&Event::Times { done, runs: done, times: kept.times.clone() })
            {
                return;
            }
            kept
        }
        None => match ask::perform(question, &lab.program, &tell) {
            Ok(answered) => lab.answers.add(answered),
            Err(problem) => {
                tell(&Event::Failed(problem));
                return;
            }
        },
    };
    tell(&Event::Answer(page::answer::event(&answered, &lab.site)));
}

/// The report of an answer, or a file beside it: `QUESTION/report.html`, where the question is one part of the path.
async fn part_of_answer(lab: &Arc<Lab>, path: &str) -> Answer {
    let Some((question, part)) = path.split_once('/') else {
        return refused(StatusCode::NOT_FOUND, "allowed is /answers/QUESTION/report.html");
    };
    let part = part.to_owned();
    let question = decoded(question);
    let question = match Question::of_query(&question) {
        Ok(question) => question,
        Err(refusal) => return refused(StatusCode::BAD_REQUEST, &refusal.to_string()),
    };
    if !Answered::PARTS.contains(&&*part) {
        return refused(StatusCode::NOT_FOUND, &format!("allowed are {}", Answered::PARTS.join(", ")));
    }
    let answered = match answered(lab, question).await {
        Ok(answered) => answered,
        Err(problem) => return refused(StatusCode::SERVICE_UNAVAILABLE, &problem),
    };
    let Ok(place) = place(lab).await else { return refused(StatusCode::SERVICE_UNAVAILABLE, "the server ends") };
    let lab = Arc::clone(lab);
    blocking(move || {
        let _place = place;
        let missing = || Err(format!("{part} is missing"));
        match answered.part(&part, &lab.program).unwrap_or_else(missing) {
            Ok(html) if part == REPORT => answer::report(html),
            Ok(content) => file(&part, media(&part), content),
            Err(problem) => refused(StatusCode::INTERNAL_SERVER_ERROR, &problem),
        }
    })
    .await
}

/// The media type of a file beside a report.
fn media(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "csv")) => CSV,
        Some((_, "json")) => JSON,
        _ => TOML,
    }
}

/// A part of a path without its percent signs.
fn decoded(part: &str) -> String {
    // In a path a plus is a plus, and nothing else separates.
    let whole = part.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    parse(whole.as_bytes()).next().map_or(String::new(), |(name, _)| name.into_owned())
}

/// The packets of one run.
async fn packets_page(lab: &Arc<Lab>, query: &str) -> Answer {
    let run = match Run::of_query(query) {
        Ok(run) => run,
        Err(refusal) => return refused(StatusCode::BAD_REQUEST, &refusal.to_string()),
    };
    let Ok(place) = place(lab).await else { return refused(StatusCode::SERVICE_UNAVAILABLE, "the server ends") };
    let lab = Arc::clone(lab);
    blocking(move || {
        let _place = place;
        own(HTML, page::packets::page(&run, &lab.site))
    })
    .await
}

/// A question of a study file: the address of its page, or what is wrong.
async fn asked_by_file(lab: &Lab, head: &Parts, body: Incoming) -> Answer {
    let Ok(body) = timeout(SLOWEST_FILE, Limited::new(body, LONGEST_FILE).collect()).await else {
        return refused(StatusCode::REQUEST_TIMEOUT, "the study file did not come in time");
    };
    let Ok(body) = body else {
        let problem = format!("the study file is too long; allowed are {LONGEST_FILE} bytes");
        return refused(StatusCode::PAYLOAD_TOO_LARGE, &problem);
    };
    let body = body.to_bytes();
    let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let is_form = media.starts_with("application/x-www-form-urlencoded");
    let text = match is_form {
        true => parse(&body).find(|(name, _)| name == "file").map(|(_, text)| text.into_owned()),
        false => String::from_utf8(body.to_vec()).ok(),
    };
    let asked = text.ok_or_else(|| "the study file is not text; allowed is a scenario in TOML".to_owned());
    let asked = asked.and_then(|text| Question::of_file(&text).map_err(|refusal: Refusal| refusal.to_string()));
    match asked {
        Ok(question) if is_form => elsewhere(&format!("/?{}", question.query), None),
        Ok(question) => own(PLAIN, format!("/?{}", question.query)),
        Err(problem) if is_form => {
            let page = page::problem("The study file cannot be asked", &problem, &lab.site);
            status(StatusCode::BAD_REQUEST, own(HTML, page))
        }
        Err(problem) => refused(StatusCode::BAD_REQUEST, &problem),
    }
}

/// Pages of results of before; `None` if there is no such address. Blocks.
fn of_results(lab: &Lab, path: &str, query: &str) -> Option<Answer> {
    let folder = lab.results.as_ref()?;
    let shown = match path {
        "/results" => return Some(elsewhere("/results/", None)),
        "/results/" => Ok(own(HTML, page::results::list(&folder.list(), &lab.site))),
        BESIDE | CHANGE => beside(lab, folder, &two(query), path),
        _ => {
            let rest = path.strip_prefix("/results/")?;
            let (name, file) = rest.rsplit_once('/')?;
            of_folder(lab, folder, &decoded(name), &decoded(file))
        }
    };
    let answer = shown.unwrap_or_else(|error| {
        let page = page::problem("These results cannot be shown", &error.to_string(), &lab.site);
        status(StatusCode::NOT_FOUND, own(HTML, page))
    });
    Some(answer)
}

/// A folder of results, its report, or a file.
fn of_folder(lab: &Lab, folder: &Folder, name: &str, wanted: &str) -> Result<Answer, FolderError> {
    match (folder.kind(name)?, wanted) {
        (Kind::Results, "") => Ok(own(HTML, page::results::result(folder, name, &lab.site))),
        (Kind::Record, "" | RECORD_PAGE) => {
            Ok(own(HTML, page::results::record(&folder.record(name)?, name, wanted.is_empty(), &lab.site)))
        }
        (Kind::Results, REPORT) => match folder.file(name, REPORT)? {
            Some(html) => Ok(answer::report(html)),
            None => {
                let stored = folder.stored(name)?;
                // Runs that the page shows are performed again.
                if let Err(refusal) = question::limits::after(&stored.study.plan) {
                    let problem = format!("{name} has no {REPORT}, and one cannot be made here: {refusal}");
                    return Ok(refused(StatusCode::UNPROCESSABLE_ENTITY, &problem));
                }
                let published = |plan: &Plan, rows: &[Row], summary: &Summary| {
                    (lab.program.published)(&stored.study.scenario, plan, rows, summary)
                };
                let html = perform::page(&stored, &published, lab.program.jobs, &());
                Ok(match html {
                    Ok(html) => answer::report(html),
                    Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, &folder.without_place(&error.to_string())),
                })
            }
        },
        (Kind::Results, _) => Ok(match folder.file(name, wanted)? {
            Some(content) => file(wanted, "application/octet-stream", content),
            None => refused(StatusCode::NOT_FOUND, &format!("{name} has no {wanted}")),
        }),
        (Kind::Record, _) => Ok(refused(StatusCode::NOT_FOUND, &format!("allowed is {RECORD_PAGE}"))),
    }
}

/// The names of two folders.
fn two(query: &str) -> [String; 2] {
    ["before", "after"].map(|wanted| {
        let found = parse(query.as_bytes()).find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    })
}

/// What changed from one folder to another, or why nobody can say.
fn changed(folder: &Folder, [before, after]: &[String; 2]) -> Result<ChangeReport, String> {
    let stored = |name| folder.stored(name).map_err(|error| error.to_string());
    if [before, after].iter().any(|name| folder.kind(name) == Ok(Kind::Record)) {
        return Err("records have means only, so nobody can say what changed between them".to_owned());
    }
    changes(&stored(before)?, &stored(after)?, true).map_err(|problem| folder.without_place(&problem))
}

/// Two folders beside each other, or the page of what changed.
fn beside(lab: &Lab, folder: &Folder, names: &[String; 2], path: &str) -> Result<Answer, FolderError> {
    for name in names {
        folder.kind(name)?;
    }
    let changed = changed(folder, names);
    if path == CHANGE {
        let html = changed.and_then(|report| render_changes(&report).map_err(|error| error.to_string()));
        return Ok(match html {
            Ok(html) => answer::report(html),
            Err(problem) => refused(StatusCode::UNPROCESSABLE_ENTITY, &problem),
        });
    }
    let sides = names.each_ref().map(|name| page::results::side(folder, name));
    Ok(own(HTML, page::results::beside(&sides, &changed.map(|report| report.answer), &lab.site)))
}
