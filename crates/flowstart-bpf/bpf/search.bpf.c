/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* SEARCH as a congestion control of the kernel: search.h has the scheme, startup.bpf.h all else. */
#include "search.h"

#define STATE struct search
#define SCHEME(name) search_##name
#define KERNEL_NAME "fs_search"

#include "startup.bpf.h"
