//! The receiving direction of streams, and what requests that have not come to their ends keep.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use h3::error::Code;
use h3::quic::{self, StreamErrorIncoming, StreamId};
use noq::ConnectionError;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::frames::{Frames, Refused};
use super::{error_code, read_error, stream_error, stream_id};

/// Bytes of the heads of a connection's requests together, as long as they have not come to their ends. The HTTP
/// library keeps as much again.
const MOST_OF_HEADS: usize = 256 << 10;
/// Bytes that are read from a stream in one go.
const READ_SIZE: usize = 64 << 10;
/// The same of a request.
const READ_OF_REQUEST: usize = 4 << 10;

/// The receiving direction of a stream.
pub(crate) struct RecvStream {
    stream: noq::RecvStream,
    connection: noq::Connection,
    pub(super) frames: Frames,
    /// Where the bytes of its head count.
    heads: Option<OfHeads>,
    buffer: BytesMut,
}

/// A stream's part of the heads that a connection keeps.
pub(super) struct OfHeads {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl OfHeads {
    /// A stream that keeps nothing so far, among `all`.
    pub(super) fn of(all: Arc<AtomicUsize>) -> Self {
        Self { all, own: 0 }
    }

    /// The stream keeps this much now; whether all of them keep too much.
    fn keep(&mut self, bytes: usize) -> bool {
        let before = self.all.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_sub(self.own, Ordering::Relaxed);
        let all = before + bytes - self.own;
        self.own = bytes;
        all > MOST_OF_HEADS
    }
}

impl Drop for OfHeads {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

impl RecvStream {
    /// Consists of these frames.
    pub(super) fn new(
        stream: noq::RecvStream,
        connection: noq::Connection,
        frames: Frames,
        heads: Option<OfHeads>,
    ) -> Self {
        Self { stream, connection, frames, heads, buffer: BytesMut::new() }
    }

    /// Ends the connection for what came on this stream.
    pub(super) fn close(&self, code: Code, reason: &[u8]) -> StreamErrorIncoming {
        self.connection.close(error_code(code.value()), reason);
        stream_error(ConnectionError::LocallyClosed)
    }

    /// The next bytes, none at the end. Of the many requests of a connection that may wait, nothing is kept here: only
    /// what [`OfHeads`] counts.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<Bytes>> {
        if self.heads.is_some() {
            let mut bytes = [0; READ_OF_REQUEST];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            return Poll::Ready(Ok(Bytes::copy_from_slice(read.filled())));
        }
        // What is left of the buffer after the last read is used before there is a new one.
        if self.buffer.capacity() < READ_SIZE / 4 {
            self.buffer.reserve(READ_SIZE);
        }
        ready!(poll_read_buf(Pin::new(&mut self.stream), context, &mut self.buffer))?;
        Poll::Ready(Ok(self.buffer.split().freeze()))
    }

    /// Begins with its type (RFC 9114, section 6.2).
    pub(super) fn one_way(stream: noq::RecvStream, connection: noq::Connection) -> Self {
        Self::new(stream, connection, Frames::of_typed_stream(), None)
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(self.poll_read(context));
        Poll::Ready(match read {
            Ok(bytes) if bytes.is_empty() => Ok(None),
            Ok(bytes) => match self.frames.pass(&bytes) {
                Ok(()) if self.heads.as_mut().is_some_and(|heads| heads.keep(self.frames.held())) => {
                    Err(self.close(Code::H3_EXCESSIVE_LOAD, b"too many heads do not come to their ends"))
                }
                Ok(()) => Ok(Some(bytes)),
                Err(Refused::Malformed) => {
                    Err(StreamErrorIncoming::StreamTerminated { error_code: Code::H3_MESSAGE_ERROR.value() })
                }
                Err(Refused::Unexpected) => {
                    Err(self.close(Code::H3_FRAME_UNEXPECTED, b"a frame of the message comes behind its trailers"))
                }
                Err(Refused::TooLarge) => {
                    Err(self.close(Code::H3_EXCESSIVE_LOAD, b"a frame is announced that is too large"))
                }
            },
            Err(error) => Err(read_error(error)),
        })
    }

    fn stop_sending(&mut self, code: u64) {
        // A stream that is closed already needs not be stopped.
        drop(self.stream.stop(error_code(code)));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}
