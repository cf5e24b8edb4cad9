/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The options of Quick-Start, a receiver's answer, and what a sender makes of it.
 *
 * Reference: RFC 4782, sections 3.1 to 3.4 and 4.1 to 4.4: option 25 of IPv4 and option 27 of TCP.
 *
 * Differences from the reference: none known. Names and decisions are those of flowstart-core's quick_start/wire.rs and
 * quick_start/host.rs, with which a test compares them.
 */
#ifndef FLOWSTART_QUICK_START_OPTION_H
#define FLOWSTART_QUICK_START_OPTION_H

#include "numbers.h"

#define QUICK_START_IPV4_OPTION 25
#define QUICK_START_TCP_OPTION 27
#define QUICK_START_LENGTH 8
/* Most bytes of options in an IPv4 header. */
#define QUICK_START_MOST_OPTIONS 40

/* IPv4 options of one byte (RFC 791, section 3.1). */
#define END_OF_OPTIONS 0
#define NO_OPERATION 1

/* Bytes 2 to 7 of an option: of IPv4 with function 0 and the QS TTL, of TCP with 0 and the TTL Diff. */
struct quick_start_option {
	u32 nonce;
	/* N: 40 kbit/s * 2^N; 0: nothing. */
	u8 rate;
	u8 ttl;
};

/* What a sender remembers of its request. */
struct quick_start_request {
	u32 nonce;
	/* The position of the packet that asks; with the same one it is sent again. */
	u32 position;
	u8 rate;
	/* IP TTL less QS TTL, modulo 256. */
	u8 ttl_diff;
	u8 unused[2];
};

enum quick_start_answer {
	QUICK_START_APPROVED = 0,
	QUICK_START_DENIED,
	QUICK_START_TOO_HIGH,
	QUICK_START_TTL_DIFF,
	QUICK_START_NONCE,
};

/* The rate in bytes per second. */
static __always_inline u64 quick_start_rate(u32 code)
{
	return code ? 5000ULL << (code & 15) : 0;
}

/* The bits of the steps from `code` down to 0. */
static __always_inline u32 quick_start_steps_below(u32 code)
{
	return (1U << (2 * (code & 15))) - 1;
}

static __always_inline void quick_start_write(u8 bytes[QUICK_START_LENGTH], u8 kind,
					      const struct quick_start_option *option)
{
	u32 nonce = option->nonce << 2;

	bytes[0] = kind;
	bytes[1] = QUICK_START_LENGTH;
	bytes[2] = option->rate & 15;
	bytes[3] = option->ttl;
	bytes[4] = nonce >> 24;
	bytes[5] = nonce >> 16;
	bytes[6] = nonce >> 8;
	bytes[7] = nonce;
}

/* Whether the bytes are an option of this kind. The half of a byte before the rate is reserved in TCP. */
static __always_inline bool quick_start_read(const u8 bytes[QUICK_START_LENGTH], u8 kind,
					     struct quick_start_option *option)
{
	u32 nonce = (u32)bytes[4] << 24 | (u32)bytes[5] << 16 | (u32)bytes[6] << 8 | bytes[7];

	if (bytes[0] != kind || bytes[1] != QUICK_START_LENGTH)
		return false;
	option->rate = bytes[2] & 15;
	option->ttl = bytes[3];
	option->nonce = nonce >> 2;
	return true;
}

/* A receiver's answer to a Rate Request that arrived with this IP TTL. */
static __always_inline struct quick_start_option quick_start_respond(const struct quick_start_option *came, u8 ip_ttl)
{
	return (struct quick_start_option){ .nonce = came->nonce, .rate = came->rate, .ttl = ip_ttl - came->ttl };
}

/* What a sender makes of an answer, comparing the bits of the nonce that are set in `compared`. */
static __always_inline enum quick_start_answer quick_start_verify(const struct quick_start_request *asked,
								  const struct quick_start_option *answer,
								  u32 compared)
{
	if (!answer->rate)
		return QUICK_START_DENIED;
	if (answer->rate > asked->rate)
		return QUICK_START_TOO_HIGH;
	if (answer->ttl != asked->ttl_diff)
		return QUICK_START_TTL_DIFF;
	if ((asked->nonce ^ answer->nonce) & quick_start_steps_below(answer->rate) & compared)
		return QUICK_START_NONCE;
	return QUICK_START_APPROVED;
}

#endif
