//! The standard output of a program whose reader may leave.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

/// Stdout. A reader that has seen enough and closed the pipe is no failure.
pub(super) struct WhileRead(pub(super) tokio::io::Stdout);

impl AsyncWrite for WhileRead {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, part: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(unless_closed(ready!(Pin::new(&mut self.0).poll_write(context, part)), part.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(unless_closed(ready!(Pin::new(&mut self.0).poll_flush(context)), ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(unless_closed(ready!(Pin::new(&mut self.0).poll_shutdown(context)), ()))
    }
}

/// What was written, or `all` if nobody reads any more.
fn unless_closed<T>(written: std::io::Result<T>, all: T) -> std::io::Result<T> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(all),
        written => written,
    }
}
