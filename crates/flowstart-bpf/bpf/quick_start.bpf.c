/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Quick-Start as a congestion control of the kernel: quick_start.h has the scheme, quick_start_exchange.bpf.h how hosts
 * ask and answer, startup.bpf.h all else.
 */
#include "quick_start.h"

#define STATE struct quick_start
#define SCHEME(name) quick_start_##name
#define KERNEL_NAME "fs_quick_start"
#define EXCHANGE "quick_start_exchange.bpf.h"

#include "startup.bpf.h"
