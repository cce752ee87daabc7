#!/usr/bin/env python3
"""What `lab test` reads from result files: checks.py CHECK FOLDER [ARGUMENT], or name CHECK."""

import glob
import http.server
import json
import os
import re
import sys
import urllib.request


def page(folder):
    """one page has all runs"""
    html = open(f"{folder}/index.html").read()
    runs = [os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{folder}/*/run.yml")]
    missing = [run for run in runs if f"{run.replace('+', '%2B')}/run.html" not in html]
    assert not missing, f"without {missing}"
    assert not glob.glob(f"{folder}/*.failed") + glob.glob(f"{folder}/*.unfinished")
    return f"{len(runs)} runs, {len(html) // 1024} KiB"


def lag(folder):
    """clients in step begin at one moment, and send requests within 1 ms of when they are due (median)"""
    lags = []
    for run in in_step(folder):
        for files in by_name(run).values():
            for steps in zip(*(json.load(open(path))["steps"] for path in files)):
                assert len({step["window_started_at"] for step in steps}) == 1, "several moments"
                lags += [step["lag"]["p50_ns"] for step in steps if step["settings"]["arrivals"] != "closed"]
    assert lags and max(lags) < 1_000_000, f"{[round(own / 1000) for own in lags]} us"
    return f"at most {max(lags) / 1000:,.0f} us over {len(lags)} clients and steps"


def counts(folder):
    """the sum has all requests of its clients, and the servers counted as many"""
    said = []
    for run in in_step(folder):
        sent = {}
        for name, files in by_name(run).items():
            clients = [json.load(open(path))["steps"] for path in files]
            for merged, *parts in zip(json.load(open(f"{run}/{name}"))["steps"], *clients):
                for field in ("scheduled", "ok", "outside_ok", "outside_errors"):
                    total = sum(part[field] for part in parts)
                    assert merged[field] == total, f"{name} {field}: {merged[field]}, clients {total}"
                port = int(merged["target"].rsplit(":", 1)[1])
                # Each client makes a first call before a step.
                requests = merged["scheduled"] + merged["outside_ok"] + merged["outside_errors"] + len(parts)
                sent[port] = sent.get(port, 0) + requests
        for path in glob.glob(f"{run}/*/*.metrics"):
            text = open(path).read()
            port = {"tokio.metrics": 8004, "grpc.metrics": 8005}.get(os.path.basename(path))
            if port:
                assert served_of(text) == sent[port], f"{path}: {served_of(text)}, clients {sent[port]}"
                said.append(f"{sent[port]:,}")
    return ", ".join(said)


def quantiles(folder):
    """p99 of the sum is that of an independent merge of the clients' histogram logs"""
    try:
        from hdrh.histogram import HdrHistogram
        from hdrh.log import HistogramLogReader
    except ImportError:
        return "SKIPPED: needs `pip install hdrhistogram`"
    said = []
    for run in in_step(folder):
        steps = json.load(open(f"{run}/throughput.json"))["steps"]
        sums = {}
        for path in glob.glob(f"{run}/client-*/throughput.hlog"):
            for line in open(path):
                if line.startswith("Tag=") and ";response_time," in line:
                    tag, *_, encoded = line.strip().split(",")
                    part = HdrHistogram.decode(encoded)
                    target = tag[len("Tag="):].split(";")[0]
                    sums.setdefault(target, HdrHistogram(1, 10**12, 3)).add(part)
        for step in steps:
            independent = sums[step["target"]].get_value_at_percentile(99)
            ours = step["response_time"]["p99_ns"]
            assert independent == ours, f"{step['target']}: {ours}, independent {independent}"
            said.append(f"{ours:,} ns")
    return ", ".join(said)


def delay(folder, milliseconds):
    """the delay of the link across zones is in the round trips, to within 5 %"""
    pairs = {"localhost": "server--server", "one zone": "client-1--server", "across zones": "client-1--far"}
    times = {
        name: json.load(open(f"{folder}/smoke-alone--{pair}/latency.json"))["steps"][0]["response_time"]
        for name, pair in pairs.items()
    }
    # Of the fastest round trips: what delays others is the machine, which all hosts share.
    difference = (times["across zones"]["min_ns"] - times["one zone"]["min_ns"]) / 1e6
    said = ", ".join(f"{name} min {t['min_ns'] / 1e6:.3f}, p50 {t['p50_ns'] / 1e6:.3f} ms" for name, t in times.items())
    assert abs(difference / float(milliseconds) - 1) <= 0.05, f"{difference:.3f} ms: {said}"
    return f"{difference:.3f} of {milliseconds} ms: {said}"


def differences(folder):
    """the page leads to the differences between pairs of hosts"""
    links = re.findall(r'href="([^"/]*)">differences', open(f"{folder}/index.html").read())
    assert sorted(links) == ["smoke-alone--bulk.html", "smoke-alone--latency.html"], links
    for link in links:
        text = open(f"{folder}/{link}").read()
        assert text.count(" against ") >= 2, f"{link}: not two pairs against the first"


def gateway(port, file):
    """a Pushgateway that writes the path of each push to a file, and whether it was the last one of a step"""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            running = re.search(r"^netping_running.* ([01])(\.0)?$", text, re.M)[1]
            with open(file, "a") as pushes:
                pushes.write(f"{self.path} {running}\n")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    http.server.HTTPServer(("", int(port)), Handler).serve_forever()


def pushed(file):
    """each client pushes live numbers, and its last ones"""
    pushes = open(file).read().split("\n")
    for client in "client-1", "client-2":
        own = [push.split()[1] for push in pushes if push.startswith(f"/metrics/job/netping/instance/{client} ")]
        assert {"0", "1"} <= set(own) and own[-1] == "0", f"{client}: {own}"
    return f"{len(pushes) - 1} pushes"


def in_step(folder):
    """The folders of whole runs with several clients."""
    runs = [os.path.dirname(path) for path in glob.glob(f"{folder}/*/run.html")]
    runs = [run for run in runs if len(glob.glob(f"{run}/client-*")) > 1]
    assert runs, "no run of several clients"
    return runs


def by_name(run):
    files = {}
    for path in sorted(glob.glob(f"{run}/client-*/*.json")):
        files.setdefault(os.path.basename(path), []).append(path)
    return files


def served_of(metrics):
    return int(re.search(r"^netping_requests_total (\d+)", metrics, re.M)[1])


def served(url, at_least):
    """a server has served some requests"""
    text = urllib.request.urlopen(url, timeout=1).read().decode()
    assert served_of(text) >= int(at_least)


if __name__ == "__main__":
    check, *arguments = sys.argv[1:]
    if check == "name":
        print(globals()[arguments[0]].__doc__)
        sys.exit()
    try:
        print(globals()[check](*arguments) or "", end="")
    except (AssertionError, OSError) as error:
        sys.exit(str(error))
