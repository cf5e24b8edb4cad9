/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs a scheme of bpf/ in user space: events come from stdin, a line each, and decisions go to stdout. The
 * compiler's options include the scheme's header and define NAME.
 */
#include <stdio.h>
#include <string.h>

#define JOINED(one, other) one##other
#define JOIN(one, other) JOINED(one, other)
#define SCHEME(part) JOIN(NAME, JOIN(_, part))

static struct NAME scheme;
static struct SCHEME(config) config;
static u64 cwnd, before_loss;

static void decided(struct step step)
{
	cwnd = step.cwnd;
	printf("%llu %llu %u %llu %llu\n", step.cwnd, step.ssthresh, (unsigned)step.reason,
	       (u64)SCHEME(pacing_rate)(&scheme), (u64)SCHEME(next_wakeup)(&scheme));
}

/* What is known of a path behind `event`; whether the line is one of it. */
static int reads_path(const char *line, const char *event, struct path *path, unsigned *position)
{
	size_t length = strlen(event);

	return !strncmp(line, event, length) &&
	       sscanf(line + length, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %u", &path->handshake_rtt,
		      &path->min_rtt, &path->bytes_waiting, &path->receive_window, &path->hint_rate, &path->saved_rtt,
		      &path->saved_age, &path->approved_rate, &path->segment, &path->initial_window, position) == 11;
}

static int configure(const char *text)
{
	unsigned char bytes[sizeof(config) + 1];
	size_t length = 0;
	unsigned byte;

	for (; sscanf(text, "%2x", &byte) == 1 && length < sizeof(bytes); text += 2)
		bytes[length++] = byte;
	if (length != sizeof(config)) {
		fprintf(stderr, "the parameters have %zu bytes, %zu are expected\n", length, sizeof(config));
		return 1;
	}
	memcpy(&config, bytes, sizeof(config));
	return 0;
}

int main(int count, char **arguments)
{
	char line[1024];

	if (count != 2 || configure(arguments[1]))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		struct path path;
		struct ack ack;
		u64 bytes;
		unsigned position, in_use, missing;
		struct loss loss;

		if (reads_path(line, "launch ", &path, &position)) {
			struct launch launch = SCHEME(launch)(&scheme, &config, &path, position);
			u64 room = SCHEME(send_buffer)(&config, &path);

			cwnd = launch.cwnd;
			printf("%llu %llu %d %llu %llu\n", launch.cwnd, launch.ssthresh, launch.launched,
			       launch.pacing_rate, (u64)SCHEME(next_wakeup)(&scheme));
			if (launch.launched && room < launch.cwnd) {
				fprintf(stderr, "room for %llu of %llu bytes\n", room, launch.cwnd);
				return 1;
			}
			if (!launch.launched && !SCHEME(may_launch_later)(&config, &path))
				return 0;
		} else if (reads_path(line, "more ", &path, &position)) {
			if (SCHEME(waiting)(&scheme, &config, &path))
				cwnd = SCHEME(launched)(&scheme);
			decided(goes_on(cwnd));
		} else if (sscanf(line, "sent %u %llu", &position, &bytes) == 2) {
			SCHEME(on_sent)(&scheme, position, bytes);
		} else if (sscanf(line, "ack %llu %llu %llu %llu %llu %u %u %llu %u", &ack.now, &ack.bytes, &ack.rtt,
				  &ack.latest_rtt, &ack.in_flight, &ack.position, &ack.highest_sent, &ack.segment,
				  &in_use) == 9) {
			ack.in_use = in_use;
			decided(SCHEME(on_ack)(&scheme, &config, &ack, cwnd));
		} else if (sscanf(line, "again %u %llu", &position, &bytes) == 2) {
			SCHEME(on_retransmission)(&scheme, position, bytes);
		} else if (sscanf(line, "congestion %llu %u %u %llu", &loss.bytes, &loss.position, &missing,
				  &bytes) == 4) {
			loss.in_launch = SCHEME(has_in_launch)(&scheme, missing);
			before_loss = cwnd;
			decided(SCHEME(on_congestion)(&scheme, &loss, bytes));
		} else if (sscanf(line, "time %llu", &bytes) == 1) {
			decided(goes_on(SCHEME(on_time)(&scheme, bytes, cwnd)));
		} else if (sscanf(line, "repair %llu", &bytes) == 1) {
			SCHEME(on_ack_in_recovery)(&scheme, bytes);
		} else if (!strcmp(line, "undo\n")) {
			SCHEME(on_undo)(&scheme);
			/* As the kernel does. */
			cwnd = before_loss;
		} else if (!strcmp(line, "recovered\n")) {
			decided(SCHEME(on_recovered)(&scheme, cwnd));
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 1;
		}
	}
	return 0;
}
