/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A window that a scheme launches at once, and the rules for its further course.
 *
 * Reference: Liu, Allman, Jin, Wang, "Congestion Control Without a Startup Phase", PFLDnet 2007. D is what was
 * launched, R its retransmitted part, counted each time. Without loss the flow continues in slow start from its
 * current window. With loss it recovers as usual, and the window afterwards is (D - R) / 2, at least one segment.
 *
 * Differences from the reference: those of flowstart-core's launched_window.rs, whose `retreat=half-delivered` this
 * is. A host may let the window grow until the first acknowledgement, for a kernel learns what waits while it is
 * written.
 */
#ifndef FLOWSTART_LAUNCHED_WINDOW_H
#define FLOWSTART_LAUNCHED_WINDOW_H

#include "startup.h"

enum launched_window_state {
	/* All of it arrived, or nothing was launched: slow start. */
	WINDOW_SLOW_START = 0,
	/* The window was not yet acknowledged. */
	WINDOW_UNVALIDATED,
	/* Some of it was lost, and recovery goes on. */
	WINDOW_RECOVERING,
};

struct launched_window {
	/* Bytes that are launched. */
	u64 window;
	/* Rate at which they leave; 0: not paced. */
	u64 rate;
	/* Bytes of them that had to be sent again, each time: R. */
	u64 retransmitted;
	u64 segment;
	/* Position before the first of them. D is what lies between it and `end`, or `last`. */
	u32 first;
	/* Position up to which all was sent. */
	u32 last;
	/* Position of the last launched byte that leaves, once this is known. */
	u32 end;
	bool has_end;
	u8 state;
};

/* D, as far as it has left. */
static __always_inline u64 launched_window_sent(const struct launched_window *it)
{
	return (it->has_end ? it->end : it->last) - it->first;
}

/* Sensing and Probing: `window` bytes behind `position` leave over `span`. */
static __always_inline struct launch launched_window_launch(struct launched_window *it, const struct path *path,
							    u32 position, u64 window, u64 span, bool pacing)
{
	it->window = larger(window, path->segment);
	it->rate = pacing ? rate_over(it->window, span) : 0;
	it->retransmitted = 0;
	it->segment = path->segment;
	it->first = it->last = position;
	it->has_end = false;
	it->state = WINDOW_UNVALIDATED;
	return (struct launch){
		.cwnd = it->window,
		.ssthresh = UNLIMITED,
		.pacing_rate = it->rate,
		.paced = pacing,
		.launched = true,
	};
}

/* All before `position` has been sent. */
static __always_inline void launched_window_on_sent(struct launched_window *it, u32 position)
{
	it->last = position;
	if (it->state != WINDOW_UNVALIDATED || it->has_end)
		return;
	if (launched_window_sent(it) + it->segment > it->window) {
		u64 sent = smaller(launched_window_sent(it), larger(it->window, it->segment));

		it->end = it->first + (u32)sent;
		it->has_end = true;
	}
}

/* The launch's rate, until the window has left; 0: none. */
static __always_inline u64 launched_window_pacing_rate(const struct launched_window *it)
{
	return it->state == WINDOW_UNVALIDATED && !it->has_end ? it->rate : 0;
}

/* Validation: losses of the window. Slow start goes on from it meanwhile. */
static __always_inline struct step launched_window_on_ack(struct launched_window *it, const struct ack *ack, u64 cwnd)
{
	if (it->has_end && !is_before(ack->position, it->end))
		it->state = WINDOW_SLOW_START;
	return goes_on(slow_start_growth(cwnd, ack));
}

/* `position` is that of the first byte. Packets sent after the launch are no evidence about it. */
static __always_inline void launched_window_on_retransmission(struct launched_window *it, u32 position, u64 bytes)
{
	if (it->state != WINDOW_SLOW_START && (!it->has_end || is_before(position, it->end)))
		it->retransmitted += bytes;
}

/* A congestion event. `reduced` is what congestion avoidance would make of the window. */
static __always_inline struct step launched_window_on_congestion(struct launched_window *it, const struct loss *loss,
								 u64 reduced)
{
	if (it->state == WINDOW_SLOW_START || (loss->bytes && !loss->in_launch))
		return exits(reduced, loss->bytes ? EXIT_LOSS : EXIT_ECN);
	it->state = WINDOW_RECOVERING;
	/* Data that has not left yet is not part of D. */
	if (!it->has_end) {
		it->end = it->last;
		it->has_end = true;
	}
	return goes_on(reduced);
}

/* The losses were none. */
static __always_inline void launched_window_on_undo(struct launched_window *it)
{
	it->state = WINDOW_UNVALIDATED;
	it->retransmitted = 0;
}

/* Whether the byte at `position`, the first that is missing, is one of the launched. */
static __always_inline bool launched_window_has(const struct launched_window *it, u32 position)
{
	return is_before(position, it->has_end ? it->end : it->last);
}

/* Continuation: cwnd = max(1, (D - R) / 2). */
static __always_inline struct step launched_window_on_recovered(const struct launched_window *it)
{
	u64 sent = launched_window_sent(it);
	u64 delivered = sent - smaller(sent, it->retransmitted);

	return exits(larger(delivered / 2, it->segment), EXIT_LOSS);
}

#endif
