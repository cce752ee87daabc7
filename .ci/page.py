#!/usr/bin/python3
"""Opens a page of `netping report --html` in a browser and compares it with its result files.

    .ci/page.py PAGE.html RUN.json... [--svg DIR] [--screenshots DIR]

Needs Debian's python3-selenium, chromium and chromium-driver, and so Debian's own Python. The
expected content is computed here from the JSON alone; no code is shared with the program.
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

PHONE = 390


# ---- expected content ------------------------------------------------------------------------------------------


def series(runs):
    """Groups steps into the lines of a chart: by run, target, label and any other setting that varies."""
    found = collections.OrderedDict()
    for at, run in enumerate(runs):
        callers, connections = collections.defaultdict(set), collections.defaultdict(set)
        for step in run["steps"]:
            settings, of = step["settings"], (step["target"], step["label"])
            callers[of, settings["planned_rate_per_s"]].add(settings["callers"])
            connections[of, settings["planned_rate_per_s"], settings["callers"]].add(settings["connections"])
        for step in run["steps"]:
            settings, of, opened = step["settings"], (step["target"], step["label"]), is_open(step)
            varied = lambda sets: any(key[0] == of and (key[1] is not None) == opened and len(s) > 1 for key, s in sets.items())
            apart = (opened and varied(callers) and settings["callers"], varied(connections) and settings["connections"])
            found.setdefault((at, *of, *apart), []).append(step)
    return list(found.values())


def best(steps):
    """Returns all trials of the load with the highest mean rate; the largest load wins a tie."""
    loads = collections.defaultdict(list)
    for step in steps:
        settings = step["settings"]
        loads[(settings["callers"], settings["planned_rate_per_s"] or 0, settings["connections"])].append(step)
    return max(sorted(loads.items()), key=lambda load: (statistics.fmean(s["rate_per_s"] for s in load[1]), load[0]))[1]


def is_open(step):
    return step["settings"]["planned_rate_per_s"] is not None


def load(step):
    return step["settings"]["planned_rate_per_s"] if is_open(step) else step["settings"]["callers"]


def quantile(step, which, name):
    return step[which][name.replace(".", "_") + "_ns"]


def against_load(runs):
    """Returns the points of the throughput and latency charts: chart -> [(x, y)]."""
    charts = collections.defaultdict(list)
    for step in (step for run in runs for step in run["steps"]):
        suffix = "-open" if is_open(step) else ""
        cost = step["cost"]
        values = [step["rate_per_s"], cost["client_cpu_us_per_request"], (cost["server"] or {}).get("cpu_us_per_request")]
        values.append(quantile(step, "response_time", "p99"))
        charts["throughput" + suffix] += [(load(step), value) for value in values if value is not None]
        kinds = ["response_time", "service_time"] if is_open(step) else ["response_time"]
        values = [quantile(step, kind, name) for kind in kinds for name in ("p50", "p99", "p99.9")]
        charts["latency" + suffix] += [(load(step), value) for value in values if value is not None]
    return charts


def curve_points(count):
    """Counts the round quantiles that have ten samples beyond them."""
    within = [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.25, 8]
    return sum(1 for nines in range(12) for mantissa in within if mantissa * 10**nines <= count / 10 * (1 + 1e-9))


def curves(runs):
    """Returns the number of points of the quantile curves, and values that must be among them."""
    count, known = 0, []
    for steps in map(best, series(runs)):
        for kind in ["response_time", "service_time"] if is_open(steps[0]) else ["service_time"]:
            count += curve_points(sum(step[kind]["count"] for step in steps))
            if len(steps) == 1:
                values = ((p, quantile(steps[0], kind, p)) for p in ("p50", "p75", "p90", "p95", "p99", "p99.9"))
                known += [(float(p[1:]), value) for p, value in values if value is not None]
    return count, known


def most_points(lines):
    return max(240 // max(lines, 1), 24)


def gapless(intervals):
    """Adds the first and the last second of each gap, in which no reply ended."""
    shown, following = [], 0
    for interval in intervals:
        idle = {following, interval["start_ns"] - 10**9} if interval["start_ns"] >= following + 10**9 else ()
        shown += [{"ok": 0, "response_p50_ns": None, "response_p99_ns": None, "response_max_ns": None} for _ in idle] + [interval]
        following = interval["start_ns"] + interval["length_ns"]
    return shown


def over_time(runs):
    within = lambda step: [i for i in step["intervals"] if i["length_ns"] > 0]
    lines = [gapless(within(step)) for steps in series(runs) for step in best(steps) if len(within(step)) > 1]
    counts = []
    for field in ("ok", "response_p50_ns", "response_p99_ns", "response_max_ns"):
        for line in lines:
            shown = sum(interval[field] is not None for interval in line)
            each = max(math.ceil(shown / most_points(len(lines))), 1)
            counts.append(math.ceil(shown / each))
    return sum(counts)


def heatmap(runs):
    """Returns the cells: the start of each column's seconds, and the responses in a bucket."""
    tail = lambda step: quantile(step, "response_time", "p99") or -math.inf
    within = lambda step: [i for i in step["intervals"] if i["length_ns"] > 0]
    has_times = lambda step: len(within(step)) > 1 and any(i.get("response_buckets") for i in within(step))
    shown = [list(filter(has_times, best(steps))) for steps in series(runs)]
    shown = [max(reversed(steps), key=tail) for steps in shown if steps][:8]
    most = min(max(120 // max(len(shown), 1), 15), 60)
    cells = []
    for step in shown:
        each = math.ceil(len(within(step)) / most)
        columns = collections.defaultdict(collections.Counter)
        for second in within(step):
            columns[second["start_ns"] // 10**9 // each].update(second.get("response_buckets", {}))
        cells += [(number * each * 10**9, count) for number, column in columns.items() for count in column.values()]
    return cells


def is_ladder(run):
    words = (word for word in run["command_line"][1:] if not word.startswith("-"))
    return next(words, None) == "ladder"


def ladder(runs):
    rows = collections.defaultdict(list)
    for at, run in enumerate(runs):
        for step in run["steps"] if is_ladder(run) else ():
            settings = step["settings"]
            callers, connections = settings["callers"], settings["connections"]
            value = quantile(step, "service_time", "p50") if callers == 1 else step["rate_per_s"]
            if value is not None:
                load = (callers, connections if connections < callers else None, settings.get("message"))
                rows[at, step["label"], load].append((callers, value))
    points = [point for row in rows.values() for point in row]
    return points + [("median", sorted(value for _, value in row)[len(row) // 2]) for row in rows.values()]


def ladder_differences(runs):
    return [(one["base"], one["relative"]) for run in runs for one in run.get("differences", [])]


PHASES = {"resolve": "resolve", "tcp": "TCP connect", "handshake": "handshake", "http2": "HTTP/2 setup", "first_call": "first call"}


def connect(runs):
    steps = [step for run in runs for step in run["steps"]]
    parts = [(PHASES[name], phase["time"]["mean_ns"]) for step in steps for name, phase in step["connect"].items() if name in PHASES]
    return [(name, mean) for name, mean in parts if mean is not None]


def bulk(runs):
    points = []
    for step in (step for run in runs for step in run.get("bulk", [])):
        points += [(at + 1, one["gib_per_second"]) for at, one in enumerate(step["runs"])]
        if step["summary"]:
            points.append(("mean", step["summary"]["gib_per_second"]["mean"]))
            sides = [(side, step["summary"][f"{side}_cpu_seconds_per_gib"]) for side in ("client", "server")]
            points += [side for side in sides if side[1] is not None]
    return points


def overhead(runs):
    return [(one["measure"], one["added_us"]) for run in runs for one in run.get("overheads", [])]


def fairness(runs):
    lines = [best(steps)[0]["fairness"] for steps in series(runs)]
    lines = [line["connections"] for line in lines if line and line["connections"]]
    count = 0
    for line in lines:
        each = max(math.ceil(len(line) / most_points(len(lines))), 1)
        count += len({*range(0, len(line), each), len(line) - 1})
    return count


def trial_differences(runs):
    """Counts the differences of targets to the first, by each metric of which both have values."""
    steps = [step for run in runs for step in run["steps"]]
    if len(runs) > 1 or any(run.get("overheads") for run in runs) or all(step["trial"] == 1 for step in steps):
        return 0
    measures = [
        lambda step: step["rate_per_s"],
        lambda step: quantile(step, "response_time", "p50"),
        lambda step: quantile(step, "response_time", "p99"),
        lambda step: (step["cost"]["server"] or {}).get("cpu_us_per_request"),
    ]
    asked = lambda step: (step["settings"]["callers"], step["settings"]["planned_rate_per_s"])
    first, *others = series(runs)
    count = 0
    for other in others:
        for load in {asked(step) for step in other}:
            base, own = ([step for step in steps if asked(step) == load] for steps in (first, other))
            count += sum(all(measure(step) for step in base + own) for measure in measures) if base else 0
    return count


QUANTILES = ("p1", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "p99.999")


def compared(runs):
    """Returns the points that the charts of a comparison may have, and those that they must have: of steps that were
    made once each, in the same order."""
    base, new = (run["steps"] for run in runs)
    may, must = collections.defaultdict(set), collections.defaultdict(list)
    for at, (first, second) in enumerate(zip(base, new)):
        values = lambda step: {name: quantile(step, "response_time", name) for name in QUANTILES}
        others = lambda step: [step["rate_per_s"], (step["cost"]["server"] or {}).get("cpu_us_per_request")]
        old, changed = values(first), values(second)
        for name in QUANTILES:
            if old[name] and changed[name]:
                share = (changed[name] - old[name]) / old[name]
                # Of more measurements than six, the curves are left out.
                must["quantiles-compared"] += [(float(name[1:]), share)] if at < 6 else []
                may["differences-compared"].add(("base", share))
        for a, b in zip(others(first), others(second)):
            if a and b:
                may["differences-compared"].add(("base", (b - a) / a))
    return may, must


def expected(runs):
    """Returns chart -> (number of points, values that must be among them)."""
    exact = {"ladder": ladder(runs), "ladder-differences": ladder_differences(runs)}
    if all(map(is_ladder, runs)):
        return {name: (len(points), points) for name, points in exact.items() if points}
    exact |= {**against_load(runs), "connect": connect(runs), "bulk": bulk(runs), "overhead": overhead(runs)}
    charts = {name: (len(points), points) for name, points in exact.items()}
    charts |= {"differences-trials": (trial_differences(runs), [])}
    charts |= {"heatmap": (len(heatmap(runs)), heatmap(runs))}
    charts |= {"quantiles": curves(runs), "time": (over_time(runs), []), "fairness": (fairness(runs), [])}
    return {name: chart for name, chart in charts.items() if chart[0] > 0}


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


def shown(value, unit):
    """Formats a value with at least three digits, in a suitable unit."""
    def digits(value):
        return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"
    if unit == "req/s":
        return f"{value:,.0f} req/s"
    for limit, factor, name in [(999_500, 1e3, "µs"), (999_500_000, 1e6, "ms"), (math.inf, 1e9, "s")]:
        if value < limit:
            return f"{digits(value / factor)} {name}"


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
        return self.run("""
            return Object.fromEntries([...document.querySelectorAll("figure[data-chart]")].map((figure) => [
                figure.dataset.chart + (figure.dataset.variant ? `-${figure.dataset.variant}` : ""),
                {
                    points: [...figure.querySelectorAll(".pt")].map((p) => [p.dataset.series, p.dataset.x, p.dataset.y]),
                    rows: figure.querySelectorAll("tbody tr").length,
                    label: figure.querySelector("svg[role=img]").getAttribute("aria-label"),
                },
            ]));
        """)

    def fits_a_phone(self):
        self.device(PHONE, 844)
        width = self.run("return document.documentElement.scrollWidth")
        check(width <= PHONE, f"the page is {width} px wide on a screen of {PHONE} px")
        small = self.run("""
            return Math.min(16, ...[...document.querySelectorAll("svg.chart text")].map((text) =>
                parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width / 400));
        """)
        check(small >= 13, f"text of charts is {small:.1f} px high on a phone")
        wide = self.run("""
            return [...document.querySelectorAll("svg.chart text")].filter((text) => {
                const [own, all] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
                return own.left < all.left - 1 || own.right > all.right + 1;
            }).map((text) => text.textContent);
        """)
        check(not wide, f"text of charts is cut off on a phone: {wide[:5]}")
        self.device(1280, 900)

    def screenshot(self, path):
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))


def hold_points(chart, points, count, known):
    check(len(points) == count, f"{chart} has {len(points)} points; the files hold {count}")
    drawn = collections.Counter((number(x), float(y)) for _, x, y in points)
    called_for = collections.Counter((legible(x), float(y)) for x, y in known)
    check(not called_for - drawn, f"{chart} lacks {list((called_for - drawn).items())[:5]}")
    if len(known) == count:
        check(not drawn - called_for, f"{chart} shows points that are in no file: {list((drawn - called_for).items())[:5]}")


def hold_hover(page, chart):
    """Checks that the first, middle and last point show their values on hover."""
    name, _, variant = chart.partition("-")
    of_variant = f'[data-variant="{variant}"]' if variant else ":not([data-variant])"
    figure = page.driver.find_element(By.CSS_SELECTOR, f'figure[data-chart="{name}"]{of_variant}')
    points = figure.find_elements(By.CSS_SELECTOR, ".pt")
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
        unit = "req/s" if name == "throughput" and "req/s" in text.split(": ")[-1] else "ns"
        is_change = text.endswith("%") or text.endswith("%)")
        if (name in ("latency", "quantiles", "connect") and not is_change) or unit == "req/s":
            value = shown(float(top.get_attribute("data-y")), unit)
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
        if page.driver.title == "netping compare":
            may, must = compared(runs)
            drawn = {chart: [(number(x), float(y)) for _, x, y in charts[chart]["points"]] for chart in charts}
            others = set(drawn["differences-compared"]) - may["differences-compared"]
            check(not others, f"the comparison shows {others}, which the files do not")
            called_for = {chart: (len(points), must[chart]) for chart, points in drawn.items()}
        else:
            called_for = expected(runs)
        check(charts.keys() == called_for.keys(), f"the charts are {sorted(charts)}; the files call for {sorted(called_for)}")
        for chart, (count, known) in called_for.items():
            hold_points(chart, charts[chart]["points"], count, known)
            least = 0 if chart == "heatmap" else 1
            check(least <= charts[chart]["rows"] <= count, f"the table of {chart} has {charts[chart]['rows']} rows")
            check(charts[chart]["label"], f"{chart} has no label")
        # Without scripts, the browser's own hint shows a point's value.
        total = sum(count for count, _ in called_for.values())
        check(text.count("<title>") - 1 >= total, "a point has no title")
        page.fits_a_phone()
        for chart in called_for:
            hold_hover(page, chart)
        if options.screenshots:
            ActionChains(page.driver).move_to_element(page.driver.find_element(By.TAG_NAME, "h1")).perform()
            options.screenshots.mkdir(parents=True, exist_ok=True)
            for scheme in ("light", "dark"):
                for width in (1280, PHONE):
                    page.media(scheme)
                    page.device(width, 900)
                    page.screenshot(options.screenshots / f"{scheme}-{width}.png")
            page.media("dark", "print")
            page.device(800, 1100)
            page.screenshot(options.screenshots / "print.png")
        page.is_without_errors()
        page.loads_nothing_else()
    finally:
        page.driver.quit()
    if options.svg:
        files = {path.stem for path in options.svg.glob("*.svg")}
        check(files == called_for.keys(), f"the files in {options.svg} are {sorted(files)}")
        for path in options.svg.glob("*.svg"):
            points = [element for element in xml.parse(path).iter() if element.get("class") == "pt"]
            check(len(points) == called_for[path.stem][0], f"{path} has {len(points)} points")
    print(f"{options.page}: {len(called_for)} charts with {total} points match the files")


if __name__ == "__main__":
    main()
