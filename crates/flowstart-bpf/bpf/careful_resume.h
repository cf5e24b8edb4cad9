/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Careful Resume: jumps to half of the window that an earlier connection reached, and retreats if the path does not
 * confirm it.
 *
 * Reference: draft-ietf-tsvwg-careful-resume-24, section 3. When the initial window is acknowledged without congestion
 * and the RTT fits the saved one, the window jumps to min(max_jump, saved_cwnd / 2), paced over the current RTT. Only
 * its acknowledged part counts as capacity (PipeSize). As soon as the path has had time to answer, the window is cut
 * to the bytes really in flight. Loss or a CE mark before the last unvalidated packet is acknowledged leads to Safe
 * Retreat: half of PipeSize, and then slow start towards PipeSize * Beta.
 *
 * Differences from the reference: those of flowstart-core's careful_resume.rs, but nobody takes saved parameters away:
 * every connection to a hint's destinations uses it, and it stays after a Safe Retreat. Of what is delivered in Safe
 * Retreat the host leaves out what it has sent again, so PipeSize does not count it. saved_cwnd is the hint's rate
 * times its RTT. The end of the Unvalidated phase is noticed with the next call of the kernel, for there is no timer.
 * In Safe Retreat the kernel's proportional rate reduction leads to the window.
 */
#ifndef FLOWSTART_CAREFUL_RESUME_H
#define FLOWSTART_CAREFUL_RESUME_H

#include "slow_start.h"

/* A smallest RTT of at most the saved one over this is a path change (section 3.2). */
#define CAREFUL_RESUME_RTT_SHRINKS 2
/* A smallest RTT of more than this many times the saved one is a path change (section 4.2.1). */
#define CAREFUL_RESUME_RTT_GROWS 10
/* Smallest window in segments under congestion (RFC 9002, section 7.2). */
#define CAREFUL_RESUME_MIN_WINDOW 2

struct careful_resume_config {
	/* UNLIMITED: no limit. */
	u64 max_jump;
	/* Microseconds. */
	u64 lifetime;
	struct factor factor;
	struct factor jump;
	/* Smallest saved window that is used, in initial windows. */
	struct factor min_saved;
	struct factor beta;
	/* Initial window in segments; 0: the host's. */
	u32 iw;
	u32 pacing;
};

/* The phases of the draft (its figure 1). */
enum careful_resume_phase {
	CAREFUL_RESUME_NORMAL = 0,
	CAREFUL_RESUME_RECONNAISSANCE,
	CAREFUL_RESUME_UNVALIDATED,
	CAREFUL_RESUME_VALIDATING,
	CAREFUL_RESUME_SAFE_RETREAT,
};

struct careful_resume {
	u64 saved_rtt;
	u64 jump_cwnd;
	u64 min_rtt;
	/* Initial data that has not left yet. */
	u64 initial_left;
	u64 initial_window;
	u64 segment;
	u64 flight_size;
	/* The bytes that were in flight at the jump and are not acknowledged or lost yet. */
	u64 before_jump;
	/* PipeSize. */
	u64 pipe_size;
	/* When the Unvalidated phase ends at the latest, in nanoseconds. */
	u64 unvalidated_until;
	/* The window after the Unvalidated phase, until it has been taken; 0: none. */
	u64 reset_cwnd;
	/* Set while unvalidated packets are sent. */
	u64 rate;
	struct factor beta;
	/* The last packet of the initial data that has left. */
	u32 initial_end;
	u32 highest_sent;
	u32 highest_at_jump;
	u32 first_unvalidated;
	u32 last_unvalidated;
	bool has_first_unvalidated;
	u8 phase;
	/* Why Safe Retreat began. */
	u8 congestion;
};

/* The jump that an earlier connection allows, if it is young and large enough; 0: none. */
static __always_inline u64 careful_resume_jump(const struct careful_resume_config *config, const struct path *path,
					       u64 initial_window)
{
	u64 saved = smaller(amount_in(path->hint_rate, path->saved_rtt), LARGEST_WINDOW);

	saved = smaller(scaled(saved, config->factor), LARGEST_WINDOW);
	if (!saved || path->saved_age >= config->lifetime || saved < scaled(initial_window, config->min_saved))
		return 0;
	/* jump_cwnd = Min(max_jump, saved_cwnd / 2) */
	return smaller(scaled(saved, config->jump), config->max_jump);
}

static __always_inline u64 careful_resume_window(const struct careful_resume_config *config, const struct path *path)
{
	return config->iw ? config->iw * path->segment : path->initial_window;
}

/* Sensing: the initial window, and the state of an earlier connection. */
static __always_inline struct launch careful_resume_launch(struct careful_resume *it,
							   const struct careful_resume_config *config,
							   const struct path *path, u32 position)
{
	u64 cwnd = careful_resume_window(config, path);
	u64 jump = careful_resume_jump(config, path, cwnd);

	if (!jump)
		return (struct launch){ .cwnd = cwnd, .ssthresh = UNLIMITED };
	*it = (struct careful_resume){
		.saved_rtt = path->saved_rtt,
		.jump_cwnd = jump,
		.min_rtt = UNLIMITED,
		.initial_left = cwnd,
		.initial_window = cwnd,
		.segment = path->segment,
		.unvalidated_until = UNLIMITED,
		.beta = config->beta,
		.initial_end = position,
		.highest_sent = position,
		.phase = CAREFUL_RESUME_RECONNAISSANCE,
	};
	return (struct launch){ .cwnd = cwnd, .ssthresh = UNLIMITED, .launched = true };
}

/* Whether the smallest RTT so far can be that of the saved path. */
static __always_inline bool careful_resume_rtt_fits(const struct careful_resume *it)
{
	return it->min_rtt != UNLIMITED && it->min_rtt * CAREFUL_RESUME_RTT_SHRINKS > it->saved_rtt &&
	       it->min_rtt <= it->saved_rtt * CAREFUL_RESUME_RTT_GROWS;
}

/* Unvalidated: the path has had time to answer, or the window is full. The window becomes what is in flight. */
static __always_inline void careful_resume_end_unvalidated(struct careful_resume *it)
{
	it->rate = 0;
	it->unvalidated_until = UNLIMITED;
	if (it->flight_size < it->initial_window || it->flight_size <= it->pipe_size) {
		it->reset_cwnd = larger(it->pipe_size, it->initial_window);
		it->phase = CAREFUL_RESUME_NORMAL;
	} else {
		it->reset_cwnd = it->flight_size;
		it->phase = CAREFUL_RESUME_VALIDATING;
	}
}

static __always_inline void careful_resume_on_sent(struct careful_resume *it, u32 position, u64 in_flight)
{
	u32 before = it->highest_sent;
	u64 sent = position - before;

	it->flight_size = in_flight;
	if (!is_before(before, position))
		return;
	it->highest_sent = position;
	if (it->phase == CAREFUL_RESUME_RECONNAISSANCE && it->initial_left) {
		it->initial_left -= smaller(it->initial_left, sent);
		it->initial_end = position;
	} else if (it->phase == CAREFUL_RESUME_UNVALIDATED) {
		if (!it->has_first_unvalidated) {
			it->first_unvalidated = before + (u32)smaller(sent, it->segment);
			it->has_first_unvalidated = true;
		}
		it->last_unvalidated = position;
		if (in_flight + it->segment > it->jump_cwnd)
			careful_resume_end_unvalidated(it);
	}
}

/* Reconnaissance: leaves the phase when the initial data is acknowledged; returns whether the window jumps. */
static __always_inline bool careful_resume_confirms_path(struct careful_resume *it,
							 const struct careful_resume_config *config,
							 const struct ack *ack, u64 cwnd)
{
	if (is_before(ack->position, it->initial_end) || !ack->in_use)
		return false;
	it->phase = CAREFUL_RESUME_NORMAL;
	if (!careful_resume_rtt_fits(it) || it->jump_cwnd <= cwnd)
		return false;
	it->phase = CAREFUL_RESUME_UNVALIDATED;
	it->pipe_size = it->before_jump = ack->in_flight;
	it->highest_at_jump = it->last_unvalidated = it->highest_sent;
	it->unvalidated_until = ack->now + ack->latest_rtt * 1000;
	/* ITT = current RTT * MPS / jump_cwnd */
	it->rate = config->pacing ? rate_over(it->jump_cwnd, ack->latest_rtt) : 0;
	return true;
}

/* PipeSize grows by what was acknowledged of the packets sent since the jump. */
static __always_inline void careful_resume_count(struct careful_resume *it, u64 bytes)
{
	u64 before_jump = smaller(bytes, it->before_jump);

	it->before_jump -= before_jump;
	it->pipe_size += bytes - before_jump;
}

/* Starts Safe Retreat; returns its window. */
static __always_inline u64 careful_resume_retreat(struct careful_resume *it, enum reason congestion)
{
	it->phase = CAREFUL_RESUME_SAFE_RETREAT;
	it->rate = 0;
	it->unvalidated_until = UNLIMITED;
	it->reset_cwnd = 0;
	it->congestion = congestion;
	return larger(it->pipe_size / 2, CAREFUL_RESUME_MIN_WINDOW * it->segment);
}

/* Continuation: ssthresh = PipeSize * Beta; slow start leads there, then congestion avoidance. */
static __always_inline struct step careful_resume_end_retreat(struct careful_resume *it, u64 cwnd)
{
	u64 ssthresh = larger(scaled(it->pipe_size, it->beta), CAREFUL_RESUME_MIN_WINDOW * it->segment);

	it->phase = CAREFUL_RESUME_NORMAL;
	return (struct step){ .cwnd = smaller(cwnd, ssthresh), .ssthresh = ssthresh, .reason = it->congestion };
}

static __always_inline u64 careful_resume_take_reset(struct careful_resume *it, u64 cwnd)
{
	u64 reset = it->reset_cwnd;

	it->reset_cwnd = 0;
	return reset ? reset : cwnd;
}

/* The Unvalidated phase lasts an RTT at most; returns the window. */
static __always_inline u64 careful_resume_on_time(struct careful_resume *it, u64 now, u64 cwnd)
{
	if (it->phase == CAREFUL_RESUME_UNVALIDATED && now >= it->unvalidated_until)
		careful_resume_end_unvalidated(it);
	return careful_resume_take_reset(it, cwnd);
}

static __always_inline struct step careful_resume_on_ack(struct careful_resume *it,
							 const struct careful_resume_config *config,
							 const struct ack *ack, u64 cwnd)
{
	if (ack->rtt)
		it->min_rtt = smaller(it->min_rtt, ack->rtt);
	it->flight_size = ack->in_flight;
	cwnd = careful_resume_take_reset(it, cwnd);
	switch (it->phase) {
	case CAREFUL_RESUME_RECONNAISSANCE:
		/* Probing: the jump. */
		if (careful_resume_confirms_path(it, config, ack, cwnd))
			return goes_on(it->jump_cwnd);
		break;
	case CAREFUL_RESUME_UNVALIDATED:
		careful_resume_count(it, ack->bytes);
		if (!careful_resume_rtt_fits(it))
			return goes_on(careful_resume_retreat(it, EXIT_PATH_CHANGED));
		if (it->has_first_unvalidated && !is_before(ack->position, it->first_unvalidated))
			careful_resume_end_unvalidated(it);
		return goes_on(careful_resume_take_reset(it, cwnd));
	case CAREFUL_RESUME_VALIDATING:
		/* Validation: slow start meanwhile. */
		careful_resume_count(it, ack->bytes);
		if (!is_before(ack->position, it->last_unvalidated))
			it->phase = CAREFUL_RESUME_NORMAL;
		break;
	case CAREFUL_RESUME_SAFE_RETREAT:
		careful_resume_count(it, ack->bytes);
		if (is_before(ack->position, it->last_unvalidated))
			return goes_on(cwnd);
		return careful_resume_end_retreat(it, cwnd);
	default:
		break;
	}
	return goes_on(slow_start_growth(cwnd, ack));
}

/* Data was delivered while the kernel recovers. */
static __always_inline void careful_resume_on_ack_in_recovery(struct careful_resume *it, u64 bytes)
{
	if (it->phase == CAREFUL_RESUME_SAFE_RETREAT)
		careful_resume_count(it, bytes);
}

/* Validation failed, unless nothing is unvalidated. */
static __always_inline struct step careful_resume_on_congestion(struct careful_resume *it, const struct loss *loss,
								u64 reduced)
{
	if (loss->bytes && !is_before(it->highest_at_jump, loss->position))
		it->before_jump -= smaller(it->before_jump, loss->bytes);
	if (it->phase == CAREFUL_RESUME_UNVALIDATED || it->phase == CAREFUL_RESUME_VALIDATING)
		return goes_on(careful_resume_retreat(it, loss->bytes ? EXIT_LOSS : EXIT_ECN));
	it->phase = CAREFUL_RESUME_NORMAL;
	return slow_start_on_congestion(loss, reduced);
}

#define careful_resume_on_recovered(it, cwnd) careful_resume_end_retreat(it, cwnd)
#define careful_resume_send_buffer(config, path) \
	larger(careful_resume_window(config, path), \
	       careful_resume_jump(config, path, careful_resume_window(config, path)))
#define careful_resume_pacing_rate(it) ((it)->rate)
#define careful_resume_next_wakeup(it) ((void)(it), UNLIMITED)
#define careful_resume_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define careful_resume_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define careful_resume_launched(it) ((void)(it), 0)
#define careful_resume_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define careful_resume_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
/* The losses were none: slow start goes on. */
#define careful_resume_on_undo(it) ((it)->phase = CAREFUL_RESUME_NORMAL)

#endif
