"""An HTTP/3 client and server made of aioquic, for scripts/interop/run.

    aioquic_peer.py get CERTIFICATE PORT PATH     prints "STATUS BYTES SHA256"
    aioquic_peer.py serve CERTIFICATE KEY         prints its port, serves /SIZE
"""

import asyncio
import hashlib
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


def content(size):
    """The bytes of an object, the same as those that `flowstart serve` makes: in chunks of 64 KiB, the place modulo 251."""
    chunk = bytes(place % 251 for place in range(1 << 16))
    return (chunk * (size // len(chunk) + 1))[:size]


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.status, self.digest, self.received = None, hashlib.sha256(), 0
        self.done = asyncio.get_running_loop().create_future()

    def ask(self, path):
        stream = self._quic.get_next_available_stream_id()
        fields = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
        fields["downlink"] = "7.5"
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()

    def quic_event_received(self, event):
        for answer in self.http.handle_event(event):
            if isinstance(answer, HeadersReceived):
                self.status = dict(answer.headers)[b":status"].decode()
            elif isinstance(answer, DataReceived):
                self.digest.update(answer.data)
                self.received += len(answer.data)
            if answer.stream_ended and not self.done.done():
                self.done.set_result(None)


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for request in self.http.handle_event(event):
            if isinstance(request, HeadersReceived):
                body = content(int(dict(request.headers)[b":path"][1:]))
                headers = [(b":status", b"200"), (b"content-length", str(len(body)).encode())]
                self.http.send_headers(request.stream_id, headers)
                self.http.send_data(request.stream_id, body, end_stream=True)
                self.transmit()


async def get(certificate, port, path):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.max_data = configuration.max_stream_data = 64 << 20
    configuration.load_verify_locations(certificate)
    async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
        client.ask(path)
        await asyncio.wait_for(client.done, 60)
        print(client.status, client.received, client.digest.hexdigest())


async def offer(certificate, key):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run({"get": get, "serve": offer}[sys.argv[1]](*sys.argv[2:]))
