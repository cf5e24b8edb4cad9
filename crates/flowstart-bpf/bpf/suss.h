/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * SUSS: slow start that quadruples in a round when HyStart would still let the next round double.
 *
 * Reference: Arghavani, Zhang, Eyers, Arghavani, "SUSS: Improving TCP Performance by Speeding Up Slow-Start", SIGCOMM
 * 2024, as in the authors' Linux module (github.com/SUSSdeveloper/SUSS, commit dc2a493, Linux 6.8, tcp_cubic.c). Each
 * round sends a blue part, clocked by the acknowledgements of the last round's blue part, which doubles every round.
 * When that train of acknowledgements has ended, its length and the round's smallest RTT predict whether exponential
 * growth will last one more round. If so, a red part is paced over the rest of the RTT, and the round carries four
 * times as much as the last one. HyStart ends startup, with its train test scaled to the blue part.
 *
 * Differences from the reference: those of flowstart-core's suss.rs. What is sent is seen each time the kernel is about
 * to send or gets an acknowledgement, not packet by packet. Blue packets that leave with the last acknowledgement of
 * the train are spread over the guard interval, because only the kernel's pacing can wake a scheme when it ends.
 *
 * Status: experimental, as in flowstart-core.
 */
#ifndef FLOWSTART_SUSS_H
#define FLOWSTART_SUSS_H

#include "slow_start.h"

/* Growth of an accelerated round. */
#define SUSS_GROWTH 4
/* Smallest window in segments while red acknowledgements release nothing. */
#define SUSS_MIN_WINDOW 2
/* Bits of a fraction. */
#define SUSS_FRACTION 20
/* Longest train and RTT, in nanoseconds. */
#define SUSS_LONGEST (LONGEST_TIME * 1000)

/* Times in microseconds. */
struct suss_config {
	u64 smallest_rtt;
	/* HyStart's thresholds. */
	u64 min_threshold;
	u64 max_threshold;
	u64 ack_gap;
	u32 samples;
	u32 low_window;
	/* Initial window in segments; 0: the host's. */
	u32 iw;
	/* Rounds that may grow 4x. */
	u32 rounds;
	/* Whether red parts are paced. */
	u32 pacing;
	u32 unused;
};

/* What a round sends now. */
enum suss_part {
	/* Acknowledgements clock packets out. */
	SUSS_CLOCKED = 0,
	/* The blue train has ended; the red part waits. */
	SUSS_GUARD,
	/* The red part is paced. */
	SUSS_RED,
};

/* What one round sent. */
struct suss_round {
	u64 blue;
	/* Blue and red. */
	u64 total;
	/* Ends of its first packet and of its last blue one. */
	u32 first;
	u32 blue_end;
	bool has_first;
};

/* Named as in flowstart-core's suss.rs; times in nanoseconds. */
struct suss {
	struct suss_round sent;
	struct suss_round acked;
	u64 segment;
	u64 blue_left;
	u64 blue_acked;
	u64 round_start;
	u64 last_ack;
	u64 last_train;
	/* minRTT and moRTT; UNLIMITED: no sample yet. */
	u64 min_rtt;
	u64 mo_rtt;
	/* Startup ends above this window; UNLIMITED: the train test has not ended the acceleration. */
	u64 cap;
	/* When the guard interval ends, and the window and the rate in bytes per second from then on. */
	u64 until;
	u64 red_cwnd;
	u64 red_rate;
	/* All before this was sent. */
	u32 last;
	/* The current round; the initial window is round 1. */
	u32 round;
	/* The round in which minRTT was last updated. */
	u32 min_round;
	u32 samples;
	/* Rounds with a red part so far. */
	u32 jumps;
	u8 part;
	bool train_ended;
	bool accelerating;
};

static __always_inline u64 suss_window(const struct suss_config *config, const struct path *path)
{
	return config->iw ? config->iw * path->segment : path->initial_window;
}

/* Sensing: nothing is known; the initial window is the first blue part. */
static __always_inline struct launch suss_launch(struct suss *it, const struct suss_config *config,
						 const struct path *path, u32 position)
{
	u64 cwnd = suss_window(config, path);

	*it = (struct suss){
		.segment = larger(path->segment, 1),
		.blue_left = cwnd,
		.min_rtt = UNLIMITED,
		.mo_rtt = UNLIMITED,
		.cap = UNLIMITED,
		.last = position,
		.round = 1,
		.min_round = 1,
		.train_ended = true,
		.accelerating = true,
	};
	return (struct launch){ .cwnd = cwnd, .ssthresh = UNLIMITED, .launched = true };
}

/* All before `position` has been sent. */
static __always_inline void suss_on_sent(struct suss *it, u32 position, u64 in_flight)
{
	u64 bytes, blue, segment = larger(it->segment, 1);

	(void)in_flight;
	if (!is_before(it->last, position))
		return;
	bytes = position - it->last;
	if (!it->sent.has_first) {
		it->sent.first = it->last + (u32)smaller(bytes, segment);
		it->sent.has_first = true;
	}
	it->sent.total += bytes;
	if (it->blue_left) {
		/* Whole packets. */
		blue = smaller((it->blue_left + segment - 1) / segment * segment, bytes);
		it->blue_left -= smaller(it->blue_left, blue);
		it->sent.blue += blue;
		it->sent.blue_end = it->last + (u32)blue;
	}
	it->last = position;
}

static __always_inline void suss_begin_round(struct suss *it, u64 now)
{
	it->round++;
	it->round_start = now;
	it->acked = it->sent;
	it->sent = (struct suss_round){ 0 };
	/* The blue part doubles. */
	it->blue_left = it->acked.blue * 2;
	it->blue_acked = 0;
	it->train_ended = false;
	it->mo_rtt = UNLIMITED;
	it->samples = 0;
	it->last_ack = now;
}

static __always_inline void suss_sample(struct suss *it, u64 rtt)
{
	if (rtt < it->min_rtt) {
		it->min_rtt = rtt;
		it->min_round = it->round;
	}
	it->mo_rtt = smaller(it->mo_rtt, rtt);
	it->samples++;
}

/* time * part / whole, rounded, for a part of at most some times the whole. */
static __always_inline u64 suss_share(u64 time, u64 part, u64 whole)
{
	u64 share = (smaller(part, LARGEST_WINDOW) << SUSS_FRACTION) / larger(smaller(whole, LARGEST_WINDOW), 1);

	return (time * share + (1 << (SUSS_FRACTION - 1))) >> SUSS_FRACTION;
}

/*
 * Whether exponential growth is predicted to last one more round, so this round may grow 4x. `train` is how long the
 * acknowledgements of the whole last round take.
 */
static __always_inline bool suss_growth_will_last(const struct suss *it, const struct suss_config *config, u64 train)
{
	u64 k, shift, part, last;

	if (it->min_rtt == UNLIMITED || it->round >= config->rounds + 2)
		return false;
	if (it->round == 2)
		return it->min_rtt > config->smallest_rtt * 1000 && train * 4 < it->min_rtt;
	/* Round 2 was not in use, so nothing is known of how trains grow. */
	if (!it->last_train)
		return false;
	/* The train: mu = train / (2 last_train), and mu * train * 2 <= minRTT. In units of 4 ns long ones fit 64 bits. */
	shift = train >> 30 || it->last_train >> 30 ? 2 : 0;
	part = smaller(train, SUSS_LONGEST) >> shift;
	last = smaller(it->last_train, SUSS_LONGEST) >> shift;
	if (part * part > (smaller(it->min_rtt, SUSS_LONGEST) >> shift) * last)
		return false;
	/* The delay, which rose in k rounds: (k + 1) moRTT <= (k + 1) minRTT + k minRTT / 8 */
	k = it->round - it->min_round;
	return it->mo_rtt != UNLIMITED && it->mo_rtt * (k + 1) <= it->min_rtt * (k + 1) + it->min_rtt * k / 8;
}

/* The blue train has ended: plans the red part, if there is one. */
static __always_inline void suss_plan_red_part(struct suss *it, const struct suss_config *config, u64 now)
{
	u64 blue_train = smaller(now - it->round_start, SUSS_LONGEST);
	/* The blue train stands for the whole round. */
	u64 train = suss_share(blue_train, it->acked.total, it->acked.blue);
	u64 cwnd, blue_time;

	it->accelerating = suss_growth_will_last(it, config, train);
	if (!it->accelerating)
		return;
	it->last_train = larger(train, 1);
	cwnd = it->acked.total * SUSS_GROWTH;
	/*
	 * The round is sent at cwnd / minRTT; the blue part takes its share of minRTT, and what its train leaves of this
	 * share is put half before the red part and half behind it.
	 */
	blue_time = suss_share(smaller(it->min_rtt, SUSS_LONGEST), it->acked.blue * 2, cwnd);
	if (blue_time <= blue_train)
		return;
	it->jumps++;
	it->part = SUSS_GUARD;
	it->until = config->pacing ? now + (blue_time - blue_train) / 2 : now;
	it->red_cwnd = cwnd;
	it->red_rate = config->pacing ? rate_over(smaller(cwnd, LARGEST_WINDOW), it->min_rtt / 1000) : 0;
}

/*
 * HyStart's train test on the blue part: a round with 2^jumps times as much would take as many times longer. Startup
 * then goes on until the window holds what such a round has at this point.
 */
static __always_inline void suss_test_train(struct suss *it, const struct suss_config *config, const struct ack *ack,
					    u64 cwnd)
{
	u64 scale = 1ULL << (it->jumps & 31);

	if (it->cap != UNLIMITED || it->train_ended || ack->now - it->last_ack > config->ack_gap * 1000)
		return;
	it->last_ack = ack->now;
	if (smaller(ack->now - it->round_start, SUSS_LONGEST) * scale > it->min_rtt / 2) {
		it->cap = cwnd + smaller(it->blue_acked, LARGEST_WINDOW) * (scale - 1);
		it->accelerating = false;
	}
}

/* HyStart: why startup ends with this acknowledgement, or that it goes on. */
static __always_inline enum reason suss_found(struct suss *it, const struct suss_config *config, const struct ack *ack,
					      u64 cwnd)
{
	u64 growth = smaller(larger(it->min_rtt / 8, config->min_threshold * 1000), config->max_threshold * 1000);

	if (cwnd < it->segment * config->low_window)
		return GOES_ON;
	if (it->cap != UNLIMITED && cwnd > it->cap)
		return EXIT_ACK_TRAIN;
	if (it->samples > config->samples && it->mo_rtt > it->min_rtt + growth)
		return EXIT_DELAY;
	suss_test_train(it, config, ack, cwnd);
	return GOES_ON;
}

/* Probing: blue parts are clocked, red parts paced. Validation by train and delay of each round. */
static __always_inline struct step suss_on_ack(struct suss *it, const struct suss_config *config, const struct ack *ack,
					       u64 cwnd)
{
	u64 least = it->segment * SUSS_MIN_WINDOW;
	enum reason reason;
	struct step step;

	if (it->cap == UNLIMITED && it->sent.has_first && !is_before(ack->position, it->sent.first)) {
		suss_begin_round(it, ack->now);
		if (it->part != SUSS_CLOCKED) {
			/* What the pacer did not get out must not leave at once. */
			cwnd = smaller(cwnd, larger(ack->in_flight + ack->bytes, least));
			it->part = SUSS_CLOCKED;
		}
	}
	if (ack->rtt)
		suss_sample(it, ack->rtt * 1000);
	if (!it->train_ended)
		it->blue_acked += ack->bytes;
	reason = suss_found(it, config, ack, cwnd);
	/* Continuation: the window that HyStart has found. A window that jumped may not be in flight. */
	if (reason != GOES_ON)
		return exits(it->jumps > 1 ? larger(ack->in_flight, least) : cwnd, reason);
	if (it->part == SUSS_CLOCKED)
		step = slow_start_on_ack(ack, cwnd);
	else if (it->part == SUSS_GUARD)
		/* Acknowledgements of red packets clock nothing out. */
		step = goes_on(larger(cwnd - smaller(cwnd, ack->bytes), least));
	else
		step = goes_on(cwnd);
	if (!it->train_ended && !is_before(ack->position, it->acked.blue_end)) {
		it->train_ended = true;
		if (it->accelerating && ack->in_use)
			suss_plan_red_part(it, config, ack->now);
	}
	return step;
}

/* The guard interval ends; returns the window. */
static __always_inline u64 suss_on_time(struct suss *it, u64 now, u64 cwnd)
{
	if (it->part != SUSS_GUARD || now < it->until)
		return cwnd;
	it->part = SUSS_RED;
	return larger(it->red_cwnd, cwnd);
}

static __always_inline u64 suss_pacing_rate(const struct suss *it)
{
	return it->part == SUSS_RED ? it->red_rate : 0;
}

static __always_inline u64 suss_next_wakeup(const struct suss *it)
{
	return it->part == SUSS_GUARD ? it->until : UNLIMITED;
}

#define suss_send_buffer(config, path) (SUSS_GROWTH * suss_window(config, path))
#define suss_may_launch_later(config, path) ((void)(config), (void)(path), false)
#define suss_waiting(it, config, path) ((void)(it), (void)(config), (void)(path), false)
#define suss_launched(it) ((void)(it), 0)
#define suss_has_in_launch(it, position) ((void)(it), (void)(position), false)
#define suss_on_retransmission(it, position, bytes) ((void)(it), (void)(position), (void)(bytes))
#define suss_on_congestion(it, loss, reduced) ((void)(it), slow_start_on_congestion(loss, reduced))
#define suss_on_undo(it) ((void)(it))
#define suss_on_recovered(it, cwnd) ((void)(it), exits(cwnd, EXIT_LOSS))
#define suss_on_ack_in_recovery(it, bytes) ((void)(it), (void)(bytes))

#endif
