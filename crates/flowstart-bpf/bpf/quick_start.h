/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Quick-Start: the rate that the routers of the path approved is the launch.
 *
 * Reference: RFC 4782, sections 4.4 to 4.6; Sarolahti, Allman, Floyd, "Determining an Appropriate Sending Rate Over an
 * Underutilized Network Path", Computer Networks 2007, section 3.1. The window is what the approved rate carries in an
 * RTT (equation 1) and leaves paced over it. With the first acknowledgement of it the window becomes what has left, and
 * slow start goes on. If one of these packets is lost or marked, the flow starts as if nothing had been approved.
 *
 * Differences from the reference: those of flowstart-core's startup/quick_start.rs, without requests in mid-connection
 * and without the report of the approved rate. After a failure the kernel's proportional rate reduction leads to the
 * initial window, which grows again when the losses are repaired.
 *
 * Status: compared with flowstart-core by a test, which `flowstart validate ns2-quick-start` compares with ns-2.
 */
#ifndef FLOWSTART_QUICK_START_H
#define FLOWSTART_QUICK_START_H

#include "slow_start.h"

struct quick_start_config {
	/* H: bytes of a packet that the segment size does not count. */
	u64 header;
	/* Initial window in segments without Quick-Start; 0: the host's. */
	u32 iw;
	/* What is asked for: 40 kbit/s * 2^N. */
	u32 rate;
	/* Bits of the nonce that are compared. */
	u32 compared;
	/* Whether ssthresh after a failure is what congestion avoidance makes of the failed window. */
	u32 reduced_after_failure;
	/* Whether congestion avoidance follows when the window was acknowledged. */
	u32 verified_ends;
	u32 unused;
};

enum quick_start_state {
	/* Nothing was approved, or the approval is over. */
	QUICK_START_SLOW_START = 0,
	/* The window leaves, and nothing of it was acknowledged. */
	QUICK_START_SENDING,
	/* Some of it was acknowledged. */
	QUICK_START_VALIDATING,
	/* Some of it was lost, and recovery goes on. */
	QUICK_START_FAILED,
};

struct quick_start {
	/* Rate at which the window leaves. */
	u64 rate;
	u64 initial_window;
	u64 reduced;
	/* The window before the first acknowledgement leaves it as what has left. */
	u32 first;
	/* All before this was sent. */
	u32 last;
	/* All before this is the window, once it is known. */
	u32 end;
	bool has_end;
	bool reduced_after_failure;
	u8 state;
};

static __always_inline u64 quick_start_initial_window(const struct quick_start_config *config, const struct path *path)
{
	return config->iw ? config->iw * path->segment : path->initial_window;
}

/* Equation (1) in whole segments: rate * RTT * MSS / (MSS + H). */
static __always_inline u64 quick_start_window(const struct quick_start_config *config, const struct path *path)
{
	u64 carried = smaller(path->approved_rate, FASTEST_RATE) * smaller(path->handshake_rtt, LONGEST_TIME);
	u64 segment = smaller(larger(path->segment, 1), 65535), packet = segment + smaller(config->header, 65535);
	u64 payload = carried / packet * segment + carried % packet * segment / packet;

	return payload / MICROSECONDS / segment * segment;
}

/* Sensing: the approved rate. Probing: its window, over an RTT. */
static __always_inline struct launch quick_start_launch(struct quick_start *it, const struct quick_start_config *config,
							const struct path *path, u32 position)
{
	u64 initial_window = quick_start_initial_window(config, path);
	u64 window = quick_start_window(config, path);

	if (window <= initial_window)
		return (struct launch){ .cwnd = initial_window, .ssthresh = UNLIMITED };
	*it = (struct quick_start){
		.rate = rate_over(window, path->handshake_rtt),
		.initial_window = initial_window,
		.first = position,
		.last = position,
		.reduced_after_failure = config->reduced_after_failure,
		.state = QUICK_START_SENDING,
	};
	return (struct launch){
		.cwnd = window,
		.ssthresh = UNLIMITED,
		.pacing_rate = it->rate,
		.paced = true,
		.launched = true,
	};
}

/* All before `position` has been sent. */
static __always_inline void quick_start_on_sent(struct quick_start *it, u32 position, u64 in_flight)
{
	(void)in_flight;
	it->last = position;
}

/* Whether the data before `position` is of the approved window. */
static __always_inline bool quick_start_is_window(const struct quick_start *it, u32 position)
{
	return it->state != QUICK_START_SLOW_START && (!it->has_end || !is_before(it->end, position));
}

/* Whether the byte at `position`, the first that is missing, is one of the window. */
static __always_inline bool quick_start_has_in_launch(const struct quick_start *it, u32 position)
{
	return it->state != QUICK_START_SLOW_START && (!it->has_end || is_before(position, it->end));
}

/* Validation: the first acknowledgement ends the launch, and the last one of its window the trial. */
static __always_inline struct step quick_start_on_ack(struct quick_start *it, const struct quick_start_config *config,
						      const struct ack *ack, u64 cwnd)
{
	if (it->state == QUICK_START_SENDING) {
		it->state = QUICK_START_VALIDATING;
		it->end = it->last;
		it->has_end = true;
		cwnd = larger(it->last - it->first, it->initial_window);
	}
	if (it->state == QUICK_START_VALIDATING && !is_before(ack->position, it->end)) {
		it->state = QUICK_START_SLOW_START;
		if (config->verified_ends)
			return exits(cwnd, EXIT_VALIDATED);
	}
	return goes_on(slow_start_growth(cwnd, ack));
}

/* A Quick-Start failure (section 4.6), unless what was lost is none of the window. */
static __always_inline struct step quick_start_on_congestion(struct quick_start *it, const struct loss *loss,
							     u64 reduced)
{
	bool failed = loss->bytes ? loss->in_launch : quick_start_is_window(it, loss->position);

	if (!failed)
		return slow_start_on_congestion(loss, reduced);
	it->state = QUICK_START_FAILED;
	it->reduced = reduced;
	return goes_on(it->initial_window);
}

/* Continuation: as if nothing had been approved. */
static __always_inline struct step quick_start_on_recovered(struct quick_start *it, u64 cwnd)
{
	it->state = QUICK_START_SLOW_START;
	if (it->reduced_after_failure)
		return (struct step){ .cwnd = cwnd, .ssthresh = it->reduced, .reason = EXIT_LOSS };
	return goes_on(cwnd);
}

static __always_inline u64 quick_start_pacing_rate(const struct quick_start *it)
{
	return it->state == QUICK_START_SENDING ? it->rate : 0;
}

#define quick_start_next_wakeup(it) ((void)(it), UNLIMITED)
#define quick_start_send_buffer(config, path) \
	larger(quick_start_initial_window(config, path), quick_start_window(config, path))
#define quick_start_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define quick_start_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define quick_start_launched(it) ((void)(it), 0)
#define quick_start_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
/* The losses were none: slow start goes on. */
#define quick_start_on_undo(it) ((it)->state = QUICK_START_SLOW_START)
#define quick_start_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define quick_start_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
