"""Checks the static site in Chromium: site.py CHROMIUM FLOWSTART SITE, where SITE is what `make site` has written."""

import functools
import http.server
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading

import ui
from playwright.sync_api import sync_playwright
from ui import Opened, check, check_colours, check_keyboard, check_lab, check_layout, check_packets, ready

# Questions and the arguments that ask the command the same: alone on a link, beside others with two queues, TCP.
QUESTIONS = {
    ui.QUESTION: ["--link", "dsl-fast", "--size", "2MB", "--scheme", "slow-start", "blitzstart", "--reps", "10"],
    "link=lte&size=300KB&scheme=slow-start&scheme=jump-start&aqm=taildrop&aqm=fq-codel&competitor=cubic&reps=3&seed=7": [
        "--link", "lte", "--size", "300KB", "--scheme", "slow-start", "jump-start", "--aqm", "taildrop", "fq-codel",
        "--competitor", "cubic", "--reps", "3", "--seed", "7"],
    "link=3g&size=70KB&scheme=hystart&scheme=careful-resume&transport=model-tcp&competitor=cbr%3Arate%3D2mbit&reps=4": [
        "--link", "3g", "--size", "70KB", "--scheme", "hystart", "careful-resume", "--transport", "model-tcp",
        "--competitor", "cbr:rate=2mbit", "--reps", "4"],
}
# A question that takes long.
LONG = "link=dsl-fast&size=20MB&scheme=slow-start&competitor=cubic&reps=100"
# Longest time without a frame while runs are simulated, on a machine with other work.
LONGEST_FRAME_MS = 400


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Answers and says nothing."""

    def log_message(self, *_):
        pass


def served(folder):
    """A server of files, and its address."""
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def is_same(one, other):
    """Whether two summaries say the same. Logarithms of two platforms differ in the last digit of some intervals."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def check_results(page, flowstart):
    """Rows are those of the command, byte for byte, and so are summaries but for last digits."""
    for query, arguments in QUESTIONS.items():
        name = f"site results of {query}"
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            subprocess.run([flowstart, "compare", *arguments, "--out", out, "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)
            for file in ("flows.csv", "summary.json"):
                text = page.evaluate("([name, query]) => part(name, query)", [file, query])
                expected = (out / file).read_text()
                passed = text == expected if file == "flows.csv" else is_same(json.loads(text), json.loads(expected))
                lines = zip(text.splitlines(), expected.splitlines())
                check(f"{name}: {file}", passed, next((pair for pair in lines if pair[0] != pair[1]), len(text)))


def check_work(name, opened):
    """While runs are simulated the page can be used, and another question takes their place."""
    page = opened.page
    page.wait_for_function("() => document.getElementById('progress')?.value > 0", timeout=60_000)
    longest = page.evaluate(
        """() => new Promise((resolve) => {
            const began = performance.now();
            let [last, longest] = [began, 0];
            const frame = () => {
                const now = performance.now();
                [longest, last] = [Math.max(longest, now - last), now];
                if (now - began < 2000) requestAnimationFrame(frame); else resolve(longest);
            };
            requestAnimationFrame(frame);
        })"""
    )
    check(f"{name}: frames go on", longest < LONGEST_FRAME_MS, longest)
    check(f"{name}: so do runs", "of 100 runs" in page.locator("#status").inner_text())
    page.locator(".field[data-key=competitor] summary").click()
    for key, value in (("competitor", "none"), ("size", "70KB"), ("reps", "3")):
        page.locator(f"#f-{key}").fill(value)
    page.locator("#f-reps").press("Enter")
    page.wait_for_selector("html[data-answered]", timeout=30_000)
    answered = page.evaluate("document.documentElement.dataset.answered")
    check(f"{name}: another question takes their place", "size=70KB" in answered and "reps=3" in answered, answered)
    check(f"{name}: the address has it", "size=70KB" in page.url, page.url)
    with page.expect_download() as kept:
        page.locator("button.part[value='question.toml']").click()
    text = pathlib.Path(kept.value.path()).read_text()
    check(f"{name}: its study file can be kept", "70KB" in text and kept.value.suggested_filename == "question.toml", text)
    page.locator("#open").set_input_files(
        {"name": "mine.toml", "mimeType": "text/plain", "buffer": text.replace("70KB", "5KB").encode()})
    page.wait_for_url("**size=5KB**", timeout=30_000)
    ready(page)
    check(f"{name}: and opened", "5KB" in page.locator("#f-size").input_value())
    page.locator("#open").set_input_files({"name": "mine.toml", "mimeType": "text/plain", "buffer": b"link = ["})
    page.wait_for_selector("#problem:not([hidden])")
    check(f"{name}: not one that is broken", "study file: " in page.locator("#problem").inner_text())


def check_refusals(browser, base):
    for query, part in (
        ("link=dsl-fast&scheme=slow-start&size=2MB&reps=1000000", "1 to 1000"),
        ("link=dsl-fast&scheme=slow-start&size=1000000000B", "100 MB"),
        ("link=dsl-fast&scheme=slow-start&size=2MB&transport=quic", "the real stack is not in this program"),
        ("link=dsl-fast&scheme=<img src=x onerror=alert(1)>&size=2MB", "scheme `<img`"),
    ):
        opened = Opened(browser, f"{base}/index.html?{query}", ui.SIZES[1], "light")
        opened.page.wait_for_selector("#problem:not([hidden])", timeout=30_000)
        told = opened.page.locator("#problem").inner_text()
        check(f"site {query}: is refused", part in told, told)
        check(f"site {query}: the console is silent", not opened.said, opened.said)
        opened.close()
    opened = Opened(browser, f"{base}/packets.html?{ui.QUESTION}&cell=9", ui.SIZES[1], "light")
    opened.page.wait_for_selector(".problem", timeout=30_000)
    check("site packets of no cell: are refused", "0 to 1" in opened.page.locator(".problem").inner_text())
    opened.close()


def check_servers(browser, base):
    """A server that does not know WebAssembly, and one from which the simulator cannot be had."""
    wasm = "**/simulator.wasm"
    for name, act in {
        "unknown type": lambda route: route.fulfill(response=route.fetch(), content_type="application/octet-stream"),
        "missing": lambda route: route.fulfill(status=404),
    }.items():
        context = browser.new_context()
        context.route(wasm, act)
        page = context.new_page()
        page.goto(f"{base}/index.html?{ui.QUESTION}")
        if name == "missing":
            page.wait_for_selector("main:has-text('cannot be loaded')", timeout=30_000)
            told = page.locator("main").inner_text()
            check(f"site simulator {name}: is told", "404" in told, told)
        else:
            ready(page)
            check(f"site simulator {name}: works", "times as fast" in page.locator("#answer").inner_text())
        context.close()


def main():
    chromium, flowstart, site = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright:
        # In a folder, as on a server that has other pages too.
        (pathlib.Path(root) / "some").mkdir()
        (pathlib.Path(root) / "some/lab").symlink_to(pathlib.Path(site).resolve())
        server, address = served(root)
        base = f"{address}/some/lab"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        pages = {
            "lab": "/",
            "question": f"/index.html?{ui.QUESTION}",
            "packets": f"/packets.html?{ui.QUESTION}&cell=1&rep=2",
        }
        for page, address in pages.items():
            for size in ui.SIZES:
                for scheme in ui.SCHEMES:
                    name = f"site {page} at {size[0]} px, {scheme}"
                    opened = Opened(browser, base + address, size, scheme)
                    ready(opened.page)
                    check_layout(name, opened, size[0])
                    check_colours(name, opened.page, scheme)
                    if scheme == "light":
                        check_keyboard(name, opened.page)
                    opened.close()
        opened = Opened(browser, base + "/", ui.SIZES[1], "light")
        opened.page.wait_for_selector("html[data-answered]")
        shown = opened.page.evaluate("() => performance.now()")
        check("site lab: a finished example is there", "times as fast" in opened.page.locator("#answer").inner_text())
        print(f"note  site lab: the example is there {shown:.0f} ms after opening", flush=True)
        check_results(opened.page, flowstart)
        opened.close()
        for size in ui.SIZES:
            name = f"site question at {size[0]} px"
            opened = Opened(browser, f"{base}/?{ui.QUESTION}", size, "light")
            ready(opened.page)
            check_lab(name, opened)
            check_layout(name, opened, size[0])
            opened.close()
        opened = Opened(browser, f"{base}/?{LONG}", ui.SIZES[1], "light", accept_downloads=True)
        check_work("site long question", opened)
        opened.close()
        for is_still in (False, True):
            name = "site packets" + (", no motion" if is_still else "")
            motion = "reduce" if is_still else "no-preference"
            opened = Opened(browser, base + "/packets.html", ui.SIZES[1], "light", reduced_motion=motion)
            ready(opened.page)
            check_packets(name, opened, is_still)
            opened.close()
        check_refusals(browser, base)
        check_servers(browser, base)
        browser.close()
        server.shutdown()
    sys.exit(ui.failures > 0)


main()
