/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Initial-Start: only a larger initial window.
 *
 * Reference: Scharf, "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The initial window is a
 * constant, or follows from knowledge about the path, as in Riptide (Flores et al., ICDCS 2016). It leaves at once.
 *
 * Differences from the reference: those of flowstart-core's initial_start.rs. The path's own window is the hint's
 * rate times an RTT. HyStart of the kernel's CUBIC is off, as with every scheme in charge of a start: slow start goes
 * on until a loss.
 */
#ifndef FLOWSTART_INITIAL_START_H
#define FLOWSTART_INITIAL_START_H

#include "slow_start.h"

/* Where the window comes from. */
enum window_source {
	WINDOW_STATIC = 0,
	/* What an earlier connection delivered in a round trip. */
	WINDOW_SAVED,
	/* The hint times this connection's RTT. */
	WINDOW_HINT,
};

struct initial_start_config {
	struct factor factor;
	/* Segments. */
	u32 iw;
	u32 max_window;
	u32 window;
	u32 pacing;
};

struct initial_start {
	u64 rate;
};

static __always_inline u64 initial_start_window(const struct initial_start_config *config, const struct path *path)
{
	u64 own, rtt = 0;

	if (config->window == WINDOW_SAVED)
		rtt = path->saved_rtt;
	else if (config->window == WINDOW_HINT)
		rtt = path->min_rtt;
	if (!rtt || !path->hint_rate)
		return config->iw * path->segment;
	/* A path that carries less than a byte in a round trip is known all the same. */
	own = amount_in(path->hint_rate, rtt);
	own = scaled(smaller(own, LARGEST_WINDOW), config->factor);
	return larger(smaller(own, config->max_window * path->segment), path->segment);
}

/* Sensing: a constant, or the known capacity of the path. Probing: at once. */
static __always_inline struct launch initial_start_launch(struct initial_start *it,
							  const struct initial_start_config *config,
							  const struct path *path, u32 position)
{
	u64 cwnd = initial_start_window(config, path);

	(void)position;
	it->rate = config->pacing ? rate_over(cwnd, path->handshake_rtt ? path->handshake_rtt : path->min_rtt) : 0;
	return (struct launch){
		.cwnd = cwnd,
		.ssthresh = UNLIMITED,
		.pacing_rate = it->rate,
		.paced = it->rate,
		.launched = true,
	};
}

/* Validation and Continuation: slow start's. The launch's rate ends with the first acknowledgement. */
static __always_inline struct step initial_start_on_ack(struct initial_start *it,
							const struct initial_start_config *config,
							const struct ack *ack, u64 cwnd)
{
	(void)config;
	it->rate = 0;
	return slow_start_on_ack(ack, cwnd);
}

#define initial_start_send_buffer(config, path) initial_start_window(config, path)
#define initial_start_pacing_rate(it) ((it)->rate)
#define initial_start_next_wakeup(it) ((void)(it), UNLIMITED)
#define initial_start_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define initial_start_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define initial_start_launched(it) ((void)(it), 0)
#define initial_start_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define initial_start_on_sent(it, position, in_flight) ((void)(it), (void)(position), (void)(in_flight))
#define initial_start_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
#define initial_start_on_congestion(it, loss, reduced) \
	((it)->rate = 0, slow_start_on_congestion(loss, reduced))
#define initial_start_on_undo(it) ((void)(it))
#define initial_start_on_recovered(it, cwnd) ((void)(it), exits(cwnd, EXIT_LOSS))
#define initial_start_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define initial_start_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
