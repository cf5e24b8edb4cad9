/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* SUSS as a congestion control of the kernel: suss.h has the scheme, startup.bpf.h all else. */
#include "suss.h"

/* A red part must wait behind what is in flight: a round grows 4x. */
#define SEND_BUFFER_WINDOWS SUSS_GROWTH
#define STATE struct suss
#define SCHEME(name) suss_##name
#define KERNEL_NAME "fs_suss"

#include "startup.bpf.h"
