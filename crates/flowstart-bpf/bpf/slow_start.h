/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The parts of schemes that do not differ from slow start: until a loss or a mark each acknowledgement adds what it
 * delivers.
 */
#ifndef FLOWSTART_SLOW_START_H
#define FLOWSTART_SLOW_START_H

#include "startup.h"

static __always_inline struct step slow_start_on_ack(const struct ack *ack, u64 cwnd)
{
	return goes_on(slow_start_growth(cwnd, ack));
}

static __always_inline struct step slow_start_on_congestion(const struct loss *loss, u64 reduced)
{
	return exits(reduced, loss->bytes ? EXIT_LOSS : EXIT_ECN);
}

#endif
