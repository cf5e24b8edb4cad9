/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* More-Start as a congestion control of the kernel: more_start.h has the scheme, startup.bpf.h all else. */
#include "more_start.h"

#define STATE struct more_start
#define SCHEME(name) more_start_##name
#define KERNEL_NAME "fs_more_start"

#include "startup.bpf.h"
