/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * More-Start: launches at a given rate, without the routers' consent.
 *
 * Reference: Scharf, "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The initial rate comes from
 * the application or the path's past. The window of one RTT at this rate is paced. Validation and continuation are
 * those of Jump-Start.
 *
 * Differences from the reference: those of flowstart-core's more_start.rs. A rate of the application is the same for
 * all connections.
 */
#ifndef FLOWSTART_MORE_START_H
#define FLOWSTART_MORE_START_H

#include "launched_window.h"

/* Where the rate comes from. */
enum rate_source {
	/* The first that is known: application, hint. */
	RATE_ANY = 0,
	RATE_APPLICATION,
	RATE_HINT,
	/* An earlier connection: the hint, if it says this connection's RTT. */
	RATE_SAVED,
};

struct more_start_config {
	/* The application's rate; 0: none. */
	u64 rate;
	struct factor factor;
	u32 source;
	u32 pacing;
};

struct more_start {
	struct launched_window window;
};

/* What a source says, or 0. */
static __always_inline u64 more_start_answer(const struct more_start_config *config, const struct path *path)
{
	u64 rate = config->rate;

	if (config->source == RATE_HINT || (config->source == RATE_ANY && !rate))
		rate = path->hint_rate;
	else if (config->source == RATE_SAVED)
		rate = path->saved_rtt ? path->hint_rate : 0;
	return rate;
}

static __always_inline u64 more_start_span(const struct path *path)
{
	return path->handshake_rtt ? path->handshake_rtt : path->min_rtt;
}

/* cwnd = rate x RTT; 0 if one of them is not known. */
static __always_inline u64 more_start_window(const struct more_start_config *config, const struct path *path)
{
	u64 rate = smaller(scaled(more_start_answer(config, path), config->factor), FASTEST_RATE);

	return smaller(amount_in(rate, more_start_span(path)), LARGEST_WINDOW);
}

/* Sensing: a rate from one of the sources. Probing: at this rate. */
static __always_inline struct launch more_start_launch(struct more_start *it, const struct more_start_config *config,
						       const struct path *path, u32 position)
{
	if (!more_start_span(path) || !more_start_answer(config, path))
		return no_launch(path);
	return launched_window_launch(&it->window, path, position, more_start_window(config, path),
				      more_start_span(path), config->pacing);
}

#define more_start_send_buffer(config, path) more_start_window(config, path)
#define more_start_pacing_rate(it) launched_window_pacing_rate(&(it)->window)
#define more_start_next_wakeup(it) ((void)(it), UNLIMITED)
#define more_start_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define more_start_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define more_start_launched(it) ((it)->window.window)
#define more_start_has_in_launch(it, position) launched_window_has(&(it)->window, position)
#define more_start_on_sent(it, position, in_flight) \
	((void)(in_flight), launched_window_on_sent(&(it)->window, position))
#define more_start_on_ack(it, config, ack, cwnd) ((void)(config), launched_window_on_ack(&(it)->window, ack, cwnd))
#define more_start_on_retransmission(it, position, bytes) \
	launched_window_on_retransmission(&(it)->window, position, bytes)
#define more_start_on_congestion(it, loss, reduced) \
	launched_window_on_congestion(&(it)->window, loss, reduced)
#define more_start_on_undo(it) launched_window_on_undo(&(it)->window)
#define more_start_on_recovered(it, cwnd) ((void)(cwnd), launched_window_on_recovered(&(it)->window))
#define more_start_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define more_start_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
