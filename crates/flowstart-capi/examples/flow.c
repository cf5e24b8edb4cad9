// A transfer over a path of one bottleneck: fixed rate, fixed RTT, a queue that drops what does not fit.
//
//     cc flow.c $(pkg-config --cflags --libs flowstart) -o flow && ./flow blitzstart 50000000
//
// Arguments: the scheme (slow-start), and the client's hint in bit/s (none). Prints when the last byte has arrived.

#include <flowstart.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PACKET = 1200, PACKETS = 1667, QUEUE = 208, MOST_SENT = 100000 };

static const uint64_t RTT = 50000000, RATE = 50000000; // 50 ms, 50 Mbit/s; 1667 packets are 2 MB

// What became of each packet: when its acknowledgement arrives, or 0 if the queue has dropped it.
static struct { uint64_t sent, acked; } packets[MOST_SENT];

static void require(flowstart_status status) {
    if (status != FLOWSTART_STATUS_OK) {
        fprintf(stderr, "flowstart: %s\n", flowstart_last_error());
        exit(1);
    }
}

int main(int count, char **arguments) {
    flowstart_config config = {.size = sizeof config, .scheme = count > 1 ? arguments[1] : NULL, .segment = PACKET};
    flowstart_path path = {.size = sizeof path, .handshake_rtt = RTT, .bytes_waiting = (uint64_t)PACKETS * PACKET,
                           .hint_rate = count > 2 ? strtoull(arguments[2], NULL, 10) : 0};
    flowstart_controller *flow;
    require(flowstart_new(&config, &flow));
    require(flowstart_launch(flow, 0, &path));

    const uint64_t packet_time = PACKET * 8 * (uint64_t)1000000000 / RATE;
    uint64_t now = 0, link_free = 0, in_flight = 0, next = 0, oldest = 0, delivered = 0, lost = 0;
    flowstart_output may = {.size = sizeof may};
    while (delivered < PACKETS) {
        // What is in flight and what has arrived is not sent again; what was lost is.
        while (next < MOST_SENT && delivered + in_flight / PACKET < PACKETS) {
            require(flowstart_query(flow, now, &may));
            if (in_flight + PACKET > may.cwnd || may.next_send > now) break;
            in_flight += PACKET;
            require(flowstart_on_sent(flow, now, next, PACKET, in_flight, 0));
            packets[next].sent = now;
            if (link_free < now) link_free = now;
            if (link_free - now < QUEUE * packet_time) {
                link_free += packet_time;
                packets[next].acked = link_free + RTT;
            }
            next++;
        }
        // The next event: an acknowledgement, or the time when the pacer lets the next packet leave.
        uint64_t first = oldest;
        while (first < next && packets[first].acked == 0) first++;
        uint64_t acked = first < next ? packets[first].acked : UINT64_MAX;
        int may_send = delivered + in_flight / PACKET < PACKETS && in_flight + PACKET <= may.cwnd && next < MOST_SENT;
        if (may_send && may.next_send < acked) {
            now = may.next_send;
            continue;
        }
        if (acked == UINT64_MAX) { // Only dropped packets are left: the probe timeout finds them.
            now += 3 * RTT;
            first = next;
        } else {
            now = acked;
        }
        // Packets keep their order, so those before the acknowledged one are lost.
        flowstart_ack ack = {.size = sizeof ack, .now = now};
        for (; oldest < first; oldest++, lost++) {
            require(flowstart_on_packet_lost(flow, oldest, PACKET));
            in_flight -= PACKET;
        }
        if (acked != UINT64_MAX) {
            in_flight -= PACKET;
            ack.largest_acked = oldest;
            ack.delivered_bytes = PACKET;
            ack.delivered_packets = 1;
            ack.rtt = now - packets[oldest].sent;
            oldest++;
            delivered++;
        }
        ack.in_flight = in_flight;
        ack.app_limited = delivered + in_flight / PACKET >= PACKETS;
        require(flowstart_on_ack(flow, &ack));
    }
    require(flowstart_query(flow, now, &may));
    printf("%s: 2 MB in %.1f ms, %" PRIu64 " packets lost, startup ended by \"%s\"\n",
           count > 1 ? arguments[1] : "slow-start", (double)(now - RTT / 2) / 1e6, lost, may.exit_reason);
    require(flowstart_free(flow));
    return 0;
}
