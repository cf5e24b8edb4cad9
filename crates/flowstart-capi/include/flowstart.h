// flowstart: how a flow starts, and its congestion control. Written by cbindgen; change the comments in src/.
//
// - Make a controller for each flow, report what is sent, acknowledged and lost, and ask flowstart_query() how much may
//   be sent and how fast. The controller decides every change of the window.
// - Times and spans are nanoseconds. The origin of times is the caller's. A time that goes back counts as the latest
//   one. Rates are bits per second, sizes bytes. Numbers are at most 2^62 - 1, rates at most 10^15.
// - Pointers are NULL or lead to what they promise: a controller of flowstart_new() that was not freed, a struct of the
//   size that it states, a text that ends with a zero. What is NULL and must not be gets FLOWSTART_STATUS_NULL.
// - A struct begins with its size, which the caller sets. Set all other fields to zero that you do not know:
//   `flowstart_ack ack = {.size = sizeof ack, ...}`.
// - One thread at a time may use a controller; different controllers are independent. A call beside another one's gets
//   FLOWSTART_STATUS_BUSY and does nothing. Freeing twice, or using what was freed, is undefined, as with free().
// - No call allocates memory for a packet, reads a clock, or does I/O.

#ifndef FLOWSTART_H
#define FLOWSTART_H

#include <stddef.h>
#include <stdint.h>

// What became of a call. A call that is refused changes nothing. `flowstart_last_error()` says what was wrong.
typedef enum flowstart_status {
  // Done.
  FLOWSTART_STATUS_OK = 0,
  // A pointer that must not be NULL is NULL.
  FLOWSTART_STATUS_NULL = 1,
  // The field `size` of a struct is that of no version of this library.
  FLOWSTART_STATUS_SIZE = 2,
  // A value is out of its range, or a text cannot be read.
  FLOWSTART_STATUS_VALUE = 3,
  // The call does not fit what happened before, such as a second launch.
  FLOWSTART_STATUS_STATE = 4,
  // Another thread is inside a call with the same controller.
  FLOWSTART_STATUS_BUSY = 5,
  // The library failed inside, in this call or in an earlier one. The controller takes no more events;
  // `flowstart_query()` answers with a fixed window of two segments.
  FLOWSTART_STATUS_FAILED = 6,
} flowstart_status;

// Who moves the window.
typedef enum flowstart_phase {
  // Nobody yet: `flowstart_launch()` was not called.
  FLOWSTART_PHASE_WAITING = 0,
  // The startup scheme, or the startup of a congestion avoidance that starts by itself.
  FLOWSTART_PHASE_STARTUP = 1,
  // Congestion avoidance, or classic slow start after a timeout.
  FLOWSTART_PHASE_AVOIDANCE = 2,
  // Nobody any more: the controller has failed, and the window is fixed.
  FLOWSTART_PHASE_FALLBACK = 3,
} flowstart_phase;

// The access technology behind a client's hint.
typedef enum flowstart_technology {
  // Not stated.
  FLOWSTART_TECHNOLOGY_UNKNOWN = 0,
  // A cable from end to end.
  FLOWSTART_TECHNOLOGY_ETHERNET = 1,
  // DSL.
  FLOWSTART_TECHNOLOGY_DSL = 2,
  // Cable with DOCSIS.
  FLOWSTART_TECHNOLOGY_DOCSIS = 3,
  // Wi-Fi.
  FLOWSTART_TECHNOLOGY_WIFI = 4,
  // Third-generation cellular.
  FLOWSTART_TECHNOLOGY_THIRD_GENERATION = 5,
  // LTE.
  FLOWSTART_TECHNOLOGY_LTE = 6,
  // Fibre to the home.
  FLOWSTART_TECHNOLOGY_FIBRE = 7,
} flowstart_technology;

// The controller of one flow. One thread at a time may use it.
typedef struct flowstart_controller flowstart_controller;

// What a controller is made of. Zero means the default, so `{ .size = sizeof(flowstart_config) }` is complete.
typedef struct flowstart_config {
  // `sizeof(flowstart_config)`.
  size_t size;
  // Startup scheme with its parameters, such as "blitzstart" or "blitzstart:estimate=1.5". NULL: "slow-start".
  // `flowstart list schemes` shows all, and their parameters.
  const char *scheme;
  // Congestion avoidance with its parameters, such as "reno" or "cubic:beta=0.8". NULL: "cubic".
  const char *avoidance;
  // Size of a full packet in bytes, 1 to 65535. 0: 1200.
  uint64_t segment;
  // Initial window in segments, 1 to 1000000, unless the scheme says another. 0: 10.
  uint64_t initial_window;
  // 1: data carries ECT(1), and `ce_packets` counts every marked packet, as "prague" needs it (RFC 9331). 0: not.
  uint32_t ect1;
  // 0.
  uint32_t reserved;
} flowstart_config;

// What is known of a path before the first data leaves. Zero means unknown; never guess.
typedef struct flowstart_path {
  // `sizeof(flowstart_path)`.
  size_t size;
  // RTT of the handshake in nanoseconds, which is the first sample if there was none. 0: the smallest sample that
  // `flowstart_on_ack()` got, if any.
  uint64_t handshake_rtt;
  // Bytes that an earlier connection delivered over this path in one RTT. 0: no earlier connection is known.
  uint64_t saved_cwnd;
  // The smallest RTT which that connection saw, in nanoseconds. Needed with `saved_cwnd`.
  uint64_t saved_rtt;
  // How long ago that was, in nanoseconds.
  uint64_t saved_age;
  // The receiver's flow-control window in bytes.
  uint64_t receive_window;
  // Bytes that the application has ready to send, with the overhead of their packets.
  uint64_t bytes_waiting;
  // The client's hint about the bandwidth of its access link, in bits per second.
  uint64_t hint_rate;
  // The rate that the application asks for, in bits per second.
  uint64_t requested_rate;
  // Speed of the sender's own interface in bits per second.
  uint64_t interface_rate;
  // The rate that all routers of the path approved (RFC 4782), in bits per second.
  uint64_t approved_rate;
  // The rate that elements of the path advise (SCONE), in bits per second: caps what a scheme launches.
  uint64_t advised_rate;
  // A capacity oracle's answer for the destination, in bits per second.
  uint64_t oracle_rate;
  // The access technology behind `hint_rate`, a `flowstart_technology`.
  uint32_t hint_technology;
  // 1: the RTT of the handshake is only the client's word, who may lengthen it to get a larger window; the launch
  // counts only as far as later samples bear it out. For servers that believe what strangers say. 0: it is true.
  uint32_t doubt_handshake;
  // The rate at which the client saw the server's part of the handshake arrive, if it reports that, in bits per
  // second.
  uint64_t train_rate;
} flowstart_path;

// What one acknowledgement says, or a loss timer: the losses that it reveals are those reported by
// `flowstart_on_packet_lost()` just before. Only packets count that were reported by `flowstart_on_sent()`.
typedef struct flowstart_ack {
  // `sizeof(flowstart_ack)`.
  size_t size;
  // When it arrived, in nanoseconds.
  uint64_t now;
  // Largest packet number that it acknowledges. Counts only with `delivered_bytes` or `ce_packets`.
  uint64_t largest_acked;
  // Bytes that it newly acknowledges; packets that were declared lost before do not count.
  uint64_t delivered_bytes;
  // Packets that it newly acknowledges.
  uint64_t delivered_packets;
  // Bytes in flight after it, and after the losses that it reveals.
  uint64_t in_flight;
  // RTT sample in nanoseconds, with the receiver's delay. 0: it gives none (RFC 9002, section 5.1).
  uint64_t rtt;
  // How long the receiver says that it held the acknowledgement back, in nanoseconds: at most the
  // delay that the peer has announced, once the handshake is confirmed; the host sees to it (RFC 9002, 5.3).
  uint64_t ack_delay;
  // Packets newly reported as CE marked; 1 if the host knows only that there were some.
  uint64_t ce_packets;
  // 1: nothing more waits to be sent, or flow control stops it. 0: there is more.
  uint32_t app_limited;
  // 1: the losses establish persistent congestion (RFC 9002, section 7.6). 0: not.
  uint32_t persistent_congestion;
} flowstart_ack;

// What may be sent now.
typedef struct flowstart_output {
  // `sizeof(flowstart_output)`, set by the caller.
  size_t size;
  // Bytes that may be in flight: at least two segments.
  uint64_t cwnd;
  // Slow-start threshold in bytes. `UINT64_MAX`: there was no reduction yet.
  uint64_t ssthresh;
  // Rate at which packets may leave, in bits per second; never 0. Without pacing 10^15.
  uint64_t pacing_rate;
  // When the next packet may leave by this rate, in nanoseconds; a time in the past: at once. For hosts without a
  // pacer of their own.
  uint64_t next_send;
  // Bytes that may leave at once when sending starts or resumes. For hosts with a pacer of their own.
  uint64_t burst;
  // Bytes that may go down as one batch of segmentation offload.
  uint64_t send_quantum;
  // When to call `flowstart_query()` again if nothing else happens, in nanoseconds. `UINT64_MAX`: never.
  uint64_t next_wakeup;
  // Smallest RTT of this path in nanoseconds. 0: no sample yet.
  uint64_t min_rtt;
  // Smoothed RTT in nanoseconds. 0: no sample yet.
  uint64_t smoothed_rtt;
  // When startup ended, in nanoseconds. 0 with `exit_cwnd` 0: it has not ended.
  uint64_t exit_time;
  // The window that it left, in bytes.
  uint64_t exit_cwnd;
  // Why startup ended, such as "loss" or "delay". Empty: it has not ended.
  char exit_reason[32];
  // Who moves the window.
  enum flowstart_phase phase;
  // 1: the window was reduced, and acknowledgements have not confirmed the reduction yet.
  uint32_t in_recovery;
} flowstart_output;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that runs, such as "0.1.0". The text lives as long as the program.
const char *flowstart_version(void);

// What was wrong with the last call of this thread that did not return `FLOWSTART_STATUS_OK`: the field, its value and
// what is allowed. Empty if there was none. The text is valid until a call of this thread fails again.
const char *flowstart_last_error(void);

// Makes a controller, which `flowstart_free()` frees, and stores it in `created`. On an error that becomes NULL.
enum flowstart_status flowstart_new(const struct flowstart_config *config,
                                    struct flowstart_controller **created);

// Frees a controller; NULL is allowed. A controller that another thread is using is not freed
// (`FLOWSTART_STATUS_BUSY`). Afterwards it must not be used, nor freed again.
enum flowstart_status flowstart_free(struct flowstart_controller *controller);

// The handshake is over and data may leave: the scheme launches with what is known of the path. `path` may be NULL:
// nothing is known. Before it the window is the initial window. A loss or a mark before it launches without
// knowledge, because it needs a response.
enum flowstart_status flowstart_launch(struct flowstart_controller *controller,
                                       uint64_t now,
                                       const struct flowstart_path *path);

// Packets take another path from now on (RFC 9000, section 9.4): everything that was learned is forgotten, and the
// scheme launches with what is known of the new path; `path` may be NULL. Packets sent before do not count.
enum flowstart_status flowstart_on_path_change(struct flowstart_controller *controller,
                                               uint64_t now,
                                               const struct flowstart_path *path);

// A packet that counts towards the bytes in flight left at `now`, in nanoseconds from an origin of the caller's.
// Packet numbers grow from packet to packet; numbers may be left out. Packets of the handshake may be reported if
// their numbers fit into that order. `in_flight` includes this packet. `app_limited`: 1 if before it nothing waited to
// be sent, else 0.
enum flowstart_status flowstart_on_sent(struct flowstart_controller *controller,
                                        uint64_t now,
                                        uint64_t packet_number,
                                        uint64_t bytes,
                                        uint64_t in_flight,
                                        uint32_t app_limited);

// A packet was declared lost. `flowstart_on_ack()` follows, once for all packets that one acknowledgement or one timer
// has revealed; the window moves only then.
enum flowstart_status flowstart_on_packet_lost(struct flowstart_controller *controller,
                                               uint64_t packet_number,
                                               uint64_t bytes);

// An acknowledgement arrived, or a timer declared packets lost: then `delivered_bytes` is 0.
enum flowstart_status flowstart_on_ack(struct flowstart_controller *controller,
                                       const struct flowstart_ack *ack);

// All packets behind the last reduction of the window were delivered after all: the reduction is undone.
enum flowstart_status flowstart_on_spurious_loss(struct flowstart_controller *controller, uint64_t now);

// Full packets have another size from now on, 1 to 65535 bytes (path MTU discovery).
enum flowstart_status flowstart_set_segment(struct flowstart_controller *controller, uint64_t segment);

// What may be sent at `now`. Ask before sending, and at `next_wakeup`. Whatever this returns, an `output` of a valid
// size is filled: on an error with a fixed window of two segments and without pacing, so a host that goes on
// regardless still sends, slowly.
enum flowstart_status flowstart_query(struct flowstart_controller *controller,
                                      uint64_t now,
                                      struct flowstart_output *output);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLOWSTART_H */
