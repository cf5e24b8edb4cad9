/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Quick-Start's exchange, beside a TCP that knows nothing of it: three programs for hosts.
 *
 * Reference: RFC 4782, sections 3 and 4. A server that sends data asks with its SYN/ACK: `ask`, at an interface, adds
 * option 25 to the IPv4 header. A client that gets it notes what arrived: `hear`, before the packet reaches its socket.
 * It answers in its next packet, which ends the handshake: `answer` adds TCP option 27. The server reads it: `answer`
 * as well, which tells the scheme what was approved. A client that sends data asks with its SYN: `ask_opening`. The
 * server answers with its SYN/ACK, and the client reads it there: `answer` does both.
 *
 * Differences from the reference: only SYNs and SYN/ACKs ask, over IPv4, and once: one that is sent again does not
 * (section 4.7.1). Servers that answer SYNs with cookies do not ask. A server whose socket listened before this was
 * loaded answers no SYN. No approved rate is reported to the routers (section 4.4), for the kernel's segments have no
 * room for it.
 *
 * Status: experimental. crates/flowstart/tests/tcp.rs has transfers between network namespaces, with the router of
 * flowstart-emu.
 */
#ifndef FLOWSTART_QUICK_START_EXCHANGE_BPF_H
#define FLOWSTART_QUICK_START_EXCHANGE_BPF_H

#include "packets.bpf.h"
#include "quick_start_option.h"

#define ETH_P_IP 0x0800
#define IPPROTO_TCP 6
#define IPV4_HEADER 20
#define TCP_HEADER 20
#define TCP_FLAGS 13
#define TCP_SYN 0x02
#define TCP_SYN_ACK 0x12
#define TCP_SYN_ACK_MASK 0x17
/* getsockopt: the IP header and what follows of the SYN that is being answered. */
#define SOL_TCP 6
#define TCP_BPF_SYN_IP 1006
#define ENOSPC 28

/* A connection as this host sees it; ports in the host's order. */
struct quick_start_connection {
	u32 local;
	u32 remote;
	u32 local_port;
	u32 remote_port;
};

/* What was asked for. Who never gets an answer leaves one behind until others need its place. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct quick_start_connection);
	__type(value, struct quick_start_request);
} requests SEC(".maps");

/* What a client has to answer. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct quick_start_option);
} heard SEC(".maps");

/* The rate that was approved for a server's connection, in bytes per second. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} approvals SEC(".maps");

/* Sensing: what the routers approved; 0: nothing. */
static __always_inline u64 approved_rate_of(struct sock *sk)
{
	u64 *approved = bpf_sk_storage_get(&approvals, sk, 0, 0);

	return approved ? *approved : 0;
}

#define APPROVED_RATE(sk) approved_rate_of(sk)

/* Whether a socket that listens or connects has this scheme. */
static __always_inline bool has_scheme(struct inet_connection_sock *socket)
{
	static const char own[16] = KERNEL_NAME;
	struct tcp_congestion_ops *scheme = (struct tcp_congestion_ops *)BPF_CORE_READ(socket, icsk_ca_ops);
	char name[16] = {};

	if (!scheme || bpf_core_read(name, sizeof(name), &scheme->name))
		return false;
	for (int at = 0; at < (int)sizeof(name); at++) {
		if (name[at] != own[at])
			return false;
	}
	return true;
}

/* Whether the packet is the SYN/ACK of a server that has this scheme. */
static __always_inline bool is_of_server(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct request_sock *request;
	struct inet_connection_sock *listener;

	if (!sk)
		return false;
	request = (struct request_sock *)bpf_skc_to_tcp_request_sock(sk);
	if (!request)
		return false;
	listener = (struct inet_connection_sock *)BPF_CORE_READ(request, __req_common.skc_listener);
	return listener && has_scheme(listener);
}

/* Whether the packet is the SYN of a client that has this scheme. */
static __always_inline bool is_of_client(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *client;

	if (!sk)
		return false;
	client = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	return client && has_scheme((struct inet_connection_sock *)client);
}

/* Where the IPv4 header begins: interfaces differ in what lies before it. A negative number: somewhere else. */
static __always_inline int header_place(struct __sk_buff *skb, const u8 header[IPV4_HEADER])
{
	const int places[] = { 0, 14 };

	for (int at = 0; at < 2; at++) {
		u8 found[IPV4_HEADER];
		bool is_same = true;

		if (bpf_skb_load_bytes(skb, places[at], found, sizeof(found)))
			return -1;
		for (int byte = 0; byte < IPV4_HEADER; byte++)
			is_same = is_same && found[byte] == header[byte];
		if (is_same)
			return places[at];
	}
	return -1;
}

/* The Internet checksum of a header whose own checksum is zero (RFC 1071). */
static __always_inline u16 checksum_of(const u8 *header, u32 length)
{
	s32 sum = bpf_csum_diff(NULL, 0, (__be32 *)header, length, 0);
	u32 folded = ((u32)sum & 0xffff) + ((u32)sum >> 16);

	folded = (folded & 0xffff) + (folded >> 16);
	return ~folded;
}

/* The packet with these flags asks. */
static __always_inline int ask(struct __sk_buff *skb, u8 flags)
{
	/* With room for the option. */
	u8 header[IPV4_HEADER + QUICK_START_LENGTH] __attribute__((aligned(4))) = {};
	u8 tcp[TCP_HEADER];
	struct quick_start_connection connection;
	struct quick_start_request request = {}, *before;
	struct quick_start_option option;
	u32 length, drawn = bpf_get_prandom_u32();
	u16 checksum;
	int place;

	if (skb->protocol != __builtin_bswap16(ETH_P_IP) ||
	    bpf_skb_load_bytes_relative(skb, 0, header, IPV4_HEADER, BPF_HDR_START_NET))
		return TCX_NEXT;
	/* Without options of its own. */
	if (header[0] != 0x45 || header[9] != IPPROTO_TCP ||
	    bpf_skb_load_bytes_relative(skb, IPV4_HEADER, tcp, sizeof(tcp), BPF_HDR_START_NET))
		return TCX_NEXT;
	if ((tcp[TCP_FLAGS] & TCP_SYN_ACK_MASK) != flags || !settings.config.rate ||
	    !(flags == TCP_SYN ? is_of_client(skb) : is_of_server(skb)))
		return TCX_NEXT;
	place = header_place(skb, header);
	if (place < 0)
		return TCX_NEXT;
	__builtin_memcpy(&connection.local, header + 12, 4);
	__builtin_memcpy(&connection.remote, header + 16, 4);
	connection.local_port = (u32)tcp[0] << 8 | tcp[1];
	connection.remote_port = (u32)tcp[2] << 8 | tcp[3];
	__builtin_memcpy(&request.position, tcp + 4, 4);
	before = bpf_map_lookup_elem(&requests, &connection);
	if (before && before->position == request.position)
		return TCX_NEXT;
	request.rate = settings.config.rate & 15;
	request.nonce = bpf_get_prandom_u32() >> 2;
	request.ttl_diff = header[8] - (u8)drawn;
	if (bpf_map_update_elem(&requests, &connection, &request, BPF_ANY))
		return TCX_NEXT;
	option = (struct quick_start_option){ .nonce = request.nonce, .rate = request.rate, .ttl = drawn };
	quick_start_write(header + IPV4_HEADER, QUICK_START_IPV4_OPTION, &option);
	length = ((u32)header[2] << 8 | header[3]) + QUICK_START_LENGTH;
	if (bpf_skb_adjust_room(skb, QUICK_START_LENGTH, BPF_ADJ_ROOM_NET, 0))
		return TCX_NEXT;
	header[0] = 0x47;
	header[2] = length >> 8;
	header[3] = length;
	header[10] = header[11] = 0;
	checksum = checksum_of(header, sizeof(header));
	__builtin_memcpy(header + 10, &checksum, 2);
	/* A packet that is only half changed must not leave. */
	return bpf_skb_store_bytes(skb, place, header, sizeof(header), 0) ? TCX_DROP : TCX_NEXT;
}

/* A server asks. */
SEC("tcx/egress")
int quick_start_ask(struct __sk_buff *skb)
{
	return ask(skb, TCP_SYN_ACK);
}

/* A client asks. */
SEC("tcx/egress")
int quick_start_ask_opening(struct __sk_buff *skb)
{
	return ask(skb, TCP_SYN);
}

/* The Rate Request among the options of an IPv4 header. */
static __always_inline bool find_request(const u8 options[QUICK_START_MOST_OPTIONS], u32 length,
					 struct quick_start_option *found)
{
	u32 at = 0;

	for (int number = 0; number < QUICK_START_MOST_OPTIONS; number++) {
		u8 kind;

		if (at >= length || at > QUICK_START_MOST_OPTIONS - QUICK_START_LENGTH)
			return false;
		kind = options[at];
		if (kind == END_OF_OPTIONS)
			return false;
		if (kind == QUICK_START_IPV4_OPTION) {
			/* Function 0. */
			return at + QUICK_START_LENGTH <= length && !(options[at + 2] & 0xf0) &&
			       quick_start_read(options + at, kind, found);
		}
		if (kind != NO_OPERATION && options[at + 1] < 2)
			return false;
		at += kind == NO_OPERATION ? 1 : options[at + 1];
	}
	return false;
}

/* A client hears what arrived with a SYN/ACK. */
SEC("cgroup_skb/ingress")
int quick_start_hear(struct __sk_buff *skb)
{
	u8 header[IPV4_HEADER + QUICK_START_MOST_OPTIONS] = {};
	struct quick_start_option came, *kept;
	struct bpf_sock *sk;
	u32 options;
	u8 flags;

	if (skb->protocol != __builtin_bswap16(ETH_P_IP) || bpf_skb_load_bytes(skb, 0, header, IPV4_HEADER))
		return 1;
	options = (header[0] & 15) * 4;
	if (options <= IPV4_HEADER || header[9] != IPPROTO_TCP)
		return 1;
	options = (options - IPV4_HEADER) & 63;
	if (!options || options > QUICK_START_MOST_OPTIONS ||
	    bpf_skb_load_bytes(skb, IPV4_HEADER, header + IPV4_HEADER, options) ||
	    bpf_skb_load_bytes(skb, IPV4_HEADER + options + TCP_FLAGS, &flags, 1))
		return 1;
	sk = skb->sk;
	if ((flags & TCP_SYN_ACK_MASK) != TCP_SYN_ACK || !sk ||
	    !find_request(header + IPV4_HEADER, options, &came))
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 1;
	kept = bpf_sk_storage_get(&heard, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (kept)
		*kept = quick_start_respond(&came, header[8]);
	return 1;
}

/* The asker's part: reads the answer with which a connection is established. */
static __always_inline void read_answer(struct bpf_sock_ops *ops)
{
	struct quick_start_connection connection = {
		.local = ops->local_ip4,
		.remote = ops->remote_ip4,
		.local_port = ops->local_port,
		.remote_port = __builtin_bswap32(ops->remote_port),
	};
	struct quick_start_request *asked, request;
	u8 bytes[QUICK_START_LENGTH] = { QUICK_START_TCP_OPTION };
	struct quick_start_option answer;
	struct bpf_sock *sk = ops->sk;
	u64 *approved;

	asked = bpf_map_lookup_elem(&requests, &connection);
	if (!asked || !sk)
		return;
	request = *asked;
	bpf_map_delete_elem(&requests, &connection);
	if (bpf_load_hdr_opt(ops, bytes, sizeof(bytes), 0) != QUICK_START_LENGTH ||
	    !quick_start_read(bytes, QUICK_START_TCP_OPTION, &answer) ||
	    quick_start_verify(&request, &answer, settings.config.compared) != QUICK_START_APPROVED)
		return;
	approved = bpf_sk_storage_get(&approvals, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (approved)
		*approved = quick_start_rate(answer.rate);
}

/* What this client has to answer. */
static __always_inline struct quick_start_option *to_answer(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	return sk ? bpf_sk_storage_get(&heard, sk, 0, 0) : NULL;
}

/* What a server has to answer to the SYN for which it makes a SYN/ACK. */
static __always_inline bool to_answer_opening(struct bpf_sock_ops *ops, struct quick_start_option *answer)
{
	u8 header[IPV4_HEADER + QUICK_START_MOST_OPTIONS] = {};
	struct quick_start_option came;
	u32 options;
	int got;

	if ((ops->skb_tcp_flags & TCP_SYN_ACK_MASK) != TCP_SYN_ACK)
		return false;
	got = bpf_getsockopt(ops, SOL_TCP, TCP_BPF_SYN_IP, header, sizeof(header));
	/* What does not fit is of TCP. */
	if (got < 0 && got != -ENOSPC)
		return false;
	options = (header[0] & 15) * 4;
	if (header[0] >> 4 != 4 || options <= IPV4_HEADER || options > sizeof(header) ||
	    !find_request(header + IPV4_HEADER, options - IPV4_HEADER, &came))
		return false;
	*answer = quick_start_respond(&came, header[8]);
	return true;
}

/* Whether headers of this connection get options by this program. */
static __always_inline void write_options(struct bpf_sock_ops *ops, bool writes)
{
	u32 flags = ops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	bpf_sock_ops_cb_flags_set(ops, writes ? flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : flags);
}

/* Hosts answer, and who asked reads it. */
SEC("sockops")
int quick_start_answer(struct bpf_sock_ops *ops)
{
	u8 bytes[QUICK_START_LENGTH];
	struct quick_start_option *kept, answer;

	/* A socket of IPv6 may have a connection of IPv4. */
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		write_options(ops, true);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		/* Its listener's flags are its own. */
		write_options(ops, false);
		read_answer(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		read_answer(ops);
		if (to_answer(ops))
			write_options(ops, true);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (to_answer_opening(ops, &answer) || to_answer(ops))
			bpf_reserve_hdr_opt(ops, QUICK_START_LENGTH, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (to_answer_opening(ops, &answer)) {
			quick_start_write(bytes, QUICK_START_TCP_OPTION, &answer);
			bpf_store_hdr_opt(ops, bytes, sizeof(bytes), 0);
			break;
		}
		kept = to_answer(ops);
		if (!kept)
			break;
		quick_start_write(bytes, QUICK_START_TCP_OPTION, kept);
		bpf_store_hdr_opt(ops, bytes, sizeof(bytes), 0);
		/* Once (section 4.3). */
		if (ops->sk)
			bpf_sk_storage_delete(&heard, ops->sk);
		write_options(ops, false);
		break;
	}
	return 1;
}

#endif
