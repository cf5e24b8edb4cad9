"""Checks reports in Chromium: pages.py CHROMIUM FOLDER, where the folder holds folders of results by name."""

import pathlib
import sys

from playwright.sync_api import sync_playwright

WIDTHS = [(390, 844), (1280, 800), (1920, 1080)]
# The report of the paper's Table 1: 72 cells.
TALLEST = 6000
# Rows up to which all of the forest plot is on the first screen.
FEW_ROWS = 60

failures = 0


def check(name, passed, found=""):
    """Prints a line."""
    global failures
    failures += not passed
    print(f"{'pass' if passed else 'FAIL'}  {name}" + ("" if passed else f": {found}"), flush=True)


def opened(browser, file, width, height, scheme="light"):
    """The page, all of whose charts are drawn, and what the console said."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=60_000)
    return page, said


def layout(page):
    """Sizes of the page, and what is wrong with it."""
    return page.evaluate(
        """() => ({
            width: document.documentElement.scrollWidth,
            height: document.documentElement.scrollHeight,
            // Of tables in boxes of their own only the box counts.
            outside: [...document.querySelectorAll("main *")].filter((element) =>
                !element.parentElement.closest(".scroll") && element.getBoundingClientRect().right > innerWidth + 1)
                .map((element) => element.tagName + "." + (element.className.baseVal ?? element.className)),
            undrawn: [...document.querySelectorAll(".panel:not(.missing)")].filter((panel) =>
                panel.clientWidth > 0 && !panel.querySelector("svg, canvas")).length,
            // A title in several lines is complete, too.
            cut: [...document.querySelectorAll("figure.grid")].flatMap((figure) => {
                const spec = JSON.parse(figure.querySelector("script.spec").textContent);
                const letters = (text) => (text ?? "").replaceAll(/\\s/g, "");
                return [...figure.querySelectorAll(".panel[data-panel]")].filter((panel) => {
                    const { title } = spec.concat[Number(panel.dataset.panel)];
                    const drawn = panel.querySelector("svg .role-title")?.textContent;
                    return panel.clientWidth > 0 && letters(drawn) !== letters(title?.text ?? title);
                }).map((panel) => panel.textContent.slice(0, 60));
            }),
        })"""
    )


def check_layout(name, page, said, width):
    found = layout(page)
    check(f"{name}: the console is silent", not said, said[:3])
    check(f"{name}: all charts are drawn", found["undrawn"] == 0, found["undrawn"])
    check(f"{name}: no title of a panel is cut", not found["cut"], found["cut"][:3])
    check(f"{name}: nothing is wider than the screen", found["width"] <= width and not found["outside"], found)
    return found["height"]


def check_first_screen(name, page):
    answer = page.locator(".answer").bounding_box()
    plot = page.locator("#forest .panel svg").bounding_box()
    rows = page.evaluate(
        """() => {
            const spec = JSON.parse(document.querySelector("#forest script.spec").textContent);
            return spec.data.values.split("\\n").length - 1;
        }"""
    )
    is_visible = answer["y"] >= 0 and answer["y"] + answer["height"] < 400
    check(f"{name}: the answer is on the first screen", is_visible, answer)
    bottom = plot["y"] + plot["height"]
    visible = bottom <= 800 if rows <= FEW_ROWS else plot["y"] < 400
    check(f"{name}: so is the forest plot", visible, (plot, rows))


def check_numbers(name, page):
    """Every row of the plot has its speed-up in its text, whatever is cut."""
    rows, numbers = page.evaluate(
        """() => {
            const spec = JSON.parse(document.querySelector("#forest script.spec").textContent);
            const texts = [...document.querySelectorAll("#forest .panel .mark-text:not(.role-axis-label) text")];
            const has = (text) => /^(speed-up )?×[0-9.]+/.test(text.textContent);
            return [spec.data.values.split("\\n").length - 1, texts.filter(has).length];
        }"""
    )
    check(f"{name}: every row has its number", rows == numbers, (rows, numbers))


def check_hover(name, page):
    plot = page.locator("#forest .panel svg").bounding_box()
    # Below the axis, in the upper half of the plot.
    texts = []
    for part in (0.15, 0.3, 0.45, 0.6, 0.7):
        page.mouse.move(plot["x"] + plot["width"] * part, plot["y"] + 48)
        page.wait_for_timeout(120)
        tooltip = page.locator("#vg-tooltip-element.visible")
        texts.append(tooltip.inner_text() if tooltip.count() else "")
    # Some of them may lie between two columns.
    told = [text for text in texts if text]
    shown = all("speed-up" in text and "verdict" in text for text in told)
    check(f"{name}: hovering over a row shows its numbers", shown and len(told) >= 3 and len(set(told)) == 1, texts)
    page.mouse.move(0, 0)


def check_sorting(name, page):
    button = page.locator("table.sortable th button", has_text="FCT").first
    column = page.evaluate(
        """() => {
            const heads = [...document.querySelectorAll("table.sortable th")];
            return heads.findIndex((head) => head.textContent.trim().startsWith("FCT"));
        }"""
    )
    values = lambda: page.evaluate(
        """(column) => {
            const rows = [...document.querySelectorAll("table.sortable tbody tr")];
            return rows.map((row) => Number(row.cells[column].dataset.sort));
        }""",
        column,
    )
    original = values()
    button.click()
    check(f"{name}: a click sorts", values() == sorted(original), values())
    button.click()
    check(f"{name}: another one reverses", values() == sorted(original, reverse=True), values())
    button.click()
    check(f"{name}: a third one restores", values() == original, values())


def check_filter(name, page):
    search = page.locator(".filter input")
    search.fill("estimate=4.0 lte")
    visible = page.locator("table.cells tbody tr:visible").count()
    check(f"{name}: the filter shows the rows that match", visible == 3, visible)
    search.fill("")


def check_paper(name, page):
    page.evaluate(
        """() => addEventListener("beforeprint", () => {
            window.closed = document.querySelectorAll("details:not([open]):not(.licences)").length;
        })"""
    )
    before = page.locator("details[open]").count()
    pdf = page.pdf()
    check(f"{name}: on paper all is unfolded", page.evaluate("window.closed") == 0 and len(pdf) > 20_000, len(pdf))
    check(f"{name}: and folded again", page.locator("details[open]").count() == before)


def check_dark(name, page):
    colours = page.evaluate(
        """() => {
            const drawn = [...document.querySelectorAll(".panel svg.marks")];
            const first = (svg) => svg.querySelector("rect, path")?.getAttribute("fill") ?? svg.style.backgroundColor;
            return [getComputedStyle(document.body).backgroundColor, ...drawn.map(first)];
        }"""
    )
    light = [colour for colour in colours if colour in ("#ffffff", "white", "rgb(255, 255, 255)")]
    check(f"{name}: no chart is white", not light, light)
    text = page.evaluate("""() => getComputedStyle(document.body).color""")
    check(f"{name}: text is light", int(text.split("(")[1].split(",")[0]) > 180, text)
    # A chart that was drawn for a dark screen is inverted until it is drawn again.
    page.emulate_media(media="print", color_scheme="dark")
    dark = """() => {
        const drawn = [...document.querySelectorAll(".panel")].filter((panel) => panel.querySelector("svg"));
        const isInverted = (panel) => getComputedStyle(panel.querySelector("svg")).filter.startsWith("invert");
        return drawn.filter((panel) => panel.classList.contains("dark-drawn") !== isInverted(panel)).length;
    }"""
    check(f"{name}: no chart is dark on paper", page.evaluate(dark) == 0, page.evaluate(dark))


def check_folds(name, page):
    folds = page.locator("details:not(.licences) > summary")
    folds.evaluate_all("(all) => all.forEach((summary) => summary.parentElement.open = true)")
    page.wait_for_timeout(1500)
    found = layout(page)
    check(f"{name}: unfolded, all charts are drawn and fit", found["undrawn"] == 0 and not found["outside"], found)


def main():
    chromium, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    reports = {file.parent.name: file for file in sorted(folder.glob("*/*.html"))}
    if not reports:
        sys.exit(f"{folder}: no reports")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for report, file in reports.items():
            for width, height in WIDTHS:
                name = f"{report} at {width} px"
                page, said = opened(browser, file, width, height)
                if width == 390 and page.locator("#forest").count():
                    check_numbers(name, page)
                tall = check_layout(name, page, said, width)
                if width == 1280:
                    if page.locator("#forest").count():
                        check_first_screen(name, page)
                        check_hover(name, page)
                    if page.locator("table.sortable").count():
                        check_sorting(name, page)
                    if report == "table1":
                        check(f"{name}: at most {TALLEST} px tall", tall <= TALLEST, tall)
                        check_filter(name, page)
                    check_paper(name, page)
                check_folds(name, page)
                page.close()
            page, said = opened(browser, file, 1280, 800, "dark")
            check_layout(f"{report}, dark", page, said, 1280)
            check_dark(f"{report}, dark", page)
            page.close()
        browser.close()
    sys.exit(failures > 0)


main()
