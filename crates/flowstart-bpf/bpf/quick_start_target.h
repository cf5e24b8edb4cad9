/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A Quick-Start router with the Target rule (RFC 4782; Sarolahti, Allman and Floyd, section 6.1, figure 7), without
 * anything of a kernel: `quick_start/router/target.rs`, `peak_utilization.rs` and `request_limit.rs` of flowstart-core
 * in integers, with their names. Times are nanoseconds, rates bits per second. read_frame and write_frame touch bytes
 * and no state, decide touches state and no bytes, so a lock need only be held for that.
 */
#ifndef FLOWSTART_QUICK_START_TARGET_H
#define FLOWSTART_QUICK_START_TARGET_H

#include "numbers.h"

#define ETHERNET_HEADER 14
#define SHORTEST_IPV4 20
#define MOST_OPTIONS 40
#define IPV4_TTL 8
#define IPV4_CHECKSUM 10

#define END_OF_OPTIONS 0
#define NO_OPERATION 1
#define QUICK_START 25
#define OPTION_LENGTH 8

#define RATE_REQUEST 0
#define RATE_CONFIRMATION 1
#define APPROVED_RATE 8

/* 40 kbit/s * 2^N is the rate of the code N; 0 is no rate. */
#define BASE_RATE 40000ULL
#define HIGHEST_CODE 15
/* Two bits of the nonce stand for each step of the rate. */
#define BITS_PER_STEP 2

/* The most intervals that are remembered, as in flowstart-core. */
#define MOST_INTERVALS 64
#define SECOND 1000000000ULL

/*
 * What the loader writes. The peak's interval is less than 2^32 ns: then the product of two times stays within 64
 * bits.
 */
struct target_config {
	u64 bandwidth;
	/* qs_thresh of the bandwidth. */
	u64 limit;
	u64 approval_interval;
	u64 peak_interval;
	/* UNLIMITED: all. */
	u64 requests_per_second;
	u32 intervals;
	u32 reserved;
};

/* What happened to options. */
struct options_seen {
	u64 requests;
	u64 reduced;
	u64 denied;
	u64 reports;
	u64 malformed;
	u64 expired;
};

struct target {
	/* The utilization: the running interval, up to when it is counted, and until when the link is busy. */
	u64 began;
	u64 sending;
	u64 counted;
	u64 busy_until;
	/* How long the link was sending in each of the latest intervals. */
	u64 latest[MOST_INTERVALS];
	/* recent_qs_approvals: the running interval's number, and what was approved in the one before and in it. */
	u64 running;
	u64 approved[2];
	u64 second;
	u64 looked_at;
	struct options_seen seen;
	u32 next;
	u32 reserved;
};

enum content {
	/* Neither Ethernet's IPv4 nor whole: none of the router's business. */
	UNKNOWN,
	/* Without an option of Quick-Start. */
	PLAIN,
	/* With one that cannot be read, or in a header that is wrong. */
	MALFORMED,
	/* With one. */
	OPTION,
};

struct frame {
	enum content content;
	/* Bytes of the packet of IP. */
	u32 size;
	/* Where the option begins in the frame. */
	u32 place;
	u32 nonce;
	u8 ttl;
	u8 function;
	u8 rate;
	u8 qs_ttl;
};

static __always_inline u64 rate_of(u32 code)
{
	return code ? BASE_RATE << (code & HIGHEST_CODE) : 0;
}

/* The highest code whose rate is at most this. */
static __always_inline u32 code_at_most(u64 rate)
{
	u32 code = 0;

	for (u32 next = 1; next <= HIGHEST_CODE; next++) {
		if (rate >= BASE_RATE << next)
			code = next;
	}
	return code;
}

static __always_inline u32 steps_below(u32 code)
{
	return (1U << (BITS_PER_STEP * (code & HIGHEST_CODE))) - 1;
}

static __always_inline u32 word_at(const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

static __always_inline u32 folded(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The way through the options of a header. */
struct walk {
	u8 *options;
	u8 *end;
	/* Bytes of options, and where the next one is. */
	u32 length;
	u32 place;
	/* Where in the frame the one of Quick-Start is; 0: nowhere yet. */
	u32 found;
	u32 is_malformed;
};

/* Calls a function that says when it is enough; a kernel has its own loop, which it verifies once. */
#ifndef LOOP
#define LOOP(times, step, context)                                                                                     \
	do {                                                                                                           \
		for (u32 at_ = 0; at_ < (times) && !step(at_, context); at_++)                                         \
			;                                                                                              \
	} while (0)
#endif

/* Looks at the next option; whether it is the last. */
static long read_option(u64 index, struct walk *walk)
{
	u32 place = walk->place, left = walk->length - place, bytes;
	u8 *at = walk->options + (place & 63);

	if (place >= walk->length || at + 1 > walk->end || at[0] == END_OF_OPTIONS)
		return 1;
	if (at[0] == NO_OPERATION) {
		walk->place++;
		return 0;
	}
	walk->is_malformed = 1;
	if (left < 2 || at + 2 > walk->end)
		return 1;
	bytes = at[1];
	/* A header has one of Quick-Start, of eight bytes, and not more. */
	if (bytes < 2 || bytes > left || (at[0] == QUICK_START && (walk->found || bytes != OPTION_LENGTH)))
		return 1;
	walk->is_malformed = 0;
	if (at[0] == QUICK_START)
		walk->found = ETHERNET_HEADER + SHORTEST_IPV4 + place;
	walk->place += bytes;
	return 0;
}

/* Adds four bytes to the sum of a header that has them. */
#define ADD_WORDS(at)                                                                                                  \
	do {                                                                                                           \
		if (header > (at)) {                                                                                   \
			if (ip + (at) + 4 > end)                                                                       \
				return;                                                                                \
			sum += word_at(ip + (at)) + word_at(ip + (at) + 2);                                            \
		}                                                                                                      \
	} while (0)

/* Reads the header of a frame and its option. */
static __always_inline void read_frame(u8 *data, u8 *end, struct frame *frame)
{
	u8 *ip = data + ETHERNET_HEADER;
	u8 *option;
	u32 header, length, sum = 0;
	struct walk walk = { .end = end };

	frame->content = UNKNOWN;
	if (ip + SHORTEST_IPV4 > end || data[12] != 0x08 || data[13] != 0x00 || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 0x0f) * 4;
	length = word_at(ip + 2);
	if (header < SHORTEST_IPV4 || length < header || length > (u64)(end - ip))
		return;
	frame->content = PLAIN;
	frame->size = length;
	if (header == SHORTEST_IPV4)
		return;
	walk.length = header - SHORTEST_IPV4;
	/* Options are looked at in headers that are right (RFC 1812, section 5.2.2). */
	for (u32 at = 0; at < SHORTEST_IPV4; at += 2)
		sum += word_at(ip + at);
	/* Without a loop, because a verifier follows places that are constants. */
	ADD_WORDS(20);
	ADD_WORDS(24);
	ADD_WORDS(28);
	ADD_WORDS(32);
	ADD_WORDS(36);
	ADD_WORDS(40);
	ADD_WORDS(44);
	ADD_WORDS(48);
	ADD_WORDS(52);
	ADD_WORDS(56);
	if (folded(sum) != 0xffff) {
		frame->content = UNKNOWN;
		return;
	}
	walk.options = ip + SHORTEST_IPV4;
	LOOP(MOST_OPTIONS, read_option, &walk);
	if (walk.is_malformed) {
		frame->content = MALFORMED;
		return;
	}
	if (!walk.found)
		return;
	option = data + (walk.found & 127);
	if (option + OPTION_LENGTH > end)
		return;
	frame->place = walk.found;
	frame->function = option[2] >> 4;
	frame->rate = option[2] & 0x0f;
	frame->qs_ttl = option[3];
	frame->nonce = ((u32)option[4] << 24 | (u32)option[5] << 16 | (u32)option[6] << 8 | option[7]) >> 2;
	frame->ttl = ip[IPV4_TTL];
	frame->content = OPTION;
	if (frame->function != RATE_REQUEST && frame->function != RATE_CONFIRMATION && frame->function != APPROVED_RATE)
		frame->content = MALFORMED;
}

/* The running interval ends after so much sending. */
static __always_inline void end_interval(struct target *target, const struct target_config *config, u64 sending)
{
	target->latest[target->next & (MOST_INTERVALS - 1)] = sending;
	target->next = target->next + 1 >= config->intervals ? 0 : target->next + 1;
}

/* The link was sending or idle until then. */
static __always_inline void count(struct target *target, const struct target_config *config, u64 until, bool sending)
{
	u64 length = config->peak_interval;
	u64 passed = until - target->began;

	if (until <= target->counted || !length)
		return;
	if (passed >= length) {
		u64 whole = passed / length;
		u64 share = sending ? length : 0;

		if (sending)
			target->sending += target->began + length - target->counted;
		end_interval(target, config, target->sending);
		/* Those that follow the running one are as the link is; only the remembered ones count. */
		for (u32 other = 1; other <= MOST_INTERVALS; other++) {
			if (other >= whole || other > config->intervals)
				break;
			end_interval(target, config, share);
		}
		target->began += whole * length;
		target->counted = target->began;
		target->sending = 0;
	}
	if (sending)
		target->sending += until - target->counted;
	target->counted = until;
}

/* A packet leaves. */
static __always_inline void on_departure(struct target *target, const struct target_config *config, u64 now, u32 size)
{
	u64 bits = size * 8 * SECOND;
	u64 bandwidth = config->bandwidth;

	if (now > target->busy_until) {
		count(target, config, target->busy_until, true);
		count(target, config, now, false);
		target->busy_until = now;
	}
	if (bandwidth) {
		u64 time = bits / bandwidth;

		target->busy_until += time * bandwidth == bits ? time : time + 1;
		/* Not for longer than intervals are remembered. */
		target->busy_until = smaller(target->busy_until, now + config->peak_interval * config->intervals);
	}
}

/* The bandwidth that is in use, rounded up. */
static __always_inline u64 used(struct target *target, const struct target_config *config, u64 now)
{
	u64 length = config->peak_interval, bandwidth = config->bandwidth, busiest = 0, product;

	count(target, config, smaller(now, target->busy_until), true);
	count(target, config, now, false);
	for (u32 at = 0; at < MOST_INTERVALS; at++) {
		if (at >= config->intervals)
			break;
		busiest = larger(busiest, target->latest[at]);
	}
	if (!length)
		return bandwidth;
	product = bandwidth % length * busiest;
	return bandwidth / length * busiest + product / length + (product % length ? 1 : 0);
}

/* What was approved in the running interval and the one before. */
static __always_inline u64 recent_qs_approvals(struct target *target, const struct target_config *config, u64 now)
{
	u64 running = config->approval_interval ? now / config->approval_interval : 0;
	u64 passed = running - target->running;

	if (passed) {
		target->approved[0] = passed == 1 ? target->approved[1] : 0;
		target->approved[1] = 0;
		target->running = running;
	}
	return target->approved[0] + target->approved[1];
}

static __always_inline bool looks_at(struct target *target, const struct target_config *config, u64 now)
{
	u64 second = now / SECOND;

	if (config->requests_per_second == UNLIMITED)
		return true;
	if (target->second != second) {
		target->second = second;
		target->looked_at = 0;
	}
	target->looked_at++;
	return target->looked_at <= config->requests_per_second;
}

/* How much of a request is approved, before it is rounded. */
static __always_inline u64 approve(struct target *target, const struct target_config *config, u64 now, u64 requested)
{
	u64 util_bw, approved;

	if (!looks_at(target, config, now))
		return 0;
	/* Figure 7. */
	util_bw = used(target, config, now) + recent_qs_approvals(target, config, now);
	if (util_bw >= config->limit)
		return 0;
	approved = smaller(requested, config->limit - util_bw);
	target->approved[1] += approved;
	return approved;
}

/* Decides on a frame that leaves now, and notes what is to be written into it; whether it leaves at all. */
static __always_inline bool decide(struct target *target, const struct target_config *config, struct frame *frame,
				   u64 now, u32 random)
{
	if (frame->content == OPTION) {
		/* Its time is over (RFC 791, section 3.2). */
		if (frame->ttl <= 1) {
			target->seen.expired++;
			return false;
		}
		frame->ttl--;
		if (frame->function == APPROVED_RATE) {
			target->seen.reports++;
			frame->qs_ttl = 0;
		} else {
			target->seen.requests++;
		}
		if (frame->function == RATE_REQUEST) {
			u32 code = code_at_most(approve(target, config, now, rate_of(frame->rate)));

			if (!code) {
				/* Rate, TTL and nonce of a request that is not approved (RFC 4782, section 3.3). */
				target->seen.denied += frame->rate ? 1 : 0;
				frame->rate = 0;
				frame->qs_ttl = 0;
				frame->nonce = 0;
			} else {
				u32 steps = steps_below(frame->rate) & ~steps_below(code);

				target->seen.reduced += code < frame->rate ? 1 : 0;
				frame->nonce = (frame->nonce & ~steps) | (random & steps);
				frame->rate = code;
				frame->qs_ttl--;
			}
		}
	} else if (frame->content == MALFORMED) {
		target->seen.malformed++;
	}
	if (frame->content != UNKNOWN)
		on_departure(target, config, now, frame->size);
	return true;
}

/* Writes TTL and option, and changes the checksum by the difference (RFC 1624, equation 3). */
static __always_inline void write_frame(u8 *data, u8 *end, const struct frame *frame)
{
	u8 *ip = data + ETHERNET_HEADER, *option = data + (frame->place & 127);
	u32 nonce = frame->nonce << 2, sum, before = 0, after = 0;

	if (frame->content != OPTION || ip + SHORTEST_IPV4 > end || option + OPTION_LENGTH > end)
		return;
	for (u32 at = 2; at < OPTION_LENGTH; at += 2)
		before += word_at(option + at);
	option[2] = frame->function << 4 | frame->rate;
	option[3] = frame->qs_ttl;
	option[4] = nonce >> 24;
	option[5] = nonce >> 16;
	option[6] = nonce >> 8;
	option[7] = nonce;
	for (u32 at = 2; at < OPTION_LENGTH; at += 2)
		after += word_at(option + at);
	sum = folded(after + 3 * 0xffff - before);
	/* An option that begins at an odd place lies across the words of the sum, whose bytes change sides. */
	if (frame->place & 1)
		sum = (sum & 0xff) << 8 | sum >> 8;
	sum += 0xffff - ((u32)ip[IPV4_TTL] << 8) + ((u32)frame->ttl << 8);
	ip[IPV4_TTL] = frame->ttl;
	sum = folded(sum + (0xffff ^ word_at(ip + IPV4_CHECKSUM))) ^ 0xffff;
	ip[IPV4_CHECKSUM] = sum >> 8;
	ip[IPV4_CHECKSUM + 1] = sum;
}

#endif
