/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Jump-Start as a congestion control of the kernel: jump_start.h has the scheme, startup.bpf.h all else. */
#include "jump_start.h"

#define STATE struct jump_start
#define SCHEME(name) jump_start_##name
#define KERNEL_NAME "fs_jump_start"

#include "startup.bpf.h"
