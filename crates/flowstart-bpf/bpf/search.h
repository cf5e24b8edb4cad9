/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * SEARCH: slow start that ends when deliveries stop growing with what is sent.
 *
 * Reference: Cronin, Ataei Kachooei, Chung, Li, Peters, Claypool, "Improving QUIC Slow Start Performance with
 * SEARCH", Algorithm 1, in the revision of Firefox (neqo 80ca01ee). Bins last 0.35 initial RTTs each. The deliveries
 * in a window of ten bins are compared with the bytes sent an RTT earlier. If a share of THRESH is missing, the path
 * is full.
 *
 * Differences from the reference: those of flowstart-core's search/, whose `variant=firefox` this is. What is sent is
 * seen each time the kernel is about to send or gets an acknowledgement, not packet by packet. What only a selective
 * acknowledgement reports is not seen, for the kernel does not call the program then. After a timeout, and after losses
 * that were none, SEARCH does not go on: what follows is CUBIC's slow start with HyStart.
 */
#ifndef FLOWSTART_SEARCH_H
#define FLOWSTART_SEARCH_H

#include "slow_start.h"

/* W: bins in a window. */
#define SEARCH_W 10
#define SEARCH_EXTRA_BINS 15
/* Places for bins: W + EXTRA_BINS, and those that the interpolation needs; a power of two for the kernel's verifier. */
#define SEARCH_PLACES 32
/* A share of a bin. */
#define SEARCH_FRACTION 20

struct search_config {
	/* BIN_DURATION in billionths of an initial RTT. */
	u32 bin_duration;
	/* THRESH in millionths. */
	u32 thresh;
	/* Initial window in segments; 0: the host's. */
	u32 iw;
	u32 unused;
};

/* Named as in Algorithm 1; times in nanoseconds. */
struct search {
	u64 bin_duration;
	u64 bin_end;
	u64 rtt;
	/* Totals, and those when each bin began. */
	u64 sent_bytes;
	u64 acked_bytes;
	u64 sent[SEARCH_PLACES];
	u64 acked[SEARCH_PLACES];
	u64 cwnd;
	/* Number of the current bin. */
	u32 curr;
	/* All before this was sent. */
	u32 last;
	/* Position of the last packet with which half of the window was in flight. */
	u32 used_until;
	/* Whether the first RTT sample was there. */
	bool has_begun;
};

static __always_inline u64 search_window(const struct search_config *config, const struct path *path)
{
	return config->iw ? config->iw * path->segment : path->initial_window;
}

/* Sensing: nothing is known. */
static __always_inline struct launch search_launch(struct search *it, const struct search_config *config,
						   const struct path *path, u32 position)
{
	it->last = it->used_until = position;
	return (struct launch){ .cwnd = search_window(config, path), .ssthresh = UNLIMITED, .launched = true };
}

/* Firefox, in slow start: a sender that uses half of the window is not limited by the application. */
static __always_inline void search_on_sent(struct search *it, u32 position, u64 in_flight)
{
	if (!is_before(it->last, position))
		return;
	it->sent_bytes += position - it->last;
	it->last = position;
	if (in_flight * 2 >= it->cwnd)
		it->used_until = position;
}

/* Lines 7 to 11, with the first RTT sample. */
static __always_inline void search_initialize(struct search *it, const struct search_config *config, u64 now, u64 rtt)
{
	it->bin_duration = larger((rtt * config->bin_duration + 500000000) / 1000000000, 1);
	it->bin_end = now + it->bin_duration;
	it->curr = 0;
	it->has_begun = true;
	it->sent[0] = it->sent_bytes;
	it->acked[0] = it->acked_bytes;
}

/* Lines 13 to 16: ends the bins whose time is over; returns whether one did. */
static __always_inline bool search_advance(struct search *it, u64 now)
{
	u64 passed, sent, acked;
	u32 bin;

	if (now <= it->bin_end || !it->bin_duration)
		return false;
	passed = (now - it->bin_end) / it->bin_duration + 1;
	if (passed > SEARCH_W) {
		/* Begins anew with the next RTT sample. */
		it->has_begun = false;
		it->sent_bytes = it->acked_bytes = 0;
		return false;
	}
	it->bin_end += it->bin_duration * passed;
	sent = it->sent[it->curr & (SEARCH_PLACES - 1)];
	acked = it->acked[it->curr & (SEARCH_PLACES - 1)];
	/* The totals did not change in the bins between. */
	for (bin = 1; bin < SEARCH_W; bin++) {
		if (bin < passed) {
			it->sent[(it->curr + bin) & (SEARCH_PLACES - 1)] = sent;
			it->acked[(it->curr + bin) & (SEARCH_PLACES - 1)] = acked;
		}
	}
	it->curr += passed;
	it->sent[it->curr & (SEARCH_PLACES - 1)] = it->sent_bytes;
	it->acked[it->curr & (SEARCH_PLACES - 1)] = it->acked_bytes;
	return true;
}

/* Bytes of the window that ends before bin `end`. */
static __always_inline u64 search_bytes(const u64 totals[SEARCH_PLACES], u32 end)
{
	u64 to = totals[end & (SEARCH_PLACES - 1)], from = totals[(end - SEARCH_W) & (SEARCH_PLACES - 1)];

	return to > from ? to - from : 0;
}

/* Lines 17 to 24: whether a share of THRESH of the expected deliveries is missing. */
static __always_inline bool search_is_full(const struct search *it, const struct search_config *config)
{
	u64 bins, fraction, curr_delv, prev_sent;
	u32 prev;

	if (!it->bin_duration)
		return false;
	bins = it->rtt / it->bin_duration;
	if (bins + 1 > SEARCH_EXTRA_BINS || it->curr < bins + SEARCH_W + 1)
		return false;
	prev = it->curr - (u32)bins;
	curr_delv = search_bytes(it->acked, it->curr);
	fraction = ((it->rtt % it->bin_duration) << SEARCH_FRACTION) / it->bin_duration;
	/* Between the window that is too new and the next older one. */
	prev_sent = (search_bytes(it->sent, prev) * ((1 << SEARCH_FRACTION) - fraction) +
		     search_bytes(it->sent, prev - 1) * fraction) >> SEARCH_FRACTION;
	/* norm_diff = (prev_sent - curr_delv) / prev_sent */
	return prev_sent && curr_delv * 1000000 <= prev_sent * (1000000 - config->thresh);
}

/* Probing as slow start. Validation: deliveries against bytes sent an RTT ago. */
static __always_inline struct step search_on_ack(struct search *it, const struct search_config *config,
						 const struct ack *ack, u64 cwnd)
{
	it->acked_bytes += ack->bytes;
	it->cwnd = cwnd;
	if (ack->rtt)
		it->rtt = ack->rtt * 1000;
	/* The bytes of an application that sends too little count, but no bin ends with them. */
	if (is_before(it->used_until, ack->position))
		return goes_on(cwnd);
	if (!it->has_begun) {
		if (ack->rtt)
			search_initialize(it, config, ack->now, it->rtt);
	} else if (search_advance(it, ack->now) && search_is_full(it, config)) {
		/* Continuation: the window that it has. */
		return exits(cwnd, EXIT_CHOKEPOINT);
	}
	return goes_on(slow_start_growth(cwnd, ack));
}

#define search_send_buffer(config, path) search_window(config, path)
#define search_pacing_rate(it) ((void)(it), 0)
#define search_next_wakeup(it) ((void)(it), UNLIMITED)
#define search_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define search_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define search_launched(it) ((void)(it), 0)
#define search_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define search_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
#define search_on_congestion(it, loss, reduced) \
	((void)(it), slow_start_on_congestion(loss, reduced))
#define search_on_undo(it) ((void)(it))
#define search_on_recovered(it, cwnd) ((void)(it), exits(cwnd, EXIT_LOSS))
#define search_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define search_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
