/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs the router of bpf/quick_start_target.h in user space: packets come from stdin, a line each with time, random
 * number and frame, and leave to stdout, with whether they left.
 */
#include <stdio.h>
#include <string.h>

#include "quick_start_target.h"

static struct target target;
static struct target_config config;

static size_t read_bytes(const char *text, u8 *bytes, size_t most)
{
	size_t length = 0;
	unsigned byte;

	for (; length < most && sscanf(text, "%2x", &byte) == 1; text += 2)
		bytes[length++] = byte;
	return length;
}

int main(int count, char **arguments)
{
	static char line[8192], text[8192];
	static u8 bytes[4096];
	u64 now;
	u32 random;

	if (count != 2 || read_bytes(arguments[1], (u8 *)&config, sizeof(config)) != sizeof(config))
		return 1;
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%llu %u %s", &now, &random, text) == 3) {
		size_t length = read_bytes(text, bytes, sizeof(bytes));
		struct frame frame = { 0 };
		bool leaves = true;

		read_frame(bytes, bytes + length, &frame);
		if (frame.content != UNKNOWN)
			leaves = decide(&target, &config, &frame, now, random);
		if (leaves)
			write_frame(bytes, bytes + length, &frame);
		printf("%d ", leaves);
		for (size_t at = 0; at < length; at++)
			printf("%02x", bytes[at]);
		printf("\n");
	}
	return 0;
}
