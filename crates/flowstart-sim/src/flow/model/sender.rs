//! The choice among the model's senders.

use crate::traffic::{Pattern, Source};
use crate::transport::call::CallSender;
use crate::transport::constant::Constant;
use crate::transport::policy::Protocol;
use crate::transport::quic::QuicSender;
use crate::transport::sender::{Sender, SenderBase};
use crate::transport::tcp::TcpSender;

/// A sender of the model.
#[derive(Clone, Debug)]
pub(super) enum SenderState {
    Tcp(Box<TcpSender>),
    Quic(Box<QuicSender>),
    Constant(Constant),
    Call(Box<CallSender>),
}

impl SenderState {
    /// The sender for the application and the profile of `base`.
    pub(super) fn new(base: SenderBase, source: &Source, seed: u64) -> Self {
        if let Pattern::Call(call) = source.pattern() {
            return Self::Call(Box::new(CallSender::new(base.flow, *call, seed)));
        }
        match (source.constant(), base.profile.protocol) {
            (Some((interval, packet)), _) => Self::Constant(Constant::new(
                base.flow,
                source.pattern(),
                interval,
                packet,
                base.profile.overhead,
                seed,
            )),
            (None, Protocol::Tcp) => Self::Tcp(Box::new(TcpSender::new(base))),
            (None, Protocol::Quic) => Self::Quic(Box::new(QuicSender::new(base))),
        }
    }

    pub(super) fn as_ref(&self) -> &dyn Sender {
        match self {
            Self::Tcp(sender) => sender.as_ref(),
            Self::Quic(sender) => sender.as_ref(),
            Self::Constant(sender) => sender,
            Self::Call(sender) => sender.as_ref(),
        }
    }

    #[inline]
    pub(super) fn as_dyn(&mut self) -> &mut dyn Sender {
        match self {
            Self::Tcp(sender) => sender.as_mut(),
            Self::Quic(sender) => sender.as_mut(),
            Self::Constant(sender) => sender,
            Self::Call(sender) => sender.as_mut(),
        }
    }
}
