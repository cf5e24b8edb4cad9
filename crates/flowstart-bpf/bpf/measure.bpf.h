/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a connection measures of its path, for whoever learns.
 *
 * The kernel keeps the latest sample of the delivery rate, which after a pause is that of a FIN. So the highest is kept
 * here, as `serve` keeps it: a sample of the kernel is hardly faster than the path, because it takes the longer of the
 * times in which data was sent and acknowledged.
 */
#ifndef FLOWSTART_MEASURE_BPF_H
#define FLOWSTART_MEASURE_BPF_H

#include "connection.bpf.h"
#include "tell.bpf.h"

/* Payload bytes from which on a connection has seen its path, as those of `serve`. */
#define WORTHWHILE 100000

static __always_inline bool someone_learns(void)
{
	u32 key = CONTROL_LEARNING, *wanted = bpf_map_lookup_elem(&control, &key);

	return wanted && *wanted;
}

/* Looks at the kernel's latest sample. */
static __always_inline void take_rate(struct tcp_sock *tp, struct connection *it)
{
	u64 interval = tp->rate_interval_us;

	if (interval)
		it->rate = larger(it->rate, (u64)tp->rate_delivered * tp->mss_cache * 1000000 / interval);
}

/* Keeps what an ending connection has measured; small ones have seen nothing of their path. */
static __always_inline void measure(struct sock *sk)
{
	struct connection *it = connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct measured found = {};
	u8 address[16];

	/* A program may take another congestion control in the middle of a connection. */
	if (!it || !it->measures || sk->__sk_common.skc_state != TCP_CLOSE || tp->bytes_acked < WORTHWHILE)
		return;
	take_rate(tp, it);
	found.time = bpf_ktime_get_ns();
	found.rate = it->rate;
	found.delivered = tp->bytes_acked;
	found.cwnd = (u64)tp->snd_cwnd * tp->mss_cache;
	if (tp->snd_ssthresh == TCP_INFINITE_SSTHRESH)
		found.cwnd /= 2;
	found.min_rtt = tp->rtt_min.s[0].v;
	destination_of(sk, address);
	bpf_map_update_elem(&measured, address, &found, BPF_ANY);
}

#endif
