/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs quick_start_option.h in user space: a line of stdin each, and a line of stdout.
 */
#include <stdio.h>

#include "quick_start_option.h"

static void show(const u8 bytes[QUICK_START_LENGTH])
{
	for (int at = 0; at < QUICK_START_LENGTH; at++)
		printf("%02x", bytes[at]);
	printf("\n");
}

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		u8 bytes[QUICK_START_LENGTH] = { 0 };
		unsigned rate, ttl, nonce, asked_rate, ttl_diff, asked_nonce, compared, part[QUICK_START_LENGTH];
		struct quick_start_option option;

		if (sscanf(line, "ask %u %u %u", &rate, &ttl, &nonce) == 3) {
			option = (struct quick_start_option){ .nonce = nonce, .rate = rate, .ttl = ttl };
			quick_start_write(bytes, QUICK_START_IPV4_OPTION, &option);
			show(bytes);
		} else if (sscanf(line, "respond %2x%2x%2x%2x%2x%2x%2x%2x %u", part, part + 1, part + 2, part + 3, part + 4,
				  part + 5, part + 6, part + 7, &ttl) == 9) {
			for (int at = 0; at < QUICK_START_LENGTH; at++)
				bytes[at] = part[at];
			if (!quick_start_read(bytes, QUICK_START_IPV4_OPTION, &option))
				return 1;
			option = quick_start_respond(&option, ttl);
			quick_start_write(bytes, QUICK_START_TCP_OPTION, &option);
			show(bytes);
		} else if (sscanf(line, "verify %u %u %u %u %2x%2x%2x%2x%2x%2x%2x%2x", &asked_rate, &ttl_diff, &asked_nonce,
				  &compared, part, part + 1, part + 2, part + 3, part + 4, part + 5, part + 6,
				  part + 7) == 12) {
			struct quick_start_request asked = {
				.nonce = asked_nonce, .rate = asked_rate, .ttl_diff = ttl_diff,
			};

			for (int at = 0; at < QUICK_START_LENGTH; at++)
				bytes[at] = part[at];
			if (!quick_start_read(bytes, QUICK_START_TCP_OPTION, &option))
				return 1;
			printf("%u %llu\n", (unsigned)quick_start_verify(&asked, &option, compared),
			       quick_start_rate(option.rate));
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 1;
		}
	}
	return 0;
}
