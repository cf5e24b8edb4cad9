/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The Quick-Start router of quick_start_target.h as XDP programs: frames pass to whatever forwards them, and count as
 * leaving by the link when they come. One lock holds the state together, whichever processors frames come to.
 */
#include "kernel.h"

#define LOOP(times, step, context) bpf_loop(times, step, context, 0)
#include "quick_start_target.h"

/* The least that a frame has whose begin is written anew. */
#define RESTORED 48

enum xdp_action {
	XDP_DROP = 1,
	XDP_PASS = 2,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
};

struct bpf_spin_lock {
	__u32 val;
};

struct shared {
	struct target target;
	struct bpf_spin_lock lock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shared);
} router SEC(".maps");

/* What a trial is told: the time and the random number of a packet, or with what frame and time each run begins. */
struct trial {
	u64 now;
	u64 step;
	u32 random;
	u32 reserved;
	u8 frame[RESTORED];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trial);
} trial SEC(".maps");

volatile const struct target_config config SEC(".rodata.config");

/* Routes at a time; a trial tells the random number, too. */
static __always_inline int route(struct xdp_md *context, u64 now, const struct trial *told)
{
	u8 *data = (u8 *)(long)context->data, *end = (u8 *)(long)context->data_end;
	u32 first = 0, random = 0;
	struct frame frame = {};
	struct shared *shared = bpf_map_lookup_elem(&router, &first);
	const struct target_config *settings = (const struct target_config *)&config;
	bool leaves;

	/* The compiler must not take the zeros of the object's file for what the loader writes. */
	asm volatile("" : "+r"(settings));

	if (!shared)
		return XDP_PASS;
	read_frame(data, end, &frame);
	if (frame.content == UNKNOWN)
		return XDP_PASS;
	if (frame.content == OPTION && frame.function == RATE_REQUEST)
		random = told ? told->random : bpf_get_prandom_u32();
	bpf_spin_lock(&shared->lock);
	leaves = decide(&shared->target, settings, &frame, now, random);
	bpf_spin_unlock(&shared->lock);
	if (!leaves)
		return XDP_DROP;
	write_frame(data, end, &frame);
	return XDP_PASS;
}

SEC("xdp")
int quick_start(struct xdp_md *context)
{
	return route(context, bpf_ktime_get_ns(), 0);
}

/* The same at a time that is told, with a random number that is told. */
SEC("xdp")
int quick_start_at(struct xdp_md *context)
{
	u32 first = 0;
	struct trial *told = bpf_map_lookup_elem(&trial, &first);

	return told ? route(context, told->now, told) : XDP_DROP;
}

/* Writes the begin of a frame anew: a run finds the one that the run before has changed. */
static __always_inline struct trial *restored(struct xdp_md *context)
{
	u8 *data = (u8 *)(long)context->data, *end = (u8 *)(long)context->data_end;
	u32 first = 0;
	struct trial *told = bpf_map_lookup_elem(&trial, &first);

	if (!told || data + RESTORED > end)
		return 0;
	__builtin_memcpy(data, told->frame, RESTORED);
	told->now += told->step;
	return told;
}

/* To be measured, and what to measure it against: all but the router. */
SEC("xdp")
int quick_start_again(struct xdp_md *context)
{
	struct trial *told = restored(context);

	return told ? route(context, bpf_ktime_get_ns() + told->now, 0) : XDP_DROP;
}

SEC("xdp")
int pass_again(struct xdp_md *context)
{
	return restored(context) ? XDP_PASS : XDP_DROP;
}

/* A program that does nothing. */
SEC("xdp")
int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
