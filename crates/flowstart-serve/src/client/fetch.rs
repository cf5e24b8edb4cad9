//! One request over a connection, and its answer.

use std::time::{Duration, Instant};

use bytes::{Buf, Bytes as Chunk};
use flowstart_core::quantize::Grid;
use flowstart_core::units::{Bytes, Rate};
use http::{Request, StatusCode, header};
use noq::PathId;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;

use super::connect::{Connected, close};
use super::kept_state::KeptState;
use super::{ClientError, Progress, Url, has_object};
use crate::path_state::PATH_STATE;
use crate::{handshake_train, hexadecimal, http3, quick_start, scone};

/// The longest wait for a server's state for the next connection.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// Round trips that the last half of a content takes whose rate may be the link's.
const FEWEST_ROUND_TRIPS: u32 = 3;

/// Interim answers (1xx) before the final one.
const MOST_INTERIM: u32 = 16;

/// A request, and the destination of its content.
pub(super) struct Fetch<'a> {
    /// The URL.
    pub(super) url: &'a Url,
    /// When its connection was begun.
    pub(super) start: Instant,
    /// Whether it waits for the server's state for the next connection.
    pub(super) again: bool,
    /// How urgent it is (RFC 9218), if it says so.
    pub(super) urgency: Option<u8>,
    pub(super) train: Option<Grid>,
    /// Where the path's state goes.
    pub(super) path_state: Option<&'a KeptState>,
    /// Where the content goes.
    pub(super) out: &'a mut (dyn AsyncWrite + Unpin + Send),
    /// Gets the progress.
    pub(super) watch: &'a (dyn Fn(Progress) + Sync),
}

/// The result of one connection, with times.
pub(super) struct Answer {
    /// How the server answered.
    pub(super) status: StatusCode,
    /// Bytes of the content.
    pub(super) bytes: u64,
    /// Until the first of them.
    pub(super) first_byte: Option<Duration>,
    /// Until the last of them.
    pub(super) fct: Duration,
    /// From the request until the last of them.
    pub(super) request: Duration,
    /// The delivery rate of its last half.
    pub(super) rate: Option<Rate>,
}

/// Measures the delivery rate of the last half of the content or more: the first half is slow start's.
#[derive(Default)]
struct LastHalf {
    /// When the content had half of its size, or less.
    mark: Option<(Instant, u64)>,
    /// When it had that size, which becomes the mark with twice as many bytes.
    next: Option<(Instant, u64)>,
}

impl LastHalf {
    /// The content has `bytes` now.
    fn received(&mut self, now: Instant, bytes: u64) {
        match self.next {
            Some((_, then)) if bytes < 2 * then => {}
            _ => self.mark = self.next.replace((now, bytes)),
        }
    }

    /// The rate up to now, when it has `bytes`. One of a few round trips says how a window grew, not what the link
    /// carries.
    fn rate(&self, now: Instant, bytes: u64, round_trip: Duration) -> Option<Rate> {
        let (then, before) = self.mark?;
        let span = now.saturating_duration_since(then);
        let span = Some(span).filter(|span| *span >= round_trip * FEWEST_ROUND_TRIPS && !span.is_zero())?;
        let nanos = u64::try_from(span.as_nanos()).ok()?;
        Rate::from_transfer(Bytes::new(bytes.saturating_sub(before)), flowstart_core::time::Duration::from_nanos(nanos))
    }
}

impl Fetch<'_> {
    /// Fetches it, and ends the connection, also if that fails: the server needs not wait for who has given up.
    pub(super) async fn over(&mut self, connected: &Connected) -> Result<Answer, ClientError> {
        let answer = self.try_over(connected).await;
        if answer.is_err() {
            close(&connected.connection);
        }
        answer
    }

    async fn try_over(&mut self, connected: &Connected) -> Result<Answer, ClientError> {
        let (url, start, connection) = (self.url, self.start, &connected.connection);
        let failed = |cause: &dyn std::fmt::Display| url.failed(cause);
        let transport = http3::Connection::new(connection.clone(), http3::Cuts::default());
        let mut builder = h3::client::builder();
        let built = builder.max_field_section_size(http3::LARGEST_FIELDS).build::<_, _, Chunk>(transport).await;
        let (mut driver, mut requests) = built.map_err(|error| failed(&error))?;
        // The result does not matter at this point.
        let driving = AbortOnDropHandle::new(tokio::spawn(async move {
            std::future::poll_fn(|context| driver.poll_close(context)).await
        }));

        let requested = Instant::now();
        let mut stream = requests.send_request(self.request(connected)?).await.map_err(|error| failed(&error))?;
        stream.finish().await.map_err(|error| failed(&error))?;
        let mut head = stream.recv_response().await.map_err(|error| failed(&error))?;
        let mut interim = 0;
        while head.status().is_informational() {
            // Not the answer yet (RFC 9114, section 4.1).
            interim += 1;
            if interim > MOST_INTERIM {
                return Err(failed(&format_args!("more than {MOST_INTERIM} interim answers came")));
            }
            head = stream.recv_response().await.map_err(|error| failed(&error))?;
        }
        if let Some(field) = http3::forbidden_field(head.headers()) {
            return Err(failed(&format_args!("its field {field} does not belong to HTTP/3")));
        }
        let size = http3::content_length(head.headers()).map_err(|cause| failed(&cause))?;
        (self.watch)(Progress::Begun(size));
        let (mut bytes, mut first_byte, mut last_half) = (0_u64, None, LastHalf::default());
        // Of content that is empty, the end of its header.
        let (mut fct, mut request) = (start.elapsed(), requested.elapsed());
        while let Some(chunk) = stream.recv_data().await.map_err(|error| failed(&error))? {
            first_byte.get_or_insert_with(|| start.elapsed());
            if let Some(size) = size.filter(|size| *size < bytes.saturating_add(chunk.remaining() as u64)) {
                return Err(failed(&format_args!("more than the {size} bytes came that its content-length announces")));
            }
            bytes += self.write(chunk).await.map_err(|error| unwritten(url, &error))?;
            (self.watch)(Progress::Received(bytes));
            last_half.received(Instant::now(), bytes);
            (fct, request) = (start.elapsed(), requested.elapsed());
        }
        let rate = last_half.rate(Instant::now(), bytes, connection.rtt(PathId::ZERO).unwrap_or_default());
        (self.watch)(Progress::Complete);
        self.out.flush().await.map_err(|error| unwritten(url, &error))?;
        if size.is_some_and(|size| size != bytes) {
            return Err(failed(&format_args!("{bytes} bytes came instead of {}", size.unwrap_or(0))));
        }
        // Trailers are not the end: what comes behind them may say that the answer is none.
        let trailers = stream.recv_trailers().await.map_err(|error| failed(&error))?;
        if let Some(kept) = self.path_state.filter(|_| has_object(head.status())) {
            let state = trailers.and_then(|trailers| hexadecimal::decode(trailers.get(PATH_STATE)?.to_str().ok()?));
            if let Some(state) = state {
                kept.learn(state);
            }
        }
        if self.again {
            // Tickets and tokens come with the confirmation of the handshake.
            drop(tokio::time::timeout(CONFIRMATION, connection.handshake_confirmed()).await);
        }
        // Before HTTP/3 is dropped, which would end the connection in its own way.
        close(connection);
        drop(driving);
        Ok(Answer { status: head.status(), bytes, first_byte, fct, request, rate })
    }

    fn request(&self, connected: &Connected) -> Result<Request<()>, ClientError> {
        let mut request = Request::get(self.url.uri.clone());
        if self.path_state.is_some() {
            request = request.header(header::TE, "trailers");
        }
        if let Some(urgency) = self.urgency {
            request = request.header("priority", format!("u={urgency}"));
        }
        let read = &connected.read;
        let signal = read.scone.as_ref().map(|servers| servers.signal(connected.address));
        if let Some(report) = signal.and_then(scone::report) {
            request = request.header(scone::ADVICE, report);
        }
        let train = connected.train.zip(self.train).and_then(|(seen, grid)| handshake_train::report(seen, &grid));
        if let Some(report) = train {
            request = request.header(handshake_train::TRAIN, report);
        }
        let response = read.quick_start.as_ref().and_then(|requests| requests.stop());
        if let Some(response) = response.and_then(quick_start::field) {
            request = request.header(quick_start::RESPONSE, response);
        }
        let request = request.header(header::USER_AGENT, concat!("flowstart/", env!("CARGO_PKG_VERSION"))).body(());
        request.map_err(|error| self.url.failed(&error))
    }

    /// Writes a part of the content; its length.
    async fn write(&mut self, mut chunk: impl Buf) -> std::io::Result<u64> {
        let mut written = 0;
        while chunk.has_remaining() {
            let part = chunk.chunk();
            let length = part.len();
            self.out.write_all(part).await?;
            chunk.advance(length);
            written += length as u64;
        }
        Ok(written)
    }
}

fn unwritten(url: &Url, error: &std::io::Error) -> ClientError {
    url.failed(&format_args!("the content cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_half_or_more() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut content = LastHalf::default();
        for (ms, bytes) in [(0, 1000), (100, 2000), (200, 6000), (300, 8000), (400, 11_000)] {
            content.received(at(ms), bytes);
        }
        // 6000 bytes are not yet half of 11,000: from 2000 bytes at 100 ms on.
        assert_eq!(content.rate(at(400), 11_000, Duration::from_millis(100)), Some(Rate::from_bits_per_sec(240_000)));
        assert_eq!(content.rate(at(400), 11_000, Duration::from_millis(101)), None, "a few flights");
        content.received(at(500), 12_000);
        assert_eq!(content.rate(at(500), 12_000, Duration::ZERO), Some(Rate::from_bits_per_sec(160_000)));
        let mut short = LastHalf::default();
        short.received(begin, 1000);
        assert_eq!(short.rate(at(100), 1000, Duration::ZERO), None);
    }
}
