/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A startup scheme as a congestion control of the kernel. The including file defines STATE, the scheme's type,
 * SCHEME(name), its function of this name, and KERNEL_NAME. It may define SEND_BUFFER_WINDOWS, how many windows a send
 * buffer needs while startup lasts, and EXCHANGE, a file with programs that ask routers, and APPROVED_RATE(sk).
 *
 * Until startup ends the scheme decides on the window; then the kernel's own CUBIC or Reno does. Recovery is the
 * kernel's throughout. While a scheme is in charge CUBIC's HyStart is off.
 *
 * The launch and its pacing rate are set where the kernel asks for min_tso_segs, which it does before each round of
 * transmission: the data that waits is known there, and rates that the kernel computes with each acknowledgement are
 * replaced before they are used. The rate stays below SO_MAX_PACING_RATE of the application.
 */
#include "connection.bpf.h"
#include "kernel.h"
#include "measure.bpf.h"
#include "startup.h"
#include "tell.bpf.h"

#ifndef SEND_BUFFER_WINDOWS
#define SEND_BUFFER_WINDOWS SNDBUF_FACTOR
#endif

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Written by the loader; src/kernel/load.rs has the same layout. */
struct settings {
	/* Which congestion avoidance follows: 0 CUBIC, 1 Reno. */
	u32 continues_with_reno;
	u32 unused;
	struct SCHEME(config) config;
};

const volatile struct settings settings SEC(".rodata.settings");

#define continues_with_reno settings.continues_with_reno

#ifdef EXCHANGE
#include EXCHANGE
#else
#define APPROVED_RATE(sk) ((void)(sk), 0)
#endif

static __always_inline void end_startup(struct sock *sk, struct connection *it, enum reason reason)
{
	struct counts *counted = counts_of_cpu();

	it->phase = OVER;
	if (reason != EXIT_LAUNCH)
		stop_pacing(sk, it);
	if (counted && reason < REASONS)
		counted->exits[reason]++;
	tell(sk, EVENT_EXIT, reason);
}

/* Does what a scheme has decided. */
static __always_inline void obey(struct sock *sk, struct connection *it, const struct step *step)
{
	struct tcp_sock *tp = tcp_sk(sk);

	set_window(tp, it, step->cwnd);
	if (step->reason == GOES_ON)
		return;
	set_ssthresh(tp, step->ssthresh);
	end_startup(sk, it, step->reason);
}

static __always_inline void sense(struct sock *sk, struct connection *it, struct path *path)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct hint *hint = hint_for(sk);

	path->handshake_rtt = tp->srtt_us >> 3;
	path->min_rtt = path->handshake_rtt;
	path->bytes_waiting = tp->write_seq - it->first;
	path->receive_window = tp->snd_wnd;
	path->approved_rate = APPROVED_RATE(sk);
	path->hint_rate = 0;
	path->saved_rtt = 0;
	path->saved_age = 0;
	path->segment = tp->mss_cache;
	path->initial_window = (u64)tp->snd_cwnd * tp->mss_cache;
	if (hint) {
		path->hint_rate = hint->rate;
		path->saved_rtt = hint->rtt;
		path->saved_age = (bpf_ktime_get_ns() - hint->given) / 1000;
		if (hint->rtt && (hint->rtt < path->min_rtt || !path->min_rtt))
			path->min_rtt = hint->rtt;
	}
}

/* The scheme lacks its input: all is left to the kernel. */
static __always_inline void fall_back(struct sock *sk, struct connection *it)
{
	struct counts *counted = counts_of_cpu();

	it->phase = OVER;
	if (counted)
		counted->fell_back++;
	tell(sk, EVENT_FALLBACK, GOES_ON);
}

/* Whether the path has shown losses already: the handshake's, or those of data too little for a launch. */
static __always_inline bool is_in_trouble(struct tcp_sock *tp, struct connection *it)
{
	/* After two lost SYNs the kernel begins with one packet. */
	if (tp->bytes_retrans || tp->lost_out || tp->snd_cwnd < it->initial || tp->snd_cwnd < 2)
		return true;
	/* Before data was sent a route may have set it. */
	return tp->data_segs_out && tp->snd_ssthresh != TCP_INFINITE_SSTHRESH;
}

static __always_inline void launch(struct sock *sk, struct connection *it)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct counts *counted = counts_of_cpu();
	struct SCHEME(config) parameters = settings.config;
	struct path path;
	struct launch launched;

	if (!tp->data_segs_out)
		it->first = tp->snd_nxt;
	if (is_in_trouble(tp, it)) {
		fall_back(sk, it);
		return;
	}
	sense(sk, it, &path);
	launched = SCHEME(launch)(&it->scheme, &parameters, &path, it->first);
	if (!launched.launched) {
		if (SCHEME(may_launch_later)(&parameters, &path))
			return;
		/* Its initial window is a parameter, whatever is known. */
		set_window(tp, it, launched.cwnd);
		fall_back(sk, it);
		return;
	}
	it->phase = STARTING;
	it->paced = launched.paced;
	it->retransmitted = tp->bytes_retrans;
	it->una = tp->snd_una;
	it->launched = launched.cwnd;
	set_window(tp, it, launched.cwnd);
	set_ssthresh(tp, launched.ssthresh);
	/* The host's rule for congestion avoidance; the kernel itself follows it with the first acknowledgement. */
	if (!launched.pacing_rate)
		launched.pacing_rate = rate_over(launched.cwnd * PACING_CA_PERCENT / 100, path.handshake_rtt);
	pace(sk, it, launched.paced, launched.pacing_rate);
	if (counted)
		counted->launched++;
	tell(sk, EVENT_LAUNCH, GOES_ON);
	if (launched.ssthresh != UNLIMITED)
		end_startup(sk, it, EXIT_LAUNCH);
}

/*
 * Tells the scheme what had to be sent again since the last call. The kernel does not say which data it was; the oldest
 * that was missing when it left stands for it.
 */
static __always_inline void count_retransmissions(struct tcp_sock *tp, struct connection *it)
{
	u64 again = tp->bytes_retrans - it->retransmitted;

	if (again) {
		SCHEME(on_retransmission)(&it->scheme, it->una, again);
		it->retransmitted = tp->bytes_retrans;
		it->repairs += again;
	}
}

/*
 * What was delivered of data that left once. A cumulative acknowledgement also covers what was repaired, which says
 * nothing of what the path carried; the kernel does not say which it was, so what arrives next stands for it.
 */
static __always_inline u64 delivered_at_once(struct connection *it, u64 bytes)
{
	u64 repaired = smaller(it->repairs, bytes);

	it->repairs -= repaired;
	return bytes - repaired;
}

/* Tells the scheme what has left and what had to be sent again. */
static __always_inline void catch_up(struct tcp_sock *tp, struct connection *it)
{
	SCHEME(on_sent)(&it->scheme, tp->snd_nxt, bytes_in_flight(tp));
	count_retransmissions(tp, it);
}

/* Whether the launched window has not yet left. */
static __always_inline bool is_leaving(struct tcp_sock *tp, struct connection *it)
{
	return tp->snd_nxt - it->first < it->launched;
}

SEC("struct_ops")
void BPF_PROG(startup_init, struct sock *sk)
{
	struct counts *counted = counts_of_cpu();
	struct connection *it;

	if (!continues_with_reno)
		cubictcp_init(sk);
	it = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (counted)
		counted->started++;
	if (!it)
		return;
	__builtin_memset(it, 0, sizeof(*it));
	it->initial = tcp_sk(sk)->snd_cwnd;
	it->measures = someone_learns();
	/* In the middle of a connection there is nothing to start. */
	if (tcp_sk(sk)->data_segs_out)
		it->phase = OVER;
}

SEC("struct_ops")
void BPF_PROG(startup_release, struct sock *sk)
{
	struct counts *counted = counts_of_cpu();

	if (counted)
		counted->ended++;
	measure(sk);
}

SEC("struct_ops")
u32 BPF_PROG(startup_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it;

	/* Startup is over, and nothing is paced: most calls of a long transfer. While it lasts ssthresh is infinite. */
	if (tp->data_segs_out && tp->snd_ssthresh != TCP_INFINITE_SSTHRESH && sk->sk_pacing_status == SK_PACING_NONE)
		return MIN_TSO_SEGMENTS;
	it = connection_of(sk);
	if (!it)
		return MIN_TSO_SEGMENTS;
	if (it->phase == WAITING) {
		if (tp->write_seq != tp->snd_nxt)
			launch(sk, it);
	} else if (it->phase == STARTING) {
		u64 cwnd, before = window_of(tp, it);

		catch_up(tp, it);
		cwnd = SCHEME(on_time)(&it->scheme, bpf_ktime_get_ns(), before);
		if (cwnd != before)
			set_window(tp, it, cwnd);
		if (!it->acknowledged) {
			struct SCHEME(config) parameters = settings.config;
			struct path path;

			sense(sk, it, &path);
			if (SCHEME(waiting)(&it->scheme, &parameters, &path)) {
				it->launched = SCHEME(launched)(&it->scheme);
				set_window(tp, it, it->launched);
			}
		}
	}
	if (it->paced || it->phase == STARTING) {
		u64 rate = SCHEME(pacing_rate)(&it->scheme);
		u64 wakeup = SCHEME(next_wakeup)(&it->scheme);
		bool goes_on = is_leaving(tp, it);

		if (wakeup != UNLIMITED)
			rate = rate_until(tp, it, bpf_ktime_get_ns(), wakeup);
		if (it->phase == OVER) {
			/* The launch ended startup, and its rate ends with the first acknowledgement. */
			if (is_before(it->first, tp->snd_una))
				rate = 0;
		} else if (rate) {
			/* A scheme may launch after the initial window. */
			it->paced = true;
			goes_on = true;
		}
		pace(sk, it, goes_on, rate);
	}
	return MIN_TSO_SEGMENTS;
}

SEC("struct_ops")
u32 BPF_PROG(startup_sndbuf_expand, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it;
	u64 wanted, most, payload, segments = larger(tp->snd_cwnd, 10);

	/* The kernel's own factor; most calls come later. While startup lasts ssthresh is infinite. */
	if (tp->data_segs_out || !tp->mss_cache)
		return tp->snd_ssthresh == TCP_INFINITE_SSTHRESH ? SEND_BUFFER_WINDOWS : SNDBUF_FACTOR;
	it = connection_of(sk);
	if (!it || it->phase != WAITING)
		return SNDBUF_FACTOR;
	/* Room for twice the window that a launch may take, so that all of it can wait; the kernel limits it. */
	{
		struct SCHEME(config) parameters = settings.config;
		struct path path;

		it->first = tp->snd_nxt;
		sense(sk, it, &path);
		wanted = SCHEME(send_buffer)(&parameters, &path);
	}
	wanted = in_segments(smaller(wanted, 1ULL << 32), tp->mss_cache);
	/*
	 * The kernel multiplies this with the segments and what it takes for each, in 31 bits: the payload, headers and
	 * its own structures, rounded up to a power of two. It counts the peer's segments where they are larger.
	 */
	payload = larger(tp->mss_cache, tp->rx_opt.mss_clamp);
	most = 0x7fffffff / (segments * (2 * (payload + 1024) + 1024));
	return larger(smaller(2 * wanted / segments + 1, most), SNDBUF_FACTOR);
}

SEC("struct_ops")
u32 BPF_PROG(startup_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it = connection_of(sk);
	u32 reduced = continues_with_reno ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
	struct loss loss;
	struct step step;

	if (!it)
		return reduced;
	stop_pacing(sk, it);
	if (it->phase == WAITING)
		fall_back(sk, it);
	if (it->phase != STARTING)
		return reduced;
	catch_up(tp, it);
	/* What is lost first is the oldest data. */
	loss.bytes = (u64)tp->lost_out * tp->mss_cache;
	/* Packets may be lost that are not yet known, or a queue of this host was full. */
	if (!loss.bytes && !(BPF_CORE_READ_BITFIELD(tp, ecn_flags) & ECN_NEGOTIATED))
		loss.bytes = tp->mss_cache;
	loss.position = tp->snd_una + (u32)loss.bytes;
	loss.in_launch = SCHEME(has_in_launch)(&it->scheme, tp->snd_una);
	step = SCHEME(on_congestion)(&it->scheme, &loss, (u64)reduced * tp->mss_cache);
	if (step.reason != GOES_ON) {
		/* The state that the kernel enters next tells a timeout from other losses. */
		it->phase = OVER;
		it->ends = step.reason;
		return reduced;
	}
	it->phase = RECOVERING;
	/* What was sent again before, as a probe, is no part of this recovery. */
	it->repairs = 0;
	return in_segments(step.cwnd, tp->mss_cache);
}

SEC("struct_ops")
void BPF_PROG(startup_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it = connection_of(sk);

	if (it && it->phase == STARTING) {
		struct SCHEME(config) parameters = settings.config;
		struct ack seen = {
			.now = bpf_ktime_get_ns(),
			.bytes = (u64)acked * tp->mss_cache,
			.rtt = it->rtt,
			.latest_rtt = it->latest_rtt,
			.in_flight = bytes_in_flight(tp),
			.position = tp->snd_una,
			.highest_sent = tp->snd_nxt,
			.segment = tp->mss_cache,
			.in_use = is_cwnd_limited(tp),
		};
		struct step step;
		u64 cwnd;

		catch_up(tp, it);
		it->acknowledged = true;
		it->rtt = 0;
		cwnd = SCHEME(on_time)(&it->scheme, seen.now, window_of(tp, it));
		step = SCHEME(on_ack)(&it->scheme, &parameters, &seen, cwnd);
		obey(sk, it, &step);
		return;
	}
	/* What was sent was too little for a launch, and it has arrived: the connection has started. */
	if (it && it->phase == WAITING)
		fall_back(sk, it);
	if (continues_with_reno)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(startup_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it = connection_of(sk);
	u32 ssthresh = tp->snd_ssthresh;

	if (it && it->measures)
		take_rate(tp, it);
	if (it && (it->phase == STARTING || it->phase == RECOVERING)) {
		if (sample->rtt_us > 0)
			it->rtt = it->latest_rtt = sample->rtt_us;
		/* What was sent again left before this acknowledgement came. */
		count_retransmissions(tp, it);
		it->una = tp->snd_una;
		if (it->phase == RECOVERING)
			SCHEME(on_ack_in_recovery)(&it->scheme, delivered_at_once(it, (u64)sample->pkts_acked * tp->mss_cache));
		if (continues_with_reno)
			return;
		/* CUBIC wants to know the RTT. Its HyStart only looks at flows below ssthresh. */
		tp->snd_ssthresh = 0;
		cubictcp_acked(sk, sample);
		tp->snd_ssthresh = ssthresh;
		return;
	}
	if (!continues_with_reno)
		cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(startup_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *it;

	if (!continues_with_reno)
		cubictcp_cwnd_event(sk, event);
	if (event != CA_EVENT_COMPLETE_CWR && event != CA_EVENT_LOSS && event != CA_EVENT_CWND_RESTART)
		return;
	it = connection_of(sk);
	if (!it)
		return;
	stop_pacing(sk, it);
	/* A first answer that is long in coming has met no idle path. */
	if (it->phase == WAITING && tp->data_segs_out)
		fall_back(sk, it);
	if (it->phase != STARTING && it->phase != RECOVERING)
		return;
	if (event == CA_EVENT_LOSS) {
		end_startup(sk, it, EXIT_TIMEOUT);
	} else if (event == CA_EVENT_CWND_RESTART) {
		end_startup(sk, it, EXIT_IDLE);
	} else if (it->phase == RECOVERING) {
		struct step step;

		catch_up(tp, it);
		step = SCHEME(on_recovered)(&it->scheme, window_of(tp, it));
		if (step.reason == GOES_ON) {
			it->phase = STARTING;
			set_ssthresh(tp, UNLIMITED);
		}
		obey(sk, it, &step);
	}
}

SEC("struct_ops")
void BPF_PROG(startup_set_state, struct sock *sk, u8 new_state)
{
	struct connection *it;

	if (!continues_with_reno)
		cubictcp_state(sk, new_state);
	if (new_state < TCP_CA_CWR)
		return;
	it = connection_of(sk);
	if (!it || !it->ends)
		return;
	if (new_state == TCP_CA_Loss)
		it->ends = EXIT_TIMEOUT;
	else if (new_state == TCP_CA_Recovery)
		it->ends = EXIT_LOSS;
	end_startup(sk, it, it->ends);
	it->ends = GOES_ON;
}

SEC("struct_ops")
u32 BPF_PROG(startup_undo_cwnd, struct sock *sk)
{
	struct connection *it = connection_of(sk);

	/* The losses were none, and startup goes on. */
	if (it && it->phase == RECOVERING) {
		it->phase = STARTING;
		SCHEME(on_undo)(&it->scheme);
	}
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops startup = {
	.init = (void *)startup_init,
	.release = (void *)startup_release,
	.min_tso_segs = (void *)startup_min_tso_segs,
	.sndbuf_expand = (void *)startup_sndbuf_expand,
	.ssthresh = (void *)startup_ssthresh,
	.cong_avoid = (void *)startup_cong_avoid,
	.pkts_acked = (void *)startup_pkts_acked,
	.cwnd_event = (void *)startup_cwnd_event,
	.set_state = (void *)startup_set_state,
	.undo_cwnd = (void *)startup_undo_cwnd,
	.name = KERNEL_NAME,
};
