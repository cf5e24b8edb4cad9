/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Blitzstart: begins in congestion avoidance with the window that a hint about the bandwidth and the RTT give.
 *
 * Reference: the Blitzstart paper, as flowstart-core's blitzstart.rs has it.
 *
 * Differences from the reference: those of that file. Hints come from a table of destinations instead of the client
 * and say nothing of the access technology, so there is one buffer factor. The host's own pacing rule is the
 * kernel's: 120 % of cwnd / srtt in congestion avoidance. It ends with the launch, for the kernel does not pace
 * CUBIC.
 */
#ifndef FLOWSTART_BLITZSTART_H
#define FLOWSTART_BLITZSTART_H

#include "slow_start.h"

/* Which RTT multiplies the bandwidth. */
enum rtt_source {
	RTT_MIN = 0,
	RTT_HANDSHAKE,
	RTT_CACHED,
};

struct blitzstart_config {
	struct factor estimate;
	struct factor buffer_factor;
	/* Payload over wire size, or 1 if the hint does not count headers. */
	struct factor payload_fraction;
	struct factor pacing_fraction;
	u64 ack_delay;
	u64 min_hint;
	u64 max_hint;
	u32 rtt;
	u32 pacing;
	/* Whether the launch window is paced over the launch's RTT, instead of by the host's rule. */
	u32 paced_over_launch_rtt;
	u32 unused;
};

struct blitzstart {
	u64 rate;
};

static __always_inline u64 blitzstart_rtt(const struct blitzstart_config *config, const struct path *path)
{
	u64 rtt = path->min_rtt;

	if (config->rtt == RTT_HANDSHAKE)
		rtt = path->handshake_rtt;
	else if (config->rtt == RTT_CACHED)
		rtt = path->saved_rtt ? path->saved_rtt : path->handshake_rtt;
	return rtt ? rtt + config->ack_delay : 0;
}

/* cwnd = bandwidth x RTT x buffer factor, at least two segments; 0 without a hint or an RTT. */
static __always_inline u64 blitzstart_window(const struct blitzstart_config *config, const struct path *path)
{
	u64 rtt = blitzstart_rtt(config, path);
	u64 bandwidth, window;

	if (!path->hint_rate || !rtt)
		return 0;
	bandwidth = scaled(path->hint_rate, config->estimate);
	bandwidth = smaller(larger(bandwidth, config->min_hint), config->max_hint);
	window = scaled(smaller(amount_in(bandwidth, rtt), LARGEST_WINDOW), config->buffer_factor);
	window = scaled(smaller(window, LARGEST_WINDOW), config->payload_fraction);
	return larger(smaller(window, LARGEST_WINDOW), 2 * path->segment);
}

/* Sensing: the hint and an RTT give the window. There is no Probing. */
static __always_inline struct launch blitzstart_launch(struct blitzstart *it, const struct blitzstart_config *config,
						       const struct path *path, u32 position)
{
	u64 cwnd = blitzstart_window(config, path);
	bool by_host = !config->paced_over_launch_rtt && path->handshake_rtt;

	(void)position;
	it->rate = 0;
	if (!cwnd)
		return no_launch(path);
	if (config->pacing && !by_host)
		it->rate = rate_over(cwnd, larger(scaled(blitzstart_rtt(config, path), config->pacing_fraction), 1));
	/* Continuation: congestion avoidance from the first packet; ssthresh = cwnd so that slow start never runs. */
	return (struct launch){
		.cwnd = cwnd,
		.ssthresh = cwnd,
		.pacing_rate = it->rate,
		.paced = config->pacing,
		.launched = true,
	};
}

#define blitzstart_send_buffer(config, path) blitzstart_window(config, path)
#define blitzstart_pacing_rate(it) ((it)->rate)
#define blitzstart_next_wakeup(it) ((void)(it), UNLIMITED)
#define blitzstart_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define blitzstart_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define blitzstart_launched(it) ((void)(it), 0)
#define blitzstart_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define blitzstart_on_sent(it, position, in_flight) ((void)(it), (void)(position), (void)(in_flight))
#define blitzstart_on_ack(it, config, ack, cwnd) ((void)(it), (void)(config), slow_start_on_ack(ack, cwnd))
#define blitzstart_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
#define blitzstart_on_congestion(it, loss, reduced) \
	((void)(it), slow_start_on_congestion(loss, reduced))
#define blitzstart_on_undo(it) ((void)(it))
#define blitzstart_on_recovered(it, cwnd) ((void)(it), exits(cwnd, EXIT_LOSS))
#define blitzstart_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define blitzstart_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
