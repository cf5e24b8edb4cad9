// flowstart_conformance.h: runs the event vectors of flowstart against a port of a startup scheme. C99, nothing else.
//
// Fill a `conformance_port` and call `conformance_run()` for each file in vectors/. All functions of a port but
// `destroy` return 0, or another number if they fail. A port translates the events into its own terms:
//
// - `launch` comes first: the handshake is over. `sent` comes for each packet, `lost` for each packet that is declared
//   lost, and then `acked`, once for all that one acknowledgement, or one timer, has revealed. Losses count before
//   marks, and marks before delivered data.
// - Numbers of packets count from 0. In TCP a packet is a full segment.
// - A packet that leaves with nothing else in flight ends idle time: the scheme may launch again, without knowledge.
// - A step that the scheme has timed happens before the first event at or after its time, or behind an event that makes
//   it due at once; `timer` only passes time.
// - After each event `decided` says what the port has.
//
// What a port with whole numbers differs by is allowed: a packet in windows, and some thousandths in rates, as the
// first line of each file says. `exact` allows nothing. The end of startup and its reason are always compared exactly.

#ifndef FLOWSTART_CONFORMANCE_H
#define FLOWSTART_CONFORMANCE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a port is made for.
struct conformance_setup {
  // Name of the scheme, such as "blitzstart".
  char scheme[64];
  // Its parameters, "key=value" with commas between them; all of them.
  char parameters[1024];
  // The congestion avoidance after startup.
  char avoidance[64];
  uint64_t segment_bytes;
  uint64_t initial_window_packets;
};

// What is known of the path; 0: unknown.
struct conformance_known {
  uint64_t handshake_rtt_ns;
  uint64_t saved_cwnd_bytes;
  uint64_t saved_rtt_ns;
  uint64_t saved_age_ns;
  uint64_t receive_window_bytes;
  uint64_t bytes_waiting;
  uint64_t hint_bits_per_s;
  uint64_t requested_bits_per_s;
  uint64_t interface_bits_per_s;
  uint64_t approved_bits_per_s;
  uint64_t oracle_bits_per_s;
  // At which the client saw the server's part of the handshake arrive.
  uint64_t train_bits_per_s;
  // A cap on what is launched.
  uint64_t advised_bits_per_s;
  // This connection's share of the windows of others to the same peer (RFC 9040), of their thresholds (0: none has left
  // slow start), and their smallest RTT.
  uint64_t shared_cwnd_bytes;
  uint64_t shared_ssthresh_bytes;
  uint64_t shared_rtt_ns;
};

// An acknowledgement, or a timer that has found losses: then nothing is delivered.
struct conformance_acked {
  uint64_t now_ns;
  // Counts only with delivered_bytes or ce_packets.
  uint64_t largest_acked;
  uint64_t delivered_bytes;
  uint64_t delivered_packets;
  // After it, and after the losses before it.
  uint64_t in_flight_bytes;
  // 0: no sample.
  uint64_t rtt_ns;
  uint64_t ce_packets;
  // 1: nothing waited, and the newest of these packets did not fill the window.
  uint64_t app_limited;
  // 1: the losses before it establish persistent congestion (RFC 9002, section 7.6).
  uint64_t persistent_congestion;
};

// What a port has decided.
struct conformance_decided {
  uint64_t cwnd_bytes;
  // 0: there was no reduction.
  uint64_t ssthresh_bytes;
  // 0: as the window allows.
  uint64_t pacing_rate_bits_per_s;
  // 1: the scheme moves the window.
  uint64_t in_startup;
  // Why startup ended, such as "loss"; empty: it has not.
  char exit_reason[32];
};

// A port.
struct conformance_port {
  // 1: compare every number exactly.
  int exact;
  // A controller of this scheme; NULL: the port has no such scheme, and the file is left out. That counts at the first
  // vector of a file; later NULL is a failure.
  void *(*create)(const struct conformance_setup *setup);
  void (*destroy)(void *port);
  int (*launch)(void *port, uint64_t now_ns, const struct conformance_known *known);
  int (*sent)(void *port, uint64_t now_ns, uint64_t packet_number, uint64_t bytes, uint64_t in_flight_bytes);
  int (*lost)(void *port, uint64_t packet_number, uint64_t bytes);
  int (*acked)(void *port, const struct conformance_acked *acked);
  int (*timer)(void *port, uint64_t now_ns);
  // All packets behind the last reduction were delivered after all.
  int (*spurious)(void *port, uint64_t now_ns);
  // A retransmission timeout (RFC 6298). NULL: vectors that need it are left out.
  int (*timeout)(void *port, uint64_t now_ns, uint64_t in_flight_bytes);
  // Full packets have another size from now on (path MTU discovery); nothing is in flight. The window has at least two
  // of them at once, and the rate follows with the next event. NULL: as for `timeout`.
  int (*segment)(void *port, uint64_t segment_bytes);
  // Packets take another path from now on, and the scheme launches anew, with what is known of the new path; nothing is
  // in flight. NULL: as for `timeout`.
  int (*path)(void *port, uint64_t now_ns, const struct conformance_known *known);
  int (*decided)(void *port, uint64_t now_ns, struct conformance_decided *decided);
};

// What became of a file.
enum conformance_result {
  // Everything that was compared agrees.
  CONFORMANCE_PASSED = 0,
  // The port decides otherwise, or one of its functions has failed.
  CONFORMANCE_DIFFERS = 1,
  // The file cannot be read, is none of this format, or is not whole.
  CONFORMANCE_UNUSABLE = 2,
  // The port has no such scheme.
  CONFORMANCE_LEFT_OUT = 3
};

#define CONFORMANCE_LONGEST_LINE 4096
#define CONFORMANCE_FORMAT 2
// In one line.
#define CONFORMANCE_MOST_PACKETS 100000

// The value behind a name; NULL: there is none. Names do not occur within values.
static const char *conformance_find(const char *line, const char *name) {
  char quoted[72];
  const char *found;
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  found = strstr(line, quoted);
  return found ? found + strlen(quoted) : NULL;
}

// A whole number. Returns whether there is one.
static int conformance_number(const char *line, const char *name, uint64_t *number) {
  const char *found = conformance_find(line, name);
  if (!found || *found < '0' || *found > '9') return 0;
  *number = strtoull(found, NULL, 10);
  return 1;
}

// A text of fewer bytes than `size`. Returns whether there is one.
static int conformance_text(const char *line, const char *name, char *text, size_t size) {
  const char *found = conformance_find(line, name), *end;
  if (!found || *found != '"') return 0;
  end = strchr(++found, '"');
  if (!end || (size_t)(end - found) >= size) return 0;
  memcpy(text, found, (size_t)(end - found));
  text[end - found] = 0;
  return 1;
}

// Whether two numbers are further apart than this.
static int conformance_apart(uint64_t expected, uint64_t got, uint64_t tolerance) {
  return (expected > got ? expected - got : got - expected) > tolerance;
}

// A file that is being run.
struct conformance_state {
  const struct conformance_port *port;
  const char *path;
  FILE *out;
  unsigned long line_number;
  uint64_t vector;
  char name[128];
  char event[16];
  uint64_t tolerance_bytes;
  uint64_t tolerance_rate;
  // The last time of an event.
  uint64_t now_ns;
  // The port of the vector; NULL: it is left out.
  void *instance;
};

static int conformance_unusable(struct conformance_state *state, const char *field, const char *allowed) {
  fprintf(state->out, "%s:%lu: %s: allowed is %s\n", state->path, state->line_number, field, allowed);
  return CONFORMANCE_UNUSABLE;
}

// An event for which the port has no function, in a vector that did not say that it needs one.
static int conformance_unneeded(struct conformance_state *state) {
  return conformance_unusable(state, state->event, "a vector that needs this event");
}

static void conformance_place(struct conformance_state *state) {
  fprintf(state->out, "%s:%lu: vector %llu (%s), event %s: ", state->path, state->line_number,
          (unsigned long long)state->vector, state->name, state->event);
}

static int conformance_differs(struct conformance_state *state, const char *field, uint64_t expected, uint64_t got,
                               uint64_t tolerance) {
  conformance_place(state);
  fprintf(state->out, "%s: expected %llu, got %llu", field, (unsigned long long)expected, (unsigned long long)got);
  fprintf(state->out, " (%llu apart is allowed)\n", (unsigned long long)tolerance);
  return CONFORMANCE_DIFFERS;
}

// Compares what the port has with what the line expects.
static int conformance_compare(struct conformance_state *state, const char *line) {
  static const char *const names[4] = {"cwnd_bytes", "ssthresh_bytes", "pacing_rate_bits_per_s", "in_startup"};
  struct conformance_decided decided;
  char name[40], reason[32];
  int field;
  memset(&decided, 0, sizeof decided);
  if (state->port->decided(state->instance, state->now_ns, &decided)) {
    conformance_place(state);
    fprintf(state->out, "decided() has failed\n");
    return CONFORMANCE_DIFFERS;
  }
  for (field = 0; field < 4; field++) {
    const uint64_t got[4] = {decided.cwnd_bytes, decided.ssthresh_bytes, decided.pacing_rate_bits_per_s,
                             decided.in_startup};
    uint64_t expected = 0, tolerance = 0;
    snprintf(name, sizeof name, "expect_%s", names[field]);
    if (!conformance_number(line, name, &expected)) return conformance_unusable(state, name, "a whole number");
    if (!state->port->exact && field < 2) tolerance = state->tolerance_bytes;
    if (!state->port->exact && field == 2) tolerance = expected / 1000 * state->tolerance_rate;
    // No threshold, and no rate, are not near any.
    if ((field == 1 || field == 2) && (expected == 0) != (got[field] == 0)) tolerance = 0;
    if (conformance_apart(expected, got[field], tolerance)) {
      return conformance_differs(state, names[field], expected, got[field], tolerance);
    }
  }
  if (!conformance_text(line, "expect_exit_reason", reason, sizeof reason)) {
    return conformance_unusable(state, "expect_exit_reason", "a name");
  }
  decided.exit_reason[sizeof decided.exit_reason - 1] = 0;
  if (strcmp(reason, decided.exit_reason)) {
    conformance_place(state);
    fprintf(state->out, "exit_reason: expected \"%s\", got \"%s\"\n", reason, decided.exit_reason);
    return CONFORMANCE_DIFFERS;
  }
  return CONFORMANCE_PASSED;
}

// Reads the members of a line, as many as there are names. Returns the name of the first that is missing.
static const char *conformance_members(const char *line, const char *const *names, uint64_t *values, size_t count) {
  size_t place;
  for (place = 0; place < count; place++) {
    if (!conformance_number(line, names[place], &values[place])) return names[place];
  }
  return NULL;
}

// What is known of a path, as many numbers as the struct has. Returns the name of the first that is missing.
static const char *conformance_known_of(const char *line, struct conformance_known *known) {
  static const char *const names[] = {"handshake_rtt_ns", "saved_cwnd_bytes", "saved_rtt_ns", "saved_age_ns",
                                      "receive_window_bytes", "bytes_waiting", "hint_bits_per_s",
                                      "requested_bits_per_s", "interface_bits_per_s", "approved_bits_per_s",
                                      "oracle_bits_per_s", "train_bits_per_s", "advised_bits_per_s",
                                      "shared_cwnd_bytes", "shared_ssthresh_bytes", "shared_rtt_ns"};
  uint64_t values[16] = {0};
  const char *missing = conformance_members(line, names, values, 16);
  memcpy(known, values, sizeof *known);
  return missing;
}

// Whether the port has what a vector needs beyond the usual functions.
static int conformance_has(const struct conformance_port *port, const char *needs) {
  if (!strcmp(needs, "timeout")) return port->timeout != NULL;
  if (!strcmp(needs, "segment")) return port->segment != NULL;
  if (!strcmp(needs, "path")) return port->path != NULL;
  return !needs[0];
}

// Tells the port what a line says.
static int conformance_tell(struct conformance_state *state, const char *line) {
  static const char *const sent[] = {"now_ns", "in_flight_bytes", "packet_number", "packets", "packet_bytes"};
  static const char *const lost[] = {"packet_number", "packets", "packet_bytes"};
  static const char *const acked[] = {"now_ns", "largest_acked", "delivered_bytes", "delivered_packets",
                                      "in_flight_bytes", "rtt_ns", "ce_packets", "app_limited",
                                      "persistent_congestion"};
  static const char *const timed[] = {"now_ns", "in_flight_bytes"};
  static const char *const sized[] = {"segment_bytes"};
  const struct conformance_port *port = state->port;
  const char *missing = NULL;
  struct conformance_known known;
  uint64_t v[9] = {0}, place;
  int failed = 0;
  if (!strcmp(state->event, "launch") || !strcmp(state->event, "path")) {
    int (*tell)(void *, uint64_t, const struct conformance_known *) =
        !strcmp(state->event, "launch") ? port->launch : port->path;
    missing = conformance_members(line, timed, v, 1);
    if (!missing) missing = conformance_known_of(line, &known);
    if (!missing && tell) failed = tell(state->instance, state->now_ns = v[0], &known);
    if (!tell) return conformance_unneeded(state);
  } else if (!strcmp(state->event, "segment")) {
    missing = conformance_members(line, sized, v, 1);
    if (!port->segment) return conformance_unneeded(state);
    if (!missing) failed = port->segment(state->instance, v[0]);
  } else if (!strcmp(state->event, "sent")) {
    missing = conformance_members(line, sent, v, 5);
    if (!missing && v[3] > CONFORMANCE_MOST_PACKETS) return conformance_unusable(state, "packets", "up to 100000");
    for (place = 0; !missing && !failed && place < v[3]; place++) {
      uint64_t in_flight = v[1] - (v[3] - 1 - place) * v[4];
      failed = port->sent(state->instance, state->now_ns = v[0], v[2] + place, v[4], in_flight);
    }
  } else if (!strcmp(state->event, "lost")) {
    missing = conformance_members(line, lost, v, 3);
    if (!missing && v[1] > CONFORMANCE_MOST_PACKETS) return conformance_unusable(state, "packets", "up to 100000");
    for (place = 0; !missing && !failed && place < v[1]; place++) {
      failed = port->lost(state->instance, v[0] + place, v[2]);
    }
  } else if (!strcmp(state->event, "acked")) {
    struct conformance_acked event;
    missing = conformance_members(line, acked, v, 9);
    memcpy(&event, v, sizeof event);
    if (!missing) failed = port->acked(state->instance, &event);
    state->now_ns = v[0];
  } else if (!strcmp(state->event, "timeout")) {
    missing = conformance_members(line, timed, v, 2);
    if (!port->timeout) return conformance_unneeded(state);
    if (!missing) failed = port->timeout(state->instance, state->now_ns = v[0], v[1]);
  } else {
    int (*tell)(void *, uint64_t) = !strcmp(state->event, "timer") ? port->timer : port->spurious;
    if (strcmp(state->event, "timer") && strcmp(state->event, "spurious")) {
      return conformance_unusable(
          state, "event", "begin, launch, sent, lost, acked, timer, timeout, spurious, segment or path");
    }
    missing = conformance_members(line, timed, v, 1);
    if (!missing) failed = tell(state->instance, state->now_ns = v[0]);
  }
  if (missing) return conformance_unusable(state, missing, "a whole number");
  if (failed) {
    conformance_place(state);
    fprintf(state->out, "the port has failed with %d\n", failed);
    return CONFORMANCE_DIFFERS;
  }
  return conformance_compare(state, line);
}

// Runs one file. The first difference goes to `out`, as a line; a file that passes gets a line as well.
static enum conformance_result conformance_run(const char *path, const struct conformance_port *port, FILE *out) {
  static char line[CONFORMANCE_LONGEST_LINE];
  struct conformance_state state;
  struct conformance_setup setup;
  unsigned long run = 0, left_out = 0, events = 0, passed = 0;
  uint64_t format = 0, vectors = 0, expected = 0, vector = 0;
  int result = CONFORMANCE_PASSED;
  FILE *file = fopen(path, "r");
  memset(&state, 0, sizeof state);
  memset(&setup, 0, sizeof setup);
  state.port = port;
  state.path = path;
  state.out = out;
  if (!file) {
    fprintf(out, "%s: cannot be read\n", path);
    return CONFORMANCE_UNUSABLE;
  }
  while (result == CONFORMANCE_PASSED && fgets(line, sizeof line, file)) {
    char needs[32];
    state.line_number++;
    if (!strchr(line, '\n')) {
      result = conformance_unusable(&state, "line", "up to 4094 bytes and their end");
    } else if (state.line_number == 1) {
      if (!conformance_number(line, "format", &format) || format != CONFORMANCE_FORMAT) {
        result = conformance_unusable(&state, "format", "2, that of this header");
      } else if (!conformance_text(line, "scheme", setup.scheme, sizeof setup.scheme) ||
                 !conformance_text(line, "parameters", setup.parameters, sizeof setup.parameters) ||
                 !conformance_text(line, "avoidance", setup.avoidance, sizeof setup.avoidance) ||
                 !conformance_number(line, "segment_bytes", &setup.segment_bytes) ||
                 !conformance_number(line, "initial_window_packets", &setup.initial_window_packets) ||
                 !conformance_number(line, "tolerance_bytes", &state.tolerance_bytes) ||
                 !conformance_number(line, "tolerance_rate_per_mille", &state.tolerance_rate) ||
                 !conformance_number(line, "vectors", &vectors) || !conformance_number(line, "events", &expected)) {
        result = conformance_unusable(&state, "first line", "scheme, parameters, sizes, tolerances and counts");
      }
    } else if (!conformance_text(line, "event", state.event, sizeof state.event) ||
               !conformance_number(line, "vector", &vector)) {
      result = conformance_unusable(&state, "vector, event", "a number and a name");
    } else if (vector != state.vector + !strcmp(state.event, "begin") || !vector) {
      result = conformance_unusable(&state, "vector", "one after the other, each with its begin");
    } else if (!strcmp(state.event, "begin")) {
      state.vector = vector;
      if (state.instance) port->destroy(state.instance);
      state.instance = NULL;
      if (!conformance_text(line, "name", state.name, sizeof state.name) ||
          !conformance_text(line, "needs", needs, sizeof needs)) {
        result = conformance_unusable(&state, "name, needs", "texts");
      } else if (!conformance_has(port, needs)) {
        left_out++;
      } else {
        state.instance = port->create(&setup);
        if (!state.instance && !run) result = CONFORMANCE_LEFT_OUT;
        if (!state.instance && run) {
          conformance_place(&state);
          fprintf(out, "create() has failed, after it made %lu\n", run);
          result = CONFORMANCE_DIFFERS;
        }
        run++;
      }
    } else {
      events++;
      if (state.instance) {
        result = conformance_tell(&state, line);
        passed++;
      }
    }
  }
  if (state.instance) port->destroy(state.instance);
  // A file that was cut, also at the end of a line, and one of which no vector runs, shows nothing.
  if (result == CONFORMANCE_PASSED && (ferror(file) || run + left_out != vectors || events != expected)) {
    fprintf(out, "%s: has %lu vectors with %lu events; the first line says %llu with %llu\n", path, run + left_out,
            events, (unsigned long long)vectors, (unsigned long long)expected);
    result = CONFORMANCE_UNUSABLE;
  } else if (result == CONFORMANCE_PASSED && !passed) {
    fprintf(out, "%s: no vector was run\n", path);
    result = CONFORMANCE_UNUSABLE;
  }
  fclose(file);
  if (result == CONFORMANCE_PASSED) {
    fprintf(out, "%s: %lu vectors with %lu events pass, %lu left out\n", path, run, passed, left_out);
  } else if (result == CONFORMANCE_LEFT_OUT) {
    fprintf(out, "%s: left out, the port has no %s\n", path, setup.scheme);
  }
  return (enum conformance_result)result;
}

// Runs the files that a program's arguments name. Returns its exit code: 0 all that are not left out pass, 1 one
// differs, 2 one is unusable, or all are left out.
static int conformance_main(int count, char **arguments, const struct conformance_port *port) {
  int place, worst = 0, run = 0;
  if (count < 2) {
    fprintf(stderr, "usage: %s vectors/*.jsonl\n", arguments[0]);
    return 2;
  }
  for (place = 1; place < count; place++) {
    int result = (int)conformance_run(arguments[place], port, stdout);
    if (result == CONFORMANCE_LEFT_OUT) continue;
    run++;
    if (result > worst) worst = result;
  }
  if (!run) fprintf(stderr, "%s: nothing was run: the port has none of these schemes\n", arguments[0]);
  return run ? worst : 2;
}

#endif // FLOWSTART_CONFORMANCE_H
