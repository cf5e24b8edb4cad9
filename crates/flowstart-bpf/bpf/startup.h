/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a startup scheme gets and decides. A scheme is the functions NAME_launch, NAME_on_sent, NAME_next_wakeup,
 * NAME_on_time, NAME_on_ack, NAME_on_ack_in_recovery, NAME_on_retransmission, NAME_on_congestion, NAME_on_undo and
 * NAME_on_recovered over a struct NAME, with its parameters in a struct NAME_config, as the trait `Startup` of
 * flowstart-core has them. Bytes are bytes, times microseconds, rates bytes per second; 0 is unknown.
 */
#ifndef FLOWSTART_STARTUP_H
#define FLOWSTART_STARTUP_H

#include "numbers.h"

/* Sensing: what is known before the first data packet. */
struct path {
	u64 handshake_rtt;
	/* The smallest of this handshake and of earlier connections. */
	u64 min_rtt;
	u64 bytes_waiting;
	u64 receive_window;
	/* A hint for the destination: bandwidth, and the RTT that an earlier connection saw. */
	u64 hint_rate;
	u64 saved_rtt;
	u64 saved_age;
	/* What all routers of the path have approved. */
	u64 approved_rate;
	u64 segment;
	u64 initial_window;
};

/* What Sensing derives. */
struct launch {
	u64 cwnd;
	/* UNLIMITED: startup goes on. Otherwise it ends with the launch, and congestion avoidance takes over. */
	u64 ssthresh;
	/* The scheme's own rate; 0: the host's rule. */
	u64 pacing_rate;
	/* Whether the window is paced at all. */
	bool paced;
	/* Whether there is a launch: the scheme had what it needs. Otherwise nothing but the host's slow start. */
	bool launched;
};

/* An acknowledgement that delivered data outside of recovery. */
struct ack {
	/* Nanoseconds of a clock. */
	u64 now;
	u64 bytes;
	/* 0: no sample. */
	u64 rtt;
	u64 latest_rtt;
	/* Bytes in flight after it. */
	u64 in_flight;
	/* All bytes before this have arrived. */
	u32 position;
	/* All bytes before this have been sent. */
	u32 highest_sent;
	u64 segment;
	/* Whether the sender was using its window. */
	bool in_use;
};

/* Packets were lost, or marked. */
struct loss {
	/* 0: only marked. */
	u64 bytes;
	/* Highest position of them. */
	u32 position;
	/* Whether some of them are of the launched window. */
	bool in_launch;
};

/* Why startup ended, or that it goes on. */
enum reason {
	GOES_ON = 0,
	EXIT_LAUNCH,
	EXIT_LOSS,
	EXIT_ECN,
	EXIT_DELAY,
	EXIT_CHOKEPOINT,
	EXIT_VALIDATED,
	EXIT_TIMEOUT,
	EXIT_IDLE,
	EXIT_SSTHRESH,
	EXIT_PATH_CHANGED,
	EXIT_ACK_TRAIN,
	REASONS,
};

/* What a scheme decides: the window, and with a reason to end the ssthresh for congestion avoidance. */
struct step {
	u64 cwnd;
	u64 ssthresh;
	enum reason reason;
};

static __always_inline struct step goes_on(u64 cwnd)
{
	return (struct step){ .cwnd = cwnd, .ssthresh = UNLIMITED, .reason = GOES_ON };
}

static __always_inline struct step exits(u64 cwnd, enum reason reason)
{
	return (struct step){ .cwnd = cwnd, .ssthresh = cwnd, .reason = reason };
}

/* The launch of a scheme that lacks its input. */
static __always_inline struct launch no_launch(const struct path *path)
{
	return (struct launch){ .cwnd = path->initial_window, .ssthresh = UNLIMITED };
}

/* Slow start counts bytes. */
static __always_inline u64 slow_start_growth(u64 cwnd, const struct ack *ack)
{
	return ack->in_use ? cwnd + ack->bytes : cwnd;
}

#endif
