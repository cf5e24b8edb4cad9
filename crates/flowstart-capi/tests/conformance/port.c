// The library for C as a port of every scheme that it has, and ports that are wrong in the way that the variable WRONG
// of the environment names.

#include "flowstart_conformance.h"

#include <flowstart.h>

static const char *wrong = "";
// Controllers that were made.
static int made_so_far;

static int is(const char *name) { return !strcmp(wrong, name); }

static void *create(const struct conformance_setup *setup) {
  char scheme[1200];
  flowstart_controller *made = NULL;
  flowstart_config config = {.size = sizeof config, .avoidance = setup->avoidance, .segment = setup->segment_bytes};
  snprintf(scheme, sizeof scheme, setup->parameters[0] ? "%s:%s" : "%s%s", setup->scheme, setup->parameters);
  config.scheme = is("is-slow-start") ? "slow-start" : scheme;
  config.initial_window = setup->initial_window_packets;
  if (is("has-nothing") || (is("gives-up") && made_so_far == 4) || flowstart_new(&config, &made)) return NULL;
  made_so_far++;
  return made;
}

static void destroy(void *port) { flowstart_free(port); }

static flowstart_path known_of(const struct conformance_known *known) {
  flowstart_path path = {.size = sizeof path};
  path.handshake_rtt = known->handshake_rtt_ns;
  path.advised_rate = is("ignores-advice") ? 0 : known->advised_bits_per_s;
  if (is("senses-nothing")) return path;
  path.saved_cwnd = known->saved_cwnd_bytes;
  path.saved_rtt = known->saved_rtt_ns;
  path.saved_age = known->saved_age_ns;
  path.receive_window = known->receive_window_bytes;
  path.bytes_waiting = known->bytes_waiting;
  path.hint_rate = known->hint_bits_per_s;
  path.requested_rate = known->requested_bits_per_s;
  path.interface_rate = known->interface_bits_per_s;
  path.approved_rate = known->approved_bits_per_s;
  path.oracle_rate = known->oracle_bits_per_s;
  path.train_rate = known->train_bits_per_s;
  return path;
}

static int launch(void *port, uint64_t now, const struct conformance_known *known) {
  const flowstart_path path = known_of(known);
  return flowstart_launch(port, now, &path);
}

static int change_path(void *port, uint64_t now, const struct conformance_known *known) {
  const flowstart_path path = known_of(known);
  return is("stays-on-its-path") ? 0 : flowstart_on_path_change(port, now, &path);
}

static int segment(void *port, uint64_t bytes) {
  return is("keeps-its-packets") ? 0 : flowstart_set_segment(port, bytes);
}

static int sent(void *port, uint64_t now, uint64_t number, uint64_t bytes, uint64_t in_flight) {
  return flowstart_on_sent(port, now, number, bytes, in_flight, 0);
}

static int lost(void *port, uint64_t number, uint64_t bytes) {
return is("forgets-losses") ? 0 : flowstart_on_packet_lost(port, number, bytes);
}

static int acked(void *port, const struct conformance_acked *event) {
  flowstart_ack ack = {.size = sizeof ack, .now = event->now_ns, .largest_acked = event->largest_acked};
  ack.delivered_bytes = event->delivered_bytes;
  ack.delivered_packets = event->delivered_packets;
  ack.in_flight = event->in_flight_bytes;
  ack.rtt = is("measures-nothing") ? 0 : event->rtt_ns;
  ack.ce_packets = is("ignores-marks") ? 0 : event->ce_packets;
  ack.app_limited = is("grows-unused") ? 0 : (uint32_t)event->app_limited;
  ack.persistent_congestion = (uint32_t)event->persistent_congestion;
  return flowstart_on_ack(port, &ack);
}

// A question passes the time.
static int timer(void *port, uint64_t now) {
  flowstart_output output = {.size = sizeof output};
  return flowstart_query(port, now, &output);
}

static int spurious(void *port, uint64_t now) {
  return is("never-undoes") ? 0 : flowstart_on_spurious_loss(port, now);
}

// The rate of a host whose scheme has none. Of the smallest windows the library says more than what it paces by.
static uint64_t hosts_rate(const flowstart_output *output) {
  double gain = output->cwnd < output->ssthresh && !output->in_recovery ? 2.0 : 1.25;
  return (uint64_t)((double)output->cwnd * gain * 8e9 / (double)output->smoothed_rtt);
}

static int decided(void *port, uint64_t now, struct conformance_decided *decided) {
  flowstart_output output = {.size = sizeof output};
  int status = flowstart_query(port, now, &output);
  decided->cwnd_bytes = output.cwnd;
  decided->ssthresh_bytes = output.ssthresh == UINT64_MAX ? 0 : output.ssthresh;
  decided->pacing_rate_bits_per_s = output.pacing_rate >= 1000000000000000 ? 0 : output.pacing_rate;
  decided->in_startup = output.phase == FLOWSTART_PHASE_STARTUP;
  memcpy(decided->exit_reason, output.exit_reason, sizeof decided->exit_reason);
  if (is("rounds") || is("rounds-but-promises")) {
    decided->cwnd_bytes -= decided->cwnd_bytes % 1000;
    decided->pacing_rate_bits_per_s -= decided->pacing_rate_bits_per_s / 100;
  }
  if (is("ignores-pacing")) decided->pacing_rate_bits_per_s = 0;
  if (is("paces-as-hosts-do") && decided->in_startup && output.smoothed_rtt && output.cwnd > 18000) {
    decided->pacing_rate_bits_per_s = hosts_rate(&output);
  }
  if (is("never-exits")) {
    decided->in_startup = 1;
    decided->ssthresh_bytes = 0;
    decided->exit_reason[0] = 0;
  }
  // What ends any startup it sees.
  if (is("sees-only-congestion") && strcmp(decided->exit_reason, "loss") && strcmp(decided->exit_reason, "ecn") &&
      strcmp(decided->exit_reason, "timeout")) {
    decided->exit_reason[0] = 0;
  }
  return status;
}

// Some numbers of the wrong ones may be near enough, so they promise nothing.
int main(int count, char **arguments) {
  const struct conformance_port right = {
      1, create, destroy, launch, sent, lost, acked, timer, spurious, NULL, segment, change_path, decided};
  struct conformance_port port = right;
  if (getenv("WRONG")) wrong = getenv("WRONG");
  port.exact = !wrong[0] || is("rounds-but-promises");
  return conformance_main(count, arguments, &port);
}
