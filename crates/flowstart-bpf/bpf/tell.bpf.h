/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs know from user space and tell it: hints by destination, counts, and events for whoever follows.
 * src/wire.rs has the same layouts.
 */
#ifndef FLOWSTART_TELL_BPF_H
#define FLOWSTART_TELL_BPF_H

#include "kernel.h"
#include "startup.h"

/* A destination; those of IPv4 are ::ffff:a.b.c.d. */
struct destination {
	u32 prefix_length;
	u8 address[16];
};

struct hint {
	/* Bytes per second. */
	u64 rate;
	/* Microseconds; 0: not known. */
	u64 rtt;
	/* On the clock of bpf_ktime_get_ns: when it was given, and until when it holds; 0: it does not expire. */
	u64 given;
	u64 expires;
	/* That of its destination, for the table does not say which prefix it found. */
	u32 prefix_length;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, struct hint);
} hints SEC(".maps");

struct counts {
	/* Connections that took the scheme, and those that have ended. */
	u64 started;
	u64 ended;
	/* Launches, and starts that lacked what the scheme needs. */
	u64 launched;
	u64 fell_back;
	/* Ends of startup by reason. */
	u64 exits[REASONS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

enum event_kind {
	EVENT_LAUNCH = 1,
	EVENT_FALLBACK,
	EVENT_EXIT,
};

struct event {
	u64 time;
	u64 pacing_rate;
	u32 kind;
	u32 reason;
	u32 cwnd;
	u32 ssthresh;
	u32 srtt;
	u32 segment;
	u8 source[16];
	u8 destination[16];
	u16 source_port;
	u16 destination_port;
	u32 unused;
};

/* What a connection had measured of its path when it ended. */
struct measured {
	/* When, on the clock of bpf_ktime_get_ns. */
	u64 time;
	/* Bytes per second: the highest delivery rate of which the kernel kept a sample. */
	u64 rate;
	/* Payload bytes that were acknowledged, and those of the window at the end, or half of it in slow start. */
	u64 delivered;
	u64 cwnd;
	/* Microseconds. */
	u64 min_rtt;
};

/* By address; the latest connections of so many addresses, if nobody takes them in time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u8[16]);
	__type(value, struct measured);
} measured SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

enum control {
	/* Whether someone follows the events; otherwise none are written. */
	CONTROL_FOLLOWING = 0,
	/* Events for which there was no room. */
	CONTROL_LOST,
	/* Which hints the scheme uses, a note of the loader for later calls. */
	CONTROL_HINT_USE,
	/* Whether someone takes what connections measure that begin now; otherwise they do not. */
	CONTROL_LEARNING,
	CONTROLS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONTROLS);
	__type(key, u32);
	__type(value, u32);
} control SEC(".maps");

static __always_inline struct counts *counts_of_cpu(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&counts, &only);
}

static __always_inline void mapped(u8 address[16], u32 ipv4)
{
	__builtin_memset(address, 0, 10);
	address[10] = address[11] = 0xff;
	__builtin_memcpy(address + 12, &ipv4, 4);
}

static __always_inline void destination_of(struct sock *sk, u8 address[16])
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		struct in6_addr found = sk->__sk_common.skc_v6_daddr;

		__builtin_memcpy(address, &found, 16);
	} else {
		mapped(address, sk->__sk_common.skc_daddr);
	}
}

static __always_inline void source_of(struct sock *sk, u8 address[16])
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		struct in6_addr found = sk->__sk_common.skc_v6_rcv_saddr;

		__builtin_memcpy(address, &found, 16);
	} else {
		mapped(address, sk->__sk_common.skc_rcv_saddr);
	}
}

/* How many prefixes are looked at: so many that have expired may lie within one that holds. */
#define HINT_TRIES 8

/* The hint of the longest prefix that still holds; NULL: there is none. */
static __always_inline const struct hint *hint_for(struct sock *sk)
{
	struct destination to = { .prefix_length = 128 };
	u64 now = bpf_ktime_get_ns();

	destination_of(sk, to.address);
	for (int try = 0; try < HINT_TRIES; try++) {
		const struct hint *hint = bpf_map_lookup_elem(&hints, &to);

		if (!hint || !hint->expires || hint->expires >= now)
			return hint;
		if (!hint->prefix_length || hint->prefix_length > to.prefix_length)
			return NULL;
		to.prefix_length = hint->prefix_length - 1;
	}
	return NULL;
}

static __always_inline void tell(struct sock *sk, enum event_kind kind, enum reason reason)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct event *event;
	u32 key = CONTROL_FOLLOWING, *wanted;

	wanted = bpf_map_lookup_elem(&control, &key);
	if (!wanted || !*wanted)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		u32 *lost;

		key = CONTROL_LOST;
		lost = bpf_map_lookup_elem(&control, &key);
		if (lost)
			__sync_fetch_and_add(lost, 1);
		return;
	}
	event->time = bpf_ktime_get_ns();
	event->pacing_rate = kind == EVENT_LAUNCH && sk->sk_pacing_status ? sk->sk_pacing_rate : 0;
	event->kind = kind;
	event->reason = reason;
	event->cwnd = tp->snd_cwnd;
	event->ssthresh = tp->snd_ssthresh;
	event->srtt = tp->srtt_us >> 3;
	event->segment = tp->mss_cache;
	source_of(sk, event->source);
	destination_of(sk, event->destination);
	event->source_port = sk->__sk_common.skc_num;
	event->destination_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	event->unused = 0;
	bpf_ringbuf_submit(event, 0);
}

#endif
