//! The windows that the connections of each client share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use flowstart_quic::sharing::SharedWindow;

/// Addresses that are kept before those without connections are looked for.
const FEWEST_KEPT: usize = 64;

/// A window for each address that has connections. Those of one prefix may have different access links, so they share
/// nothing.
#[derive(Debug, Default)]
pub(super) struct SharedWindows(Mutex<HashMap<IpAddr, Weak<SharedWindow>>>);

impl SharedWindows {
    /// The window of a client's connections, which lives as long as one of them. Memory is bounded by twice as many
    /// addresses as have connections.
    pub(super) fn of(&self, client: IpAddr) -> Arc<SharedWindow> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get(&client).and_then(Weak::upgrade) {
            return window;
        }
        if windows.len() >= FEWEST_KEPT && windows.len() == windows.capacity() {
            windows.retain(|_, window| window.strong_count() > 0);
        }
        let window = SharedWindow::new(Instant::now());
        windows.insert(client, Arc::downgrade(&window));
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_of_an_address_share_and_a_forgotten_address_takes_no_memory() {
        let windows = SharedWindows::default();
        let client = |number: u32| IpAddr::V4(number.into());
        let (one, other) = (windows.of(client(0)), windows.of(client(1)));
        assert!(Arc::ptr_eq(&one, &windows.of(client(0))) && !Arc::ptr_eq(&one, &other));
        for number in 2..100_000 {
            drop(windows.of(client(number)));
        }
        assert!(windows.0.lock().unwrap().len() < 1000);
        assert!(Arc::ptr_eq(&one, &windows.of(client(0))));
    }
}
