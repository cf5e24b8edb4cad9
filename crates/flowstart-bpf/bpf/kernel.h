/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The few parts of the kernel that the programs touch. Names and types are the kernel's; where a field lies is found
 * when a program is loaded (CO-RE), so one build runs on kernels of different layout and building needs none of their
 * headers.
 */
#ifndef FLOWSTART_KERNEL_H
#define FLOWSTART_KERNEL_H

#include "numbers.h"

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct sock *skc_listener;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct request_sock {
	struct sock_common __req_common;
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	__u16 mss_clamp;
};

struct tcp_sock {
	struct tcp_options_received rx_opt;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_wnd;
	__u32 write_seq;
	__u32 mss_cache;
	__u32 srtt_us;
	struct minmax rtt_min;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 max_packets_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 data_segs_out;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u64 bytes_acked;
	__u64 bytes_retrans;
	__u64 tcp_wstamp_ns;
	__u8 ecn_flags;
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

/* States of the kernel's recovery. */
enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

#pragma clang attribute pop

/* skc_state */
#define TCP_CLOSE 7

#define AF_INET 2
#define AF_INET6 10

/* sk_pacing_status */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

/* net.ipv4.tcp_pacing_ca_ratio, as it is by default */
#define PACING_CA_PERCENT 120

#define TCP_INFINITE_SSTHRESH 0x7fffffff
/* ecn_flags: both sides speak ECN, as of RFC 3168 or more accurately */
#define ECN_NEGOTIATED (1 << 0 | 1 << 4)
/* The kernel leaves the first segments of a connection unpaced, and sends at least two in a burst. */
#define MIN_TSO_SEGMENTS 2
/* How many windows a send buffer holds. */
#define SNDBUF_FACTOR 2

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline u64 bytes_in_flight(const struct tcp_sock *tp)
{
	return (u64)(tp->packets_out + tp->retrans_out - tp->lost_out - tp->sacked_out) * tp->mss_cache;
}

/* Whether the sender uses its window; in slow start it has to use half of it. */
static __always_inline bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
