#!/usr/bin/python3
"""Opens a page of `netping report --html` in a browser and compares it with its result files.

    .ci/page.py PAGE.html RUN.json... [--svg DIR] [--screenshots DIR]

Needs Debian's python3-selenium, chromium and chromium-driver, and so Debian's own Python. The
expected points are computed here from the JSON alone; no code is shared with the program.
"""

import argparse
import base64
import collections
import json
import math
import pathlib
import statistics
import sys
import xml.etree.ElementTree as xml

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.service import Service

PHONE = 360

# An A4 page at 96 px per inch, within margins of 1 cm.
PAPER = (718, 1047)


# ---- expected content ------------------------------------------------------------------------------------------


def measurements(runs):
    """Returns the trials of each measurement of requests."""
    found = collections.OrderedDict()
    for at, run in enumerate(runs):
        for step in run["steps"]:
            if "bulk" not in step["settings"]:
                found.setdefault((at, step["measurement"]), []).append(step)
    return list(found.values())


def is_open(step):
    return step["settings"]["planned_rate_per_s"] is not None


def load(step):
    return step["settings"]["planned_rate_per_s"] if is_open(step) else step["settings"]["callers"]


def quantile(step, which, name):
    return step[which][name.replace(".", "_") + "_ns"]


def rate(step):
    settings = step["settings"]
    is_short = settings["requests"] is not None and settings["requests"] < 10 * settings["callers"]
    return None if is_short else step["rate_per_s"]


def estimate(trials, of):
    """Returns the geometric mean over the trials; None where they have no value, or not all have one: which of them are
    compared is for the program to decide."""
    values = [of(step) for step in trials]
    return math.exp(statistics.fmean(map(math.log, values))) if all(values) else None


TIMES = {name: (lambda step, name=name: quantile(step, "response_time", name)) for name in ("p50", "p99", "p99.9")}
COSTS = [lambda step: step["cost"]["client_cpu_us_per_request"], lambda step: (step["cost"]["server"] or {}).get("cpu_us_per_request")]


def name(step):
    return step["label"] or step["target"]


def against_load(runs):
    """Returns points that the charts of requests must have: chart -> [(x, y)]."""
    charts = collections.defaultdict(list)
    kinds = {run["kind"] for run in runs}
    all = measurements(runs)
    loads = collections.defaultdict(set)
    for trials in all:
        if trials[0]["settings"].get("together") is None:
            loads[(name(trials[0]), is_open(trials[0]))].add(load(trials[0]))
    if max(map(len, loads.values()), default=0) > 1:
        sweeps = collections.defaultdict(list)
        for trials in all:
            suffix = "-open" if is_open(trials[0]) else ""
            charts["load" + suffix] += [(load(trials[0]), estimate(trials, of)) for of in [*TIMES.values(), *COSTS]]
            if not kinds & {"proxy", "connect", "bulk"}:
                sweeps["sweep" + suffix].append(trials)
        for chart, measured in sweeps.items():
            # Where the windows are too short for the p99 of one, all have their median.
            has = lambda trials, of: estimate(trials, TIMES[of]) is not None
            is_long = not any(has(trials, "p50") and not has(trials, "p99") for trials in measured)
            of = TIMES["p99" if is_long else "p50"]
            charts[chart] = [(estimate(trials, rate), estimate(trials, of)) for trials in measured]
    elif len(all) > 1 or any(len(trials) > 1 for trials in all):
        if not kinds & {"ab", "quick"}:
            charts["trials"] = [("all", estimate(trials, of)) for trials in all for of in [rate, TIMES["p50"], TIMES["p99"], *COSTS]]
    return {chart: [point for point in points if all_of(point)] for chart, points in charts.items()}


def all_of(point):
    return point[0] is not None and point[1]


PHASES = {"resolve": "resolve", "tcp": "TCP connect", "handshake": "handshake", "http2": "HTTP/2 setup", "first_call": "first call"}


def connect(runs):
    steps = [step for trials in measurements(runs) for step in trials]
    parts = [(PHASES[name], phase["time"]["mean_ns"]) for step in steps for name, phase in step["connect"].items() if name in PHASES]
    return [(name, mean) for name, mean in parts if mean is not None]


def balances(runs):
    """Returns the shares of the CPU time that both sides had, and of idle time, on each set of CPUs over all trials."""
    points = []
    for trials in measurements(runs):
        sums = collections.defaultdict(lambda: collections.Counter())
        for own in [own for step in trials for own in step["cost"].get("balances", [])]:
            parts = {side: (own[side] or {}).get("cpu_seconds", 0) for side in ("client", "server")}
            sums[tuple(own["cpus"]), own["server"] is None].update({**parts, "idle": own["idle_seconds"], "all": own["total_seconds"]})
        points += [(part, seconds / own["all"]) for own in sums.values() for part, seconds in own.items() if part != "all"]
    return [(part, share) for part, share in points if share >= 0.0005]


def compared(runs):
    """Returns points that the charts of a comparison must have: of measurements that both have, in the same order."""
    known = []
    for base, new in list(zip(*(measurements([run]) for run in runs)))[:6]:
        for percent, of in TIMES.items():
            old, changed = (estimate(trials, of) for trials in (base, new))
            if old and changed:
                known.append((float(percent[1:]), changed / old - 1))
    return {"shift-compared": known, "differences-compared": []}


def expected(runs):
    """Returns the charts whose points follow from the files alone, and those points. The others are checked by tests of
    the program, against its own estimates and comparisons."""
    # Of many measurements, a few are shown.
    known = balances(runs) if len(measurements(runs)) <= 32 else []
    if all(run["kind"] == "ladder" for run in runs):
        return {"ladder": [], "balance": known}
    if all(run["kind"] == "quick" for run in runs):
        return {"histogram": [], "balance": known}
    return {**against_load(runs), "connect": connect(runs), "balance": known}


# ---- actual content ---------------------------------------------------------------------------------------------


def check(condition, message):
    if not condition:
        sys.exit(f"page.py: {message}")


def number(text):
    try:
        return float(text)
    except ValueError:
        return legible(text)


def legible(text):
    return "".join("\ufffd" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in text) if isinstance(text, str) else text


def shown(nanoseconds):
    """Formats a time in microseconds with at least three digits."""
    value = nanoseconds / 1e3
    digits = f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"
    return f"{digits} µs"


class Page:
    def __init__(self, path):
        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.address = path.resolve().as_uri()
        self.device(1280, 900)
        self.driver.get(self.address)

    def device(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, scheme, medium=""):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def loads_nothing_else(self):
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                check(url == self.address or url.startswith("data:"), f"the page requests {url}")

    def is_without_errors(self):
        entries = self.driver.get_log("browser")
        check(not entries, f"the console shows {entries}")

    def charts(self):
        # A chart has a second drawing for narrow screens.
        return self.run("""
            for (const folded of document.querySelectorAll("details")) folded.open = true;
            return Object.fromEntries([...document.querySelectorAll("figure[data-chart]")].map((figure) => [
                figure.dataset.chart + (figure.dataset.variant ? `-${figure.dataset.variant}` : ""),
                {
                    points: [...figure.querySelector("svg").querySelectorAll(".pt")].map((p) => [p.dataset.series, p.dataset.x, p.dataset.y]),
                    rows: figure.querySelectorAll("tbody tr").length,
                    label: figure.querySelector("svg[role=img]").getAttribute("aria-label"),
                },
            ]));
        """)

    def is_legible(self, where):
        """Checks every drawing that is shown: its texts, its width, and that the page does not scroll sideways."""
        found = self.run("""
            const [narrowest, clipped, over] = [[], [], []];
            for (const svg of document.querySelectorAll("svg.chart")) {
                const all = svg.getBoundingClientRect();
                if (!all.width) continue;
                const name = svg.closest("figure").dataset.chart;
                // A line of text has room above and below its letters.
                const boxes = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim()).map((text) => {
                    const box = text.getBoundingClientRect();
                    return { text, left: box.left, right: box.right, top: box.top + box.height / 4, bottom: box.bottom - box.height / 4 };
                });
                for (const box of boxes) {
                    if (box.left < all.left - 1 || box.right > all.right + 1) clipped.push(`${name}: ${box.text.textContent}`);
                }
                boxes.sort((a, b) => a.top - b.top);
                boxes.forEach((a, at) => {
                    for (const b of boxes.slice(at + 1)) {
                        if (b.top >= a.bottom) break;
                        if (a.left < b.right - 1 && b.left < a.right - 1) over.push(`${name}: ${a.text.textContent} | ${b.text.textContent}`);
                    }
                });
                const spans = [...svg.querySelectorAll(".grid")].map((grid) => grid.getBoundingClientRect());
                spans.sort((a, b) => a.left - b.left);
                let [used, end] = [0, -Infinity];
                for (const span of spans) {
                    used += Math.max(0, span.right - Math.max(span.left, end));
                    end = Math.max(end, span.right);
                }
                if (spans.length && used < 0.7 * all.width) narrowest.push(`${name}: ${Math.round(used)} of ${Math.round(all.width)} px`);
            }
            return { width: document.documentElement.scrollWidth, narrowest, clipped, over };
        """)
        width = self.run("return innerWidth")
        check(found["width"] <= width, f"the page is {found['width']} px wide {where}, of {width} px")
        check(not found["clipped"], f"text of charts is cut off {where}: {found['clipped'][:5]}")
        check(not found["over"], f"texts of charts cover one another {where}: {found['over'][:5]}")
        check(not found["narrowest"], f"charts leave more than 30 % of their width empty {where}: {found['narrowest'][:5]}")

    def fits_screens_and_paper(self):
        self.is_legible("on a screen")
        self.device(PHONE, 844)
        self.is_legible("on a phone")
        small = self.run("""
            return Math.min(16, ...[...document.querySelectorAll("svg.chart:not(.wide) text")].map((text) =>
                parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width / 400));
        """)
        check(small >= 11.9, f"text of charts is {small:.1f} px high on a phone")
        self.device(*PAPER)
        self.media("light", "print")
        self.is_legible("on paper")
        tall = self.run("""
            const figures = [...document.querySelectorAll("figure")].filter((figure) => !figure.closest("details.more"));
            return Math.max(0, ...figures.map((figure) => figure.getBoundingClientRect().height));
        """)
        check(tall <= PAPER[1], f"a figure is {tall:.0f} px high, and so does not fit on a page")
        self.media("light")
        self.device(1280, 900)

    def screenshot(self, path):
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))


def is_same(a, b):
    numbers = isinstance(a, float | int) and isinstance(b, float | int)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) if numbers else a == b


def hold_points(chart, points, known):
    check(points, f"{chart} has no points")
    drawn = [(number(x), float(y)) for _, x, y in points]
    is_near = lambda a, b: is_same(a[0], b[0]) and is_same(a[1], b[1])
    missing = [(x, y) for x, y in known if not any(is_near((legible(x), y), point) for point in drawn)]
    check(not missing, f"{chart} lacks {missing[:5]}")


def hold_hover(page, chart):
    """Checks that the first, middle and last point show their values on hover."""
    name, _, variant = chart.partition("-")
    of_variant = f'[data-variant="{variant}"]' if variant else ":not([data-variant])"
    figure = page.driver.find_element(By.CSS_SELECTOR, f'figure[data-chart="{name}"]{of_variant}')
    # A part that is too thin to be pointed at lies beside others.
    points = page.run("return [...arguments[0].querySelector('svg').querySelectorAll('.pt')].filter((point) => point.getBoundingClientRect().width >= 2)", figure)
    tip = page.driver.find_element(By.CSS_SELECTOR, ".tip")
    for point in {0: points[0], 1: points[len(points) // 2], 2: points[-1]}.values():
        page.run("arguments[0].scrollIntoView({ block: 'center' })", point)
        page.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        ActionChains(page.driver).move_to_element(point).perform()
        # One point may lie over another.
        top = page.driver.find_element(By.CSS_SELECTOR, ".pt.on")
        away = page.run("""
            const [a, b] = [...arguments].map((point) => point.getBoundingClientRect());
            return Math.hypot(a.x + a.width / 2 - b.x - b.width / 2, a.y + a.height / 2 - b.y - b.height / 2);
        """, point, top)
        check(top == point or away < 12, f"{chart}: a point {away:.0f} px from the pointer shows its value")
        text = tip.text
        check(tip.is_displayed() and text == " ".join(top.get_attribute("aria-label").split()), f"{chart} shows '{text}'")
        if name in ("sweep", "quantiles") and "%" not in text:
            value = shown(float(top.get_attribute("data-y")))
            check(value in text, f"{chart} shows '{text}' for {value}")
    svg = figure.find_element(By.CSS_SELECTOR, "svg")
    page.run("document.activeElement.blur()")
    svg.send_keys(Keys.ARROW_RIGHT)
    check(tip.is_displayed() and page.driver.find_elements(By.CSS_SELECTOR, ".pt.on"), f"{chart} does not follow the arrow keys")
    page.run("document.activeElement.blur()")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path, help="the folder that --svg wrote")
    parser.add_argument("--screenshots", type=pathlib.Path, help="put pictures of the page here")
    options = parser.parse_args()
    runs = [json.loads(path.read_text()) for path in options.runs]
    text = options.page.read_text()
    check(len(text.encode()) < 1_000_000, f"the page has {len(text.encode())} bytes")

    page = Page(options.page)
    try:
        charts = page.charts()
        is_comparison = page.driver.title == "netping compare"
        called_for = {chart: points for chart, points in (compared if is_comparison else expected)(runs).items() if points}
        lacking = called_for.keys() - charts.keys()
        check(not lacking, f"the charts are {sorted(charts)}; the files call for {sorted(lacking)} too")
        for chart, drawn in charts.items():
            hold_points(chart, drawn["points"], called_for.get(chart, []))
            least = 0 if chart == "heatmap" else 1
            check(least <= drawn["rows"] <= len(drawn["points"]), f"the table of {chart} has {drawn['rows']} rows")
            check(drawn["label"], f"{chart} has no label")
        # Without scripts, the browser's own hint shows a point's value.
        total = sum(len(drawn["points"]) for drawn in charts.values())
        check(text.count("<title>") - 1 >= total, "a point has no title")
        page.fits_screens_and_paper()
        for chart in charts:
            hold_hover(page, chart)
        if options.screenshots:
            ActionChains(page.driver).move_to_element(page.driver.find_element(By.TAG_NAME, "h1")).perform()
            options.screenshots.mkdir(parents=True, exist_ok=True)
            page.run("for (const folded of document.querySelectorAll('details')) folded.open = false")
            for scheme in ("light", "dark"):
                for width in (1280, PHONE):
                    page.media(scheme)
                    page.device(width, 900)
                    page.screenshot(options.screenshots / f"{scheme}-{width}.png")
            page.media("dark", "print")
            page.device(*PAPER)
            page.screenshot(options.screenshots / "print.png")
        page.is_without_errors()
        page.loads_nothing_else()
    finally:
        page.driver.quit()
    if options.svg:
        files = {path.stem for path in options.svg.glob("*.svg")}
        check(files == charts.keys(), f"the files in {options.svg} are {sorted(files)}")
        for path in options.svg.glob("*.svg"):
            points = [element for element in xml.parse(path).iter() if element.get("class") == "pt"]
            check(len(points) == len(charts[path.stem]["points"]), f"{path} has {len(points)} points")
    print(f"{options.page}: {len(charts)} charts with {total} points match the files")


if __name__ == "__main__":
    main()
