/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Careful Resume as a congestion control of the kernel: careful_resume.h has the scheme, startup.bpf.h all else. */
#include "careful_resume.h"

#define STATE struct careful_resume
#define SCHEME(name) careful_resume_##name
#define KERNEL_NAME "fs_careful"

#include "startup.bpf.h"
