/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is kept of a connection while its startup lasts, and how its window and its pacing are set. The including file
 * defines STATE, the scheme's type.
 */
#ifndef FLOWSTART_CONNECTION_BPF_H
#define FLOWSTART_CONNECTION_BPF_H

#include "kernel.h"
#include "startup.h"

enum phase {
	/* Nothing was sent yet. */
	WAITING = 0,
	/* The scheme is in charge. */
	STARTING,
	/* It still is, and the kernel recovers from a loss. */
	RECOVERING,
	/* Startup is over, or the scheme lacked its input: the kernel's congestion avoidance is in charge. */
	OVER,
};

struct connection {
	STATE scheme;
	/* The scheme's window, and the packets that were made of it. */
	u64 cwnd;
	u32 packets;
	/* The RTT that the next acknowledgement tells, and the latest one. */
	u32 rtt;
	u32 latest_rtt;
	/* Bytes that were sent again so far. */
	u64 retransmitted;
	/* Bytes that were sent again and whose arrival is yet to be left out of what was delivered. */
	u64 repairs;
	/* The window of the launch. */
	u64 launched;
	/* The position of the first byte. */
	u32 first;
	/* What was the first missing byte when the latest retransmissions left. */
	u32 una;
	/* The kernel's own initial window in packets. */
	u32 initial;
	u8 phase;
	/* Why startup ended, if that waits for the kernel's next state; GOES_ON: nothing waits. */
	u8 ends;
	/* Whether the launch is paced, and whether pacing was begun for it. */
	bool paced;
	bool began_pacing;
	bool acknowledged;
	/* Whether someone learned when it began, and the highest rate of delivery so far, in bytes per second. */
	bool measures;
	u64 rate;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return bpf_sk_storage_get(&connections, sk, 0, 0);
}

static __always_inline u64 in_segments(u64 bytes, u32 segment)
{
	return segment ? (bytes + segment - 1) / segment : 0;
}

static __always_inline void set_window(struct tcp_sock *tp, struct connection *it, u64 cwnd)
{
	u64 packets = smaller(larger(in_segments(cwnd, tp->mss_cache), 1), tp->snd_cwnd_clamp);

	it->cwnd = cwnd;
	it->packets = packets;
	tp->snd_cwnd = packets;
}

static __always_inline void set_ssthresh(struct tcp_sock *tp, u64 ssthresh)
{
	if (ssthresh == UNLIMITED)
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	else
		tp->snd_ssthresh = smaller(larger(in_segments(ssthresh, tp->mss_cache), 2), TCP_INFINITE_SSTHRESH);
}

/* The window in bytes; what the kernel made of it since counts. */
static __always_inline u64 window_of(struct tcp_sock *tp, struct connection *it)
{
	if (tp->snd_cwnd != it->packets)
		it->cwnd = (u64)tp->snd_cwnd * tp->mss_cache;
	return it->cwnd;
}

static __always_inline void stop_pacing(struct sock *sk, struct connection *it)
{
	it->paced = false;
	if (!it->began_pacing)
		return;
	it->began_pacing = false;
	/* The application may have asked for pacing meanwhile. */
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
		sk->sk_pacing_status = SK_PACING_NONE;
}

/* Paces the launch until it has left. */
static __always_inline void pace(struct sock *sk, struct connection *it, bool goes_on, u64 rate)
{
	if (!it->paced)
		return;
	if (!goes_on) {
		stop_pacing(sk, it);
		return;
	}
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		it->began_pacing = true;
	}
	if (rate)
		sk->sk_pacing_rate = smaller(rate, sk->sk_max_pacing_rate);
}

/*
 * The rate at which all that the window still has room for leaves until `wakeup`. The kernel has no timer for a scheme,
 * but its pacing calls when the time of a packet is over. It takes the time since the last packet off the first pause.
 */
static __always_inline u64 rate_until(struct tcp_sock *tp, struct connection *it, u64 now, u64 wakeup)
{
	u64 window = window_of(tp, it), in_flight = bytes_in_flight(tp);
	u64 room = window > in_flight ? smaller(window - in_flight, 1ULL << 33) : 0;
	u64 idle = now > tp->tcp_wstamp_ns ? now - tp->tcp_wstamp_ns : 0;

	return wakeup > now ? room * 1000000000 / (wakeup - now + idle) : 0;
}

#endif
