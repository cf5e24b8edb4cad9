/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Integers and fixed point, for the kernel's BPF and for user space alike. A kernel program has no floating point and
 * no 128-bit products, so factors are fractions with a power of two below.
 */
#ifndef FLOWSTART_NUMBERS_H
#define FLOWSTART_NUMBERS_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define bool _Bool
#define true 1
#define false 0

/* No limit: for ssthresh, thresholds, and RTTs that are not known yet. */
#define UNLIMITED (~0ULL)
#define MICROSECONDS 1000000ULL

/*
 * A factor: mantissa / 2^shift. The loader writes mantissas of at most 22 bits, so a rate of up to 10,000 Gbit/s
 * times a mantissa stays within 64 bits.
 */
struct factor {
	u32 mantissa;
	u32 shift;
};

static __always_inline u64 scaled(u64 value, struct factor by)
{
	return (value * by.mantissa) >> (by.shift & 63);
}

static __always_inline u64 smaller(u64 one, u64 other)
{
	return one < other ? one : other;
}

static __always_inline u64 larger(u64 one, u64 other)
{
	return one > other ? one : other;
}

/* What products with factors and times stay within 64 bits for: a terabyte, and 10,000 Gbit/s. */
#define LARGEST_WINDOW (1ULL << 40)
#define FASTEST_RATE 1250000000000ULL

/* Longer than RTTs are; with it a rate of 10,000 Gbit/s times a time stays within 64 bits. */
#define LONGEST_TIME (10 * MICROSECONDS)

/* Bytes that a rate in bytes per second carries in microseconds. */
static __always_inline u64 amount_in(u64 rate, u64 time)
{
	return rate * smaller(time, LONGEST_TIME) / MICROSECONDS;
}

/* The rate in bytes per second that carries the bytes in microseconds; 0, which is none, without a time. */
static __always_inline u64 rate_over(u64 bytes, u64 time)
{
	return time ? bytes * MICROSECONDS / time : 0;
}

/* Positions in a connection's bytes are TCP's sequence numbers and begin again after 2^32. */
static __always_inline bool is_before(u32 one, u32 other)
{
	return (s32)(one - other) < 0;
}

#endif
