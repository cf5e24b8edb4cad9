/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HyStart++: slow start that turns conservative when the RTT of a round grows, and returns to normal after a false
 * alarm.
 *
 * Reference: RFC 9406, section 4. Slow start runs until the smallest RTT of a round exceeds that of the round before
 * by an eighth, bounded to 4..16 ms. Conservative slow start (CSS) then grows a quarter as fast for five rounds. If
 * the RTT falls below a baseline in that time, slow start resumes; otherwise congestion avoidance begins with
 * ssthresh = cwnd.
 *
 * Differences from the reference: those of flowstart-core's hystart_plus_plus.rs. After a timeout the kernel's own
 * slow start follows.
 */
#ifndef FLOWSTART_HYSTART_PLUS_PLUS_H
#define FLOWSTART_HYSTART_PLUS_PLUS_H

#include "slow_start.h"

/* Named as in RFC 9406, section 4.3; times in microseconds. */
struct hystart_plus_plus_config {
	u64 min_rtt_thresh;
	u64 max_rtt_thresh;
	u32 min_rtt_divisor;
	u32 n_rtt_sample;
	u32 css_growth_divisor;
	u32 css_rounds;
	/* Initial window in segments; 0: the host's. */
	u32 iw;
	/* Most segments that one acknowledgement may add; 0: no limit. */
	u32 l;
	/* Whether the baseline of CSS is the threshold that it began with, and not the smallest RTT of that round. */
	u32 baseline_is_threshold;
	u32 unused;
};

/* Named as in RFC 9406, section 4.2; an infinite RTT is UNLIMITED. */
struct hystart_plus_plus {
	u64 last_round_min_rtt;
	u64 current_round_min_rtt;
	u64 css_baseline_min_rtt;
	u32 rtt_sample_count;
	/* Rounds that ended since CSS began. */
	u32 css_round_count;
	/* The round ends when all before this has arrived. */
	u32 window_end;
	bool has_window_end;
	bool in_css;
};

static __always_inline u64 hystart_plus_plus_window(const struct hystart_plus_plus_config *config,
						    const struct path *path)
{
	return config->iw ? config->iw * path->segment : path->initial_window;
}

/* Sensing: nothing is known. */
static __always_inline struct launch hystart_plus_plus_launch(struct hystart_plus_plus *it,
							      const struct hystart_plus_plus_config *config,
							      const struct path *path, u32 position)
{
	(void)position;
	*it = (struct hystart_plus_plus){ .last_round_min_rtt = UNLIMITED, .current_round_min_rtt = UNLIMITED };
	return (struct launch){
		.cwnd = hystart_plus_plus_window(config, path),
		.ssthresh = UNLIMITED,
		.launched = true,
	};
}

/* What an acknowledgement adds to the window: min(N, L * SMSS), in CSS divided by CSS_GROWTH_DIVISOR. */
static __always_inline u64 hystart_plus_plus_growth(const struct hystart_plus_plus *it,
						    const struct hystart_plus_plus_config *config,
						    const struct ack *ack)
{
	u64 limited = config->l ? smaller(ack->bytes, config->l * ack->segment) : ack->bytes;

	return it->in_css && config->css_growth_divisor ? limited / config->css_growth_divisor : limited;
}

/* The RTT of a round from which on slow start becomes CSS. */
static __always_inline u64 hystart_plus_plus_threshold(const struct hystart_plus_plus *it,
						       const struct hystart_plus_plus_config *config)
{
	/* RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH)) */
	u64 part = config->min_rtt_divisor ? it->last_round_min_rtt / config->min_rtt_divisor : UNLIMITED;

	return it->last_round_min_rtt + larger(smaller(part, config->max_rtt_thresh), config->min_rtt_thresh);
}

/* Takes an RTT sample and switches from slow start to CSS or back. */
static __always_inline void hystart_plus_plus_sample(struct hystart_plus_plus *it,
						     const struct hystart_plus_plus_config *config, u64 curr_rtt)
{
	it->current_round_min_rtt = smaller(it->current_round_min_rtt, curr_rtt);
	it->rtt_sample_count++;
	if (it->rtt_sample_count < config->n_rtt_sample)
		return;
	if (it->in_css) {
		if (it->current_round_min_rtt < it->css_baseline_min_rtt)
			it->in_css = false;
	} else if (it->last_round_min_rtt != UNLIMITED) {
		u64 threshold = hystart_plus_plus_threshold(it, config);

		if (it->current_round_min_rtt >= threshold) {
			it->in_css = true;
			it->css_round_count = 0;
			it->css_baseline_min_rtt =
				config->baseline_is_threshold ? threshold : it->current_round_min_rtt;
		}
	}
}

/* Ends the round when `position` completes it; returns whether CSS is over. */
static __always_inline bool hystart_plus_plus_end_round(struct hystart_plus_plus *it,
							const struct hystart_plus_plus_config *config,
							const struct ack *ack)
{
	if (is_before(ack->position, it->window_end))
		return false;
	it->window_end = ack->highest_sent;
	it->last_round_min_rtt = it->current_round_min_rtt;
	it->current_round_min_rtt = UNLIMITED;
	it->rtt_sample_count = 0;
	if (!it->in_css)
		return false;
	it->css_round_count++;
	return it->css_round_count >= config->css_rounds;
}

/* Probing: slow start, then CSS. Validation: the RTT of each round against that of the round before. */
static __always_inline struct step hystart_plus_plus_on_ack(struct hystart_plus_plus *it,
							    const struct hystart_plus_plus_config *config,
							    const struct ack *ack, u64 cwnd)
{
	if (!it->has_window_end) {
		it->window_end = ack->highest_sent;
		it->has_window_end = true;
	}
	if (ack->in_use)
		cwnd += hystart_plus_plus_growth(it, config, ack);
	if (ack->rtt)
		hystart_plus_plus_sample(it, config, ack->rtt);
	/* Continuation: the window that CSS led to. */
	return hystart_plus_plus_end_round(it, config, ack) ? exits(cwnd, EXIT_DELAY) : goes_on(cwnd);
}

#define hystart_plus_plus_send_buffer(config, path) hystart_plus_plus_window(config, path)
#define hystart_plus_plus_pacing_rate(it) ((void)(it), 0)
#define hystart_plus_plus_next_wakeup(it) ((void)(it), UNLIMITED)
#define hystart_plus_plus_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define hystart_plus_plus_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define hystart_plus_plus_launched(it) ((void)(it), 0)
#define hystart_plus_plus_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define hystart_plus_plus_on_sent(it, position, in_flight) ((void)(it), (void)(position), (void)(in_flight))
#define hystart_plus_plus_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
#define hystart_plus_plus_on_congestion(it, loss, reduced) \
	((void)(it), slow_start_on_congestion(loss, reduced))
#define hystart_plus_plus_on_undo(it) ((void)(it))
#define hystart_plus_plus_on_recovered(it, cwnd) ((void)(it), exits(cwnd, EXIT_LOSS))
#define hystart_plus_plus_on_time(it, now, cwnd) ((void)(it), (void)(now), (cwnd))
#define hystart_plus_plus_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
