/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Jump-Start: sends all waiting data in the first round trip.
 *
 * Reference: Liu, Allman, Jin, Wang, "Congestion Control Without a Startup Phase", PFLDnet 2007; Scharf,
 * "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The sender paces the data in its queue over the
 * first RTT, limited by the receiver's window. When R of the D paced packets had to be retransmitted, cwnd after
 * recovery is (D - R) / 2, at least one segment.
 *
 * Differences from the reference: those of flowstart-core's jump_start.rs. D may grow until the first acknowledgement
 * (jump_start_waiting): an application needs some time to hand its data over.
 */
#ifndef FLOWSTART_JUMP_START_H
#define FLOWSTART_JUMP_START_H

#include "launched_window.h"

struct jump_start_config {
	/* Most bytes that are launched; UNLIMITED: only the receive window limits. */
	u64 threshold;
	/* Whether the window is paced over the RTT. */
	u32 pacing;
	u32 unused;
};

struct jump_start {
	struct launched_window window;
	u64 span;
};

/* D = min(queued data, receive window, threshold). */
static __always_inline u64 jump_start_d(const struct jump_start_config *config, const struct path *path)
{
	u64 window = smaller(path->bytes_waiting, config->threshold);

	return path->receive_window ? smaller(window, path->receive_window) : window;
}

/* Sensing: D. Probing: over the RTT of the handshake. */
static __always_inline struct launch jump_start_launch(struct jump_start *it, const struct jump_start_config *config,
						       const struct path *path, u32 position)
{
	u64 window = jump_start_d(config, path);

	it->span = path->handshake_rtt ? path->handshake_rtt : path->min_rtt;
	if (!it->span || window <= path->initial_window)
		return no_launch(path);
	return launched_window_launch(&it->window, path, position, window, it->span, config->pacing);
}

/* More data waits, and nothing was acknowledged yet: D may grow. `bytes_waiting` includes what has left. */
static __always_inline bool jump_start_waiting(struct jump_start *it, const struct jump_start_config *config,
					       const struct path *path)
{
	u64 window = jump_start_d(config, path);

	if (it->window.state != WINDOW_UNVALIDATED || window <= it->window.window)
		return false;
	it->window.window = window;
	it->window.rate = config->pacing ? rate_over(window, it->span) : 0;
	it->window.has_end = false;
	return true;
}

/* A first piece of data may be too small for a launch. */
static __always_inline bool jump_start_may_launch_later(const struct jump_start_config *config, const struct path *path)
{
	return (path->handshake_rtt || path->min_rtt) && jump_start_d(config, path) <= path->initial_window;
}

/* Room for all that may be launched. */
static __always_inline u64 jump_start_send_buffer(const struct jump_start_config *config, const struct path *path)
{
	return config->threshold;
}

#define jump_start_next_wakeup(it) ((void)(it), UNLIMITED)
#define jump_start_launched(it) ((it)->window.window)
#define jump_start_has_in_launch(it, position) launched_window_has(&(it)->window, position)
#define jump_start_on_sent(it, position, in_flight) \
	((void)(in_flight), launched_window_on_sent(&(it)->window, position))
#define jump_start_pacing_rate(it) launched_window_pacing_rate(&(it)->window)
#define jump_start_on_ack(it, config, ack, cwnd) ((void)(config), launched_window_on_ack(&(it)->window, ack, cwnd))
#define jump_start_on_retransmission(it, position, bytes) \
	launched_window_on_retransmission(&(it)->window, position, bytes)
#define jump_start_on_congestion(it, loss, reduced) \
	launched_window_on_congestion(&(it)->window, loss, reduced)
#define jump_start_on_undo(it) launched_window_on_undo(&(it)->window)
#define jump_start_on_recovered(it, cwnd) ((void)(cwnd), launched_window_on_recovered(&(it)->window))
#define jump_start_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define jump_start_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
