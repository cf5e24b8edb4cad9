/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Initial-Start as a congestion control of the kernel: initial_start.h has the scheme, startup.bpf.h all else. */
#include "initial_start.h"

#define STATE struct initial_start
#define SCHEME(name) initial_start_##name
#define KERNEL_NAME "fs_initialstart"

#include "startup.bpf.h"
