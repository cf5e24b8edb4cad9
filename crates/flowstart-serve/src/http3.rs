//! The QUIC stack noq under the HTTP/3 implementation h3 (RFC 9114).
//!
//! h3 asks for a QUIC stack by polling; noq answers with futures that borrow the connection. Here such a future owns a
//! handle of the connection instead, and is kept until it is done.
//!
//! If the peer opened a stream, finishing it waits until the peer has acknowledged all of it. So a server learns when a
//! response has arrived, and a shutdown does not cut off data in flight.
//!
//! h3 keeps a frame until all of it is here, and looks at its size afterwards. So what arrives passes [`frames`] first:
//! a peer that announces a frame beyond the bound loses its connection before anything of the frame is kept. A request
//! whose pseudo-header fields are malformed is reset before h3 sees it, and for h3 it looks as if the peer had done so.

mod cuts;
mod frames;
mod head;
mod receive;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use http::{HeaderMap, header};
use noq::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

pub(crate) use self::cuts::Cuts;

use self::frames::Frames;
use self::receive::{OfHeads, RecvStream};

/// Bytes of a message's fields (RFC 9114, section 4.2.2); what honest peers send has less than 10 KB. A field counts 32
/// bytes more than it has, so many empty ones are refused before they are kept.
pub(crate) const LARGEST_FIELDS: u64 = 64 << 10;

/// A field that says something of one HTTP/1 connection: a message with it is malformed (RFC 9114, section 4.2).
pub(crate) fn forbidden_field(fields: &HeaderMap) -> Option<&'static str> {
    const FORBIDDEN: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    FORBIDDEN.into_iter().find(|field| fields.contains_key(*field))
}

/// The size that a message announces, if it does (RFC 9110, section 8.6).
pub(crate) fn content_length(fields: &HeaderMap) -> Result<Option<u64>, String> {
    let mut size = None;
    for value in fields.get_all(header::CONTENT_LENGTH) {
        // A number takes neither a sign nor a list here.
        let number = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let told = number.and_then(|text| text.parse().ok());
        let Some(told) = told.filter(|told| size.is_none_or(|size| size == *told)) else {
            return Err(format!("its content-length {value:?} is none"));
        };
        size = Some(told);
    }
    Ok(size)
}

type Pair = (noq::SendStream, noq::RecvStream);
type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>;

/// Polls `waiting`, which `start` creates if there is none, and forgets it when it is done.
fn poll_kept<T>(
    waiting: &mut Option<Waiting<T>>,
    context: &mut Context<'_>,
    start: impl FnOnce() -> Waiting<T>,
) -> Poll<Result<T, ConnectionError>> {
    let result = ready!(waiting.get_or_insert_with(start).as_mut().poll(context));
    *waiting = None;
    Poll::Ready(result)
}

/// A QUIC connection as h3 wants it.
pub(crate) struct Connection {
    opener: Opener,
    accepting_two_way: Option<Waiting<Pair>>,
    accepting_one_way: Option<Waiting<noq::RecvStream>>,
    /// Bytes of the heads of all requests that have not come to their ends.
    heads: Arc<AtomicUsize>,
    cuts: Cuts,
}

impl Connection {
    /// An established connection, whose streams go to `cuts` if they are cut.
    pub(crate) fn new(connection: noq::Connection, cuts: Cuts) -> Self {
        let heads = Arc::default();
        Self { opener: Opener::new(connection), accepting_two_way: None, accepting_one_way: None, heads, cuts }
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let accepted = ready!(poll_kept(&mut self.accepting_one_way, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_uni().await })
        }));
        Poll::Ready(accepted.map(|stream| RecvStream::one_way(stream, connection.clone())).map_err(connection_error))
    }

    fn poll_accept_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let connection = &self.opener.connection;
        let accepted = ready!(poll_kept(&mut self.accepting_two_way, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        }));
        let heads = || Some(OfHeads::of(self.heads.clone()));
        let role = || Role::Server(self.cuts.clone());
        let stream = |pair| BidiStream::new(pair, role(), connection.clone(), heads());
        Poll::Ready(accepted.map(stream).map_err(connection_error))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(context)
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_send(context)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams of a connection.
pub(crate) struct Opener {
    connection: noq::Connection,
    two_way: Option<Waiting<Pair>>,
    one_way: Option<Waiting<noq::SendStream>>,
}

impl Opener {
    fn new(connection: noq::Connection) -> Self {
        Self { connection, two_way: None, one_way: None }
    }
}

impl Clone for Opener {
    /// What is being opened is opened for the original.
    fn clone(&self) -> Self {
        Self::new(self.connection.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(poll_kept(&mut self.two_way, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.open_bi().await })
        }));
        Poll::Ready(
            opened.map(|pair| BidiStream::new(pair, Role::Client, connection.clone(), None)).map_err(stream_error),
        )
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opened = ready!(poll_kept(&mut self.one_way, context, || {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        }));
        Poll::Ready(opened.map(|stream| SendStream::new(stream, Role::Client)).map_err(stream_error))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(error_code(code.value()), reason);
    }
}

/// Which end of its streams this is.
#[derive(Debug)]
enum Role {
    /// It asks.
    Client,
    /// It answers. An answer is finished when the peer has all of it, and one that is cut goes to the cuts.
    Server(Cuts),
}

/// A stream in both directions.
pub(crate) struct BidiStream<B> {
    send: SendStream<B>,
    receive: RecvStream,
}

impl<B> BidiStream<B> {
    fn new((send, receive): Pair, role: Role, connection: noq::Connection, heads: Option<OfHeads>) -> Self {
        let frames = match role {
            Role::Server(_) => Frames::of_request(),
            Role::Client => Frames::of_response(),
        };
        Self { send: SendStream::new(send, role), receive: RecvStream::new(receive, connection, frames, heads) }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.receive)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(self.receive.poll_data(context));
        let malformed = Code::H3_MESSAGE_ERROR.value();
        match read {
            Err(StreamErrorIncoming::StreamTerminated { error_code }) if error_code == malformed => {
                // RFC 9114, section 4.1.2.
                self.receive.stop_sending(malformed);
                quic::SendStream::reset(&mut self.send, malformed);
            }
            Ok(None) if self.receive.frames.is_cut_off() => {
                // RFC 9114, section 7.1. h3 takes a part of a number for nothing, and a part of content for all of it.
                return Poll::Ready(Err(self.receive.close(Code::H3_FRAME_ERROR, b"the stream ends within a frame")));
            }
            Ok(None) | Err(_) => self.send.has_request_ended = true,
            Ok(Some(_)) => {}
        }
        Poll::Ready(read)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

type Acknowledged = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>;

/// The sending direction of a stream.
pub(crate) struct SendStream<B> {
    id: StreamId,
    /// It is there until this is dropped.
    stream: Option<noq::SendStream>,
    writing: Option<WriteBuf<B>>,
    /// Something was sent.
    has_begun: bool,
    is_reset: bool,
    role: Role,
    /// What the peer sends on the stream has come to an end.
    has_request_ended: bool,
    finished: Option<Acknowledged>,
}

impl<B> SendStream<B> {
    fn new(stream: noq::SendStream, role: Role) -> Self {
        let id = stream_id(stream.id());
        Self {
            id,
            stream: Some(stream),
            writing: None,
            has_begun: false,
            is_reset: false,
            role,
            has_request_ended: false,
            finished: None,
        }
    }

    fn stream(&mut self) -> &mut noq::SendStream {
        self.stream.as_mut().expect("only the end takes it")
    }
}

impl<B> Drop for SendStream<B> {
    /// A peer that has opened a stream does not get its end as if that were an answer: a request that has ended is
    /// incomplete (RFC 9114, section 4.1), and one that goes on was not processed (section 4.1.1). An answer that has
    /// begun and was not finished is cut: whoever wrote it failed.
    fn drop(&mut self) {
        let (Role::Server(cuts), Some(mut stream)) = (&self.role, self.stream.take()) else { return };
        if self.finished.is_none() && !self.is_reset {
            let code = match (self.has_begun, self.has_request_ended) {
                (true, _) => Code::H3_INTERNAL_ERROR,
                (false, true) => Code::H3_REQUEST_INCOMPLETE,
                (false, false) => Code::H3_REQUEST_REJECTED,
            };
            // It may be closed already, for another reason.
            drop(stream.reset(error_code(code.value())));
            self.is_reset = true;
        }
        if self.has_begun && self.is_reset {
            cuts.keep(stream);
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let (Some(data), Some(stream)) = (&mut self.writing, &mut self.stream) {
            if !data.has_remaining() {
                self.writing = None;
                break;
            }
            let written = ready!(Pin::new(stream).poll_write(context, data.chunk())).map_err(write_error)?;
            data.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            let connection_error = ConnectionErrorIncoming::InternalError("the stream still writes".into());
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        self.writing = Some(data.into());
        self.has_begun = true;
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if self.finished.is_none() {
            let stream = self.stream();
            stream.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error)))?;
            let stopped = Box::pin(stream.stopped());
            if matches!(self.role, Role::Client) {
                return Poll::Ready(Ok(()));
            }
            self.finished = Some(stopped);
        }
        let Some(finished) = &mut self.finished else { return Poll::Pending };
        Poll::Ready(match ready!(finished.as_mut().poll(context)) {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }),
            Err(StoppedError::ConnectionLost(error)) => Err(stream_error(error)),
            Err(error @ StoppedError::ZeroRttRejected) => Err(StreamErrorIncoming::Unknown(Box::new(error))),
        })
    }

    fn reset(&mut self, code: u64) {
        // A stream that is closed already needs no reset.
        drop(self.stream().reset(error_code(code)));
        self.is_reset = true;
    }

    fn send_id(&self) -> StreamId {
        self.id
    }
}

/// h3's number of a stream.
fn stream_id(id: noq::StreamId) -> StreamId {
    StreamId::try_from(u64::from(id)).expect("both count streams in 62 bits")
}

fn error_code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn stream_error(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        WriteError::ConnectionLost(error) => stream_error(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

/// noq's error of reading is inside of the one that tokio's trait asks for.
fn read_error(error: std::io::Error) -> StreamErrorIncoming {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ReadError>()).cloned();
    match inner {
        Some(ReadError::Reset(code)) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        Some(ReadError::ConnectionLost(error)) => stream_error(error),
        Some(other) => StreamErrorIncoming::Unknown(Box::new(other)),
        None => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    use noq::{ClientConfig, Endpoint, ReadToEndError, ServerConfig};

    use super::*;
    use crate::tls::{Certificate, Trust};
    use crate::warnings::Warnings;

    /// A server's end of a connection and a client's, with the endpoints that carry them.
    async fn pair() -> ((Endpoint, noq::Connection), (Endpoint, noq::Connection)) {
        let tls = Certificate::SelfSigned.config(&[b"h3"], &Warnings::default()).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let tls = Trust::Anyone.config(&[b"h3"]).unwrap();
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let address = server.local_addr().unwrap();
        let connecting = client.connect_with(config, address, "localhost").unwrap();
        let (accepted, connected) = tokio::join!(async { server.accept().await.unwrap().await.unwrap() }, connecting);
        ((server, accepted), (client, connected.unwrap()))
    }

    #[tokio::test]
    async fn an_answer_whose_writer_fails_is_not_taken_for_a_whole_one() {
        let ((_server, accepted), (_client, connected)) = pair().await;
        let cuts = Cuts::default();
        let transport = Connection::new(accepted, cuts.clone());
        let answering = tokio::spawn(async move {
            let mut connection = h3::server::Connection::<_, Bytes>::new(transport).await.unwrap();
            let resolver = connection.accept().await.unwrap().unwrap();
            let failing = tokio::spawn(async move {
                let (_, mut stream) = resolver.resolve_request().await.unwrap();
                stream.send_response(http::Response::new(())).await.unwrap();
                stream.send_data(Bytes::from_static(b"a part")).await.unwrap();
                std::panic::resume_unwind(Box::new("the writer fails"));
            });
            assert!(failing.await.is_err());
            drop(connection.accept().await);
        });
        let (mut send, mut receive) = connected.open_bi().await.unwrap();
        // HEADERS with `:method GET`, `:scheme https`, `:path /` of QPACK's static table, and `:authority localhost`.
        send.write_all(b"\x01\x10\0\0\xd1\xd7\xc1\x50\x09localhost").await.unwrap();
        send.finish().unwrap();
        let cut = VarInt::from_u32(0x102);
        let end = receive.read_to_end(1000).await;
        assert!(matches!(end, Err(ReadToEndError::Read(ReadError::Reset(code))) if code == cut), "{end:?}");
        connected.close(error_code(Code::H3_NO_ERROR.value()), b"");
        answering.await.unwrap();
    }

    #[test]
    fn only_a_number_is_a_content_length() {
        let of = |values: &[&'static str]| {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(header::CONTENT_LENGTH, header::HeaderValue::from_static(value));
            }
            content_length(&fields)
        };
        assert_eq!((of(&[]), of(&["5"]), of(&["5", "5"])), (Ok(None), Ok(Some(5)), Ok(Some(5))));
        for wrong in [&["-5"][..], &["+5"], &["18446744073709551616"], &["5", "6"], &[""], &["5, 5"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
