/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Blitzstart as a congestion control of the kernel: blitzstart.h has the scheme, startup.bpf.h all else. */
#include "blitzstart.h"

#define STATE struct blitzstart
#define SCHEME(name) blitzstart_##name
#define KERNEL_NAME "fs_blitzstart"

#include "startup.bpf.h"
