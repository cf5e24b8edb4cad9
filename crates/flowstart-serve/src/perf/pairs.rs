//! A scheme beside the CUBIC that comes with noq, over the loopback interface.

use std::time::Duration;

use flowstart_core::units::Bytes;
use flowstart_statistics::{BootstrapEstimate, LEVEL, RESAMPLES, bca_mean_ratio_paired};
use tokio_util::task::AbortOnDropHandle;

use super::{Client, Congestion, Direction, PERF, PerfError, Server};
use crate::tls::{Certificate, Trust};
use crate::warnings::Warnings;

/// Both windows. noq ends a connection when more than 2048 pieces of a stream wait behind a gap
/// ([`crate::RECEIVE_WINDOW`]); 2 MiB are 1445 packets, of which few are lost here.
const WINDOW: Bytes = Bytes::new(2 << 20);

/// The cost of one transfer, at both ends together.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Megabits per second.
    pub throughput_mbps: f64,
    /// CPU time for 10^9 bytes.
    pub cpu_seconds_per_gb: f64,
}

/// Pairs of transfers, in their order.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// Those of the scheme.
    pub scheme: Vec<Cost>,
    /// Those of noq's CUBIC.
    pub noq_cubic: Vec<Cost>,
}

impl Pairs {
    /// The ratio of the means of a part of the cost, with its 95 % interval; `None` for fewer than two pairs.
    pub fn ratio(&self, part: impl Fn(&Cost) -> f64) -> Option<BootstrapEstimate> {
        let of = |costs: &[Cost]| costs.iter().map(&part).collect::<Vec<_>>();
        bca_mean_ratio_paired(&of(&self.scheme), &of(&self.noq_cubic), LEVEL, RESAMPLES, 1)
    }
}

/// Transfers `size` bytes this many times with `congestion` and as often with noq's CUBIC; their order alternates.
/// Calls `done` after each pair.
///
/// # Errors
///
/// [`PerfError`] when a transfer breaks, or when the system does not report CPU times.
pub async fn pairs(
    size: Bytes,
    number: u32,
    congestion: &Congestion,
    mut done: impl FnMut(),
) -> Result<Pairs, PerfError> {
    // The first transfer warms up the allocator and the interface, and counts for nothing.
    over_loopback(size, &Congestion::NoqCubic).await?;
    let mut pairs = Pairs::default();
    for pair in 0..number {
        let mut order = [true, false];
        order.rotate_left(pair as usize % 2);
        for ours in order {
            let (costs, congestion) =
                if ours { (&mut pairs.scheme, congestion) } else { (&mut pairs.noq_cubic, &Congestion::NoqCubic) };
            costs.push(over_loopback(size, congestion).await?);
        }
        done();
    }
    Ok(pairs)
}

async fn over_loopback(size: Bytes, congestion: &Congestion) -> Result<Cost, PerfError> {
    let any = ([127, 0, 0, 1], 0).into();
    let tls = Certificate::SelfSigned.config(&[PERF], &Warnings::default())?;
    let server = Server::with_windows(any, tls, congestion, WINDOW, WINDOW)?;
    let tls = Trust::Anyone.config(&[PERF])?;
    let mut client = Client::with_windows(server.address(), "localhost", tls, congestion, WINDOW, WINDOW)?;
    client.interval = Duration::from_secs(3600);
    let server = std::sync::Arc::new(server);
    let serving = AbortOnDropHandle::new(tokio::spawn({
        let server = server.clone();
        async move { server.run().await }
    }));
    let measured = client.transfer(Direction::Download, size).await?;
    let cpu = measured.cpu_seconds.ok_or(PerfError::NoClock)?;
    drop(serving);
    server.close();
    Ok(Cost { throughput_mbps: measured.goodput_mbps, cpu_seconds_per_gb: cpu / (measured.bytes as f64 / 1e9) })
}
