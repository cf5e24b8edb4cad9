"""libcurl with HTTP/3 (ngtcp2, as curl_cffi brings it), for scripts/interop/run.

    curl_peer.py CERTIFICATE PORT PATH     prints "HTTP_VERSION STATUS BYTES SHA256"

The version is that of CURLINFO_HTTP_VERSION, 30 for HTTP/3; curl is told to use no other.
"""

import hashlib
import sys

from curl_cffi import Curl, CurlInfo, CurlOpt
from curl_cffi.const import CurlHttpVersion


def get(certificate, port, path):
    digest, received = hashlib.sha256(), 0

    def take(part):
        nonlocal received
        digest.update(part)
        received += len(part)
        return len(part)

    curl = Curl()
    curl.setopt(CurlOpt.URL, f"https://localhost:{port}{path}".encode())
    curl.setopt(CurlOpt.RESOLVE, [f"localhost:{port}:127.0.0.1"])
    curl.setopt(CurlOpt.NOPROXY, b"*")
    curl.setopt(CurlOpt.HTTP_VERSION, CurlHttpVersion.V3ONLY)
    curl.setopt(CurlOpt.CAINFO, certificate.encode())
    curl.setopt(CurlOpt.TIMEOUT, 120)
    curl.setopt(CurlOpt.WRITEFUNCTION, take)
    curl.perform()
    version, status = curl.getinfo(CurlInfo.HTTP_VERSION), curl.getinfo(CurlInfo.RESPONSE_CODE)
    print(version, status, received, digest.hexdigest())


if __name__ == "__main__":
    get(*sys.argv[1:])
