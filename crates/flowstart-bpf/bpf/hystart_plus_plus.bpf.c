/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* HyStart++ as a congestion control of the kernel: hystart_plus_plus.h has the scheme, startup.bpf.h all else. */
#include "hystart_plus_plus.h"

#define STATE struct hystart_plus_plus
#define SCHEME(name) hystart_plus_plus_##name
#define KERNEL_NAME "fs_hystartpp"

#include "startup.bpf.h"
