"""Checks the pages of `flowstart ui` in Chromium: ui.py CHROMIUM FLOWSTART RESULTS, where RESULTS has two folders of
results of one question, `before` and `after`, and a record, `record`."""

import json
import pathlib
import subprocess
import sys
import time
import urllib.parse

from playwright.sync_api import sync_playwright

SIZES = [(390, 844), (1280, 800)]
SCHEMES = ["light", "dark"]
# The aim for 10 repetitions of a 2 MB transfer alone on its link, from the change of a slider to the drawn answer; a
# build without optimisation, on a machine with other work, gets three times as much.
LATENCY_MS = 300 * 3
QUESTION = "link=dsl-fast&size=2MB&scheme=slow-start&scheme=blitzstart&reps=10"

failures = 0


def check(name, passed, found=""):
    """Prints a line."""
    global failures
    failures += not passed
    print(f"{'pass' if passed else 'FAIL'}  {name}" + ("" if passed else f": {found}"), flush=True)


class Opened:
    """A page, what its console said, and what it asked others for."""

    def __init__(self, browser, url, size, scheme, **more):
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **more)
        self.page = self.context.new_page()
        self.said, self.elsewhere = [], []
        host = urllib.parse.urlsplit(url).netloc

        def told(message):
            if message.type in ("error", "warning"):
                self.said.append(message.text)

        def asked(request):
            parts = urllib.parse.urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.netloc != host:
                self.elsewhere.append(request.url)

        self.page.on("console", told)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", asked)
        self.page.goto(url)

    def close(self):
        self.context.close()


def ready(page):
    """Waits until a page shows what it has to show."""
    shown = "html[data-answered], html[data-ready], table.list, table.plain, iframe.whole"
    page.wait_for_selector(shown, timeout=60_000)
    page.wait_for_timeout(300)


def check_layout(name, opened, width):
    page = opened.page
    found = page.evaluate(
        """() => ({
            width: document.documentElement.scrollWidth,
            outside: [...document.querySelectorAll("main *")].filter((element) =>
                !element.parentElement.closest(".scroll, svg, .printed, .hidden")
                    && !element.matches(".hidden, .skip") &&
                element.getBoundingClientRect().right > innerWidth + 1)
                .map((element) => element.tagName + "." + (element.className.baseVal ?? element.className)),
            small: [...document.querySelectorAll("main button, main a, main select")].filter((element) => {
                const box = element.getBoundingClientRect();
                return box.width > 0 && box.height > 0 && box.height < 14;
            }).length,
        })"""
    )
    check(f"{name}: the console is silent", not opened.said, opened.said[:3])
    check(f"{name}: nothing is asked of other hosts", not opened.elsewhere, opened.elsewhere[:3])
    check(f"{name}: nothing is wider than the screen", found["width"] <= width and not found["outside"], found)
    check(f"{name}: what can be pressed is large enough", found["small"] == 0, found["small"])


def luminance(colour):
    numbers = [float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
    parts = [n / 255 / 12.92 if n / 255 <= 0.03928 else ((n / 255 + 0.055) / 1.055) ** 2.4 for n in numbers]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def check_colours(name, page, scheme):
    """Text stands out from the page, which is as light or dark as the reader wants it."""
    ink, paper, pressed = page.evaluate(
        """() => {
            const style = (element) => getComputedStyle(element);
            const button = document.querySelector(".choice[aria-pressed=true], .ask, #play");
            return [style(document.body).color, style(document.body).backgroundColor,
                button && [style(button).color, style(button).backgroundColor]];
        }"""
    )
    contrast = lambda a, b: (max(luminance(a), luminance(b)) + 0.05) / (min(luminance(a), luminance(b)) + 0.05)
    check(f"{name}: the page is {scheme}", (luminance(paper) < 0.2) == (scheme == "dark"), paper)
    check(f"{name}: text stands out", contrast(ink, paper) > 7, (ink, paper))
    if pressed:
        check(f"{name}: so do buttons", contrast(*pressed) > 3, pressed)


def check_keyboard(name, page):
    """With the tab key one gets from control to control, and each shows that it has the focus."""
    page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
    seen, unseen = set(), []
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
                const element = document.activeElement;
                if (!element || element === document.body || element.tagName === "IFRAME") return null;
                const style = getComputedStyle(element);
                const named =
                    element.id || element.value || element.getAttribute("href") || element.textContent.slice(0, 20);
                const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
                return [element.tagName + " " + named, isSeen];
            }"""
        )
        if not found:
            break
        seen.add(found[0])
        if not found[1]:
            unseen.append(found[0])
    check(f"{name}: the tab key leads from control to control", len(seen) >= 3, seen)
    check(f"{name}: each shows that it has the focus", not unseen, unseen[:5])


def wait_for_answer(page):
    """Waits until what the form says is asked, and answered."""
    page.wait_for_timeout(100)
    page.wait_for_function("() => !document.querySelector('#answer.stale')", timeout=30_000)


def check_lab(name, opened):
    """A slider, moved by the keyboard, asks again; and so does a choice."""
    page = opened.page
    for plot in ("sequence", "window", "queue", "times", "waterfall"):
        marks = page.locator(f".plot[data-chart={plot}] svg path, .plot[data-chart={plot}] svg rect, "
                             f".plot[data-chart={plot}] svg circle").count()
        check(f"{name}: {plot} is drawn", marks >= 2, marks)
    sentence = page.locator("#answer .answer").inner_text()
    check(f"{name}: the answer is on the first screen", page.locator("#answer .answer").bounding_box()["y"] < 200)
    page.locator("#s-rate").focus()
    times = []
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
        for _ in range(7):
            page.keyboard.press(key)
        wait_for_answer(page)
        times.append(float(page.evaluate("document.documentElement.dataset.latency")))
    changed = page.locator("#answer .answer").inner_text()
    check(f"{name}: moving a slider gives another answer", "rate=" in changed and changed != sentence, changed)
    check(f"{name}: within {LATENCY_MS} ms", min(times) < LATENCY_MS, times)
    print(f"note  {name}: a slider's answer took {', '.join(f'{time:.0f}' for time in times)} ms", flush=True)
    check(f"{name}: the address has the question", "rate%3D" in page.url, page.url)
    page.locator(".field[data-key=scheme] .choice[value=search]").press("Enter")
    wait_for_answer(page)
    rows = page.locator("#answer tbody tr").count()
    check(f"{name}: a choice adds a scheme", rows == 3, rows)
    page.locator(".plot[data-chart=window] svg").focus()
    page.keyboard.press("ArrowRight")
    told = page.locator(".plot[data-chart=window] .readout").inner_text()
    check(f"{name}: the arrows read a chart", "ms" in told, told)
    page.locator("#f-reps").fill("1000000")
    page.locator("#f-reps").press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    told = page.locator("#problem").inner_text()
    check(f"{name}: what is not allowed is refused", "1 to 1000" in told, told)
    opened.said = [text for text in opened.said if "400" not in text]
    page.locator("#f-reps").fill("10")
    page.locator("#f-reps").press("Enter")
    page.wait_for_selector("#problem", state="hidden")
    page.wait_for_function("() => document.getElementById('report').src !== ''", timeout=30_000)
    frame = page.frame_locator("#report")
    frame.locator("html[data-drawn]").wait_for(state="attached", timeout=60_000)
    check(f"{name}: the report is below", frame.locator(".answer").count() == 1)


def check_packets(name, opened, is_still):
    page = opened.page
    clock = lambda: float(page.locator("#clock").inner_text().split()[0])
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    stepped = clock()
    check(f"{name}: an arrow goes on by an event", stepped > 0 and "ms: " in page.locator("#event").inner_text(),
          stepped)
    page.keyboard.press("ArrowLeft")
    check(f"{name}: and back", clock() < stepped, clock())
    page.keyboard.press("End")
    end = clock()
    page.keyboard.press("Home")
    check(f"{name}: Home and End", clock() == 0 and end > 100, (clock(), end))
    page.locator("#speed").select_option("0.1")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press(" ")
    page.wait_for_timeout(1400)
    check(f"{name}: space plays", clock() > 20, clock())
    if is_still:
        places, began = set(), time.monotonic()
        for _ in range(20):
            page.wait_for_timeout(25)
            places.add(clock())
        # Three steps in a second, and where it stands before; a slow machine looks for longer.
        steps = 3 * (time.monotonic() - began)
        check(f"{name}: nothing moves but in steps", len(places) <= steps + 2, (places, steps))
    page.keyboard.press(" ")
    at = clock()
    page.wait_for_timeout(300)
    check(f"{name}: and pauses", clock() == at, (at, clock()))
    shown = page.locator("#scene .packet:not([visibility])").count()
    check(f"{name}: packets are on their way", shown > 3, shown)


def main():
    chromium, flowstart, results = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    server = subprocess.Popen(
        [flowstart, "ui", "--listen", "127.0.0.1:0", "--json", "--results", str(results)],
        stdout=subprocess.PIPE, text=True)
    try:
        base = json.loads(server.stdout.readline())["listening"].rstrip("/")
        pages = {
            "lab": "/",
            "packets": f"/packets?{QUESTION}&cell=0",
            "results": "/results/",
            "result": "/results/before/",
            "record": "/results/record/",
            "beside": "/beside?before=before&after=after",
            "missing": "/nothing",
        }
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for page, address in pages.items():
                for size in SIZES:
                    for scheme in SCHEMES:
                        name = f"ui {page} at {size[0]} px, {scheme}"
                        opened = Opened(browser, base + address, size, scheme)
                        if page == "missing":
                            opened.said = [text for text in opened.said if "404" not in text]
                        else:
                            ready(opened.page)
                        check_layout(name, opened, size[0])
                        check_colours(name, opened.page, scheme)
                        if scheme == "light":
                            check_keyboard(name, opened.page)
                        opened.close()
            for size in SIZES:
                name = f"ui question at {size[0]} px"
                opened = Opened(browser, f"{base}/?{QUESTION}", size, "light")
                ready(opened.page)
                check_lab(name, opened)
                check_layout(name, opened, size[0])
                opened.close()
            for is_still in (False, True):
                name = "ui packets" + (", no motion" if is_still else "")
                motion = "reduce" if is_still else "no-preference"
                opened = Opened(browser, base + pages["packets"], SIZES[1], "light", reduced_motion=motion)
                ready(opened.page)
                check_packets(name, opened, is_still)
                opened.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(10)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
