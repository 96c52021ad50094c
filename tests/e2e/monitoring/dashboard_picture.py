#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the panels of the Grafana dashboard from data that a real Prometheus recorded of a real daemon under load.

The pictures are for visual inspection: is each panel readable, and does it show what its title promises? Debian
has no Grafana, so matplotlib draws the same queries, grid, units and legends in other colors and fonts. Each row
of the dashboard gives one picture. Rows without data, such as rows for GPUs without a GPU, have none. Of a
recording by tests/gpu/scripts/record_metrics.py, only rows with complete data are drawn.

usage: dashboard_picture.py CROUTD_TEST CROUTCTL SECONDS DIRECTORY
       dashboard_picture.py RECORDING DIRECTORY
"""

import datetime
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend was chosen)
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, PercentFormatter  # noqa: E402

from dashboard_loads import Daemon, Loads  # noqa: E402
from prometheus_server import Dashboard, PrometheusServer, wait_until  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
UNIT_INCHES = (0.8, 0.42)  # size of a cell of the grid, which has 24 columns
MAX_LEGENDS = 8
FEW_SERIES = 2
FORMATS = {"s": EngFormatter("s"), "bytes": EngFormatter("B"), "Bps": EngFormatter("B/s"),
           "watt": EngFormatter("W"), "hertz": EngFormatter("Hz"), "celsius": EngFormatter("°C"),
           "percentunit": PercentFormatter(1.0), "reqps": FuncFormatter(lambda y, _: f"{y:g} req/s"),
           "ops": FuncFormatter(lambda y, _: f"{y:g} ops/s"), "sci": FuncFormatter(lambda y, _: f"{y:.0e}")}


def load(daemon, loads, seconds):
    """Runs groups of callers one after the other. Each group repeats its loads for a fifth of the time."""
    def work(names):
        end = time.monotonic() + seconds / 5
        while time.monotonic() < end:
            for name in names:
                getattr(loads, name)()

    # `small` and `failure` have one caller: small requests wait for each other, and the failpoint of a failure
    # must affect the solve for which it is set.
    for names, count in ((["factor", "solve"], 2), (["solve", "solve", "unknown_handle"], 2),
                         (["series", "batches", "solve"], 2), (["small"], 1), (["crowd_out"] + 12 * ["solve"] + ["failure"], 1)):
        callers = [threading.Thread(target=work, args=(names,)) for _ in range(count)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()


def legend(form, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""), form)


def whole_decades(axes):
    """Extends a logarithmic axis to whole powers of ten. If there are few, also labels 2 and 5 times each power."""
    low, high = axes.dataLim.minposy, axes.dataLim.intervaly[1]
    if not 0 < low <= high < math.inf:
        return  # a logarithmic axis cannot show these values
    low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
    high = max(high, low + 1)
    axes.set_ylim(10 ** low, 10 ** high)
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5) if high - low <= 2 else ()))


def draw(panel, axes, series, begin):
    """Draws one panel. `series` is a list of (legend, times, values)."""
    axes.set_title(panel["title"], loc="left", fontsize=10, fontweight="bold")
    if panel["type"] == "stat":
        value = series[0][2][-1] if series else 0
        axes.axis("off")
        axes.text(0.5, 0.5, f"{value:g}", fontsize=28, ha="center", va="center")
        return
    for name, times, values in series:
        # If there are many series, those that are always zero are not in the legend.
        labelled = len(series) <= FEW_SERIES or any(v and not math.isnan(v) for v in values)
        style = {"label": name} if labelled else {"color": "lightgray"}
        axes.plot([t - begin for t in times], values, linewidth=1, clip_on=False, **style)
    if not axes.get_legend_handles_labels()[0]:
        said = "zero all the time" if series else "no data"
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", color="gray")
    defaults = panel["fieldConfig"]["defaults"]
    logarithmic = defaults.get("custom", {}).get("scaleDistribution", {}).get("type") == "log"
    if logarithmic and series:
        axes.set_yscale("log")
        whole_decades(axes)
    elif "min" in defaults:
        axes.set_ylim(bottom=defaults["min"])
    if defaults["unit"] in FORMATS:
        axes.yaxis.set_major_formatter(FORMATS[defaults["unit"]])
        axes.yaxis.set_minor_formatter(FORMATS[defaults["unit"]])
    axes.tick_params(which="both", labelsize=8)
    axes.grid(linewidth=0.3)
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[:MAX_LEGENDS], names[:MAX_LEGENDS], fontsize=7, loc="upper left", framealpha=0.6)


def rows_of(dashboard):
    """Returns (title, panels) of each row, in order."""
    rows = []
    for panel in sorted(dashboard.model["panels"], key=lambda p: (p["gridPos"]["y"], p["gridPos"]["x"])):
        if panel["type"] == "row":
            rows.append((panel["title"], []))
        else:
            rows[-1][1].append(panel)
    return rows


def picture(title, panels, answers, begin, path, caption):
    first = min(p["gridPos"]["y"] for p in panels)
    rows = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) - first + 2
    figure = plt.figure(figsize=(24 * UNIT_INCHES[0], rows * UNIT_INCHES[1]), dpi=60)
    figure.text(0.01, 1 - 0.8 / rows, title, fontsize=14, fontweight="bold")
    for panel in panels:
        pos = panel["gridPos"]
        bottom = 1 - (pos["y"] - first + 1 + pos["h"] - 0.9) / rows
        box = [(pos["x"] + 1.1) / 24, bottom, (pos["w"] - 1.5) / 24, (pos["h"] - 2) / rows]
        draw(panel, figure.add_axes(box), answers[panel["title"]], begin)
    figure.text(0.99, 0.2 / rows, caption, fontsize=9, ha="right")
    figure.savefig(path)
    plt.close(figure)


def ask(prometheus, begin, end):
    """Returns (the dashboard, {title of a panel: [(legend, times, values)]})."""
    dashboard = Dashboard(ROOT / "deploy/grafana/dashboards/crout.json")
    queries = dashboard.queries(dashboard.variables(prometheus), rate_interval="10s")
    answers = {panel["title"]: [] for panel in dashboard.panels}
    for panel in dashboard.panels:
        for target in panel["targets"]:
            for labels, times, values in prometheus.query_range(queries[panel["title"], target["refId"]], begin, end):
                answers[panel["title"]].append((legend(target["legendFormat"], labels), times, values))
    return dashboard, answers


def pictures(dashboard, answers, is_drawn, begin, directory, caption):
    for title, panels in rows_of(dashboard):
        if is_drawn(bool(answers[panel["title"]]) for panel in panels):
            name = re.sub(r"\W+", "_", title.lower())
            picture(title, panels, answers, begin, pathlib.Path(directory) / f"dashboard_{name}.png", caption)


def of_a_daemon(croutd_test, croutctl, seconds, directory):
    with tempfile.TemporaryDirectory() as scratch:
        work_dir = pathlib.Path(scratch)
        daemon = Daemon(croutd_test, croutctl, work_dir)
        prometheus = PrometheusServer("prometheus", ROOT / "deploy/prometheus", daemon.metrics, work_dir)
        try:
            loads = Loads(daemon, None, work_dir)
            wait_until(lambda: prometheus.query("count_over_time(up[1m]) > 4"), "five scrapes")
            begin = time.time()
            loads.factor()
            load(daemon, loads, seconds)
            dashboard, answers = ask(prometheus, begin, time.time())
            device = daemon.ctl("devices", "--json")[1]
            name = re.search(r'"description": *"([^"]*)"', device).group(1)
        finally:
            prometheus.stop()
            daemon.stop()
    caption = f"host ({name}), {datetime.date.today()}, {seconds:g} s of load, one scrape a second; axes below in seconds"
    pictures(dashboard, answers, any, begin, directory, caption)


def open_metrics(recording):
    """Returns a recording as a text in the OpenMetrics format, from which Prometheus can create its storage."""
    lines = []
    for series, values in recording["series"].items():
        labeled = re.sub(r"\{|$", '{instance="recorded",job="crout",', series, count=1)
        labeled = labeled if labeled.endswith("}") else labeled + "}"
        lines += [f"{labeled} {value} {when}" for when, value in zip(recording["times"], values) if value is not None]
    return "\n".join(lines) + "\n# EOF\n"


def of_a_recording(path, directory):
    recording = json.loads(pathlib.Path(path).read_text())
    begin, end = recording["times"][0], recording["times"][-1]
    with tempfile.TemporaryDirectory() as scratch:
        work_dir = pathlib.Path(scratch)
        text = work_dir / "recording.txt"
        text.write_text(open_metrics(recording))
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", text, work_dir / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        prometheus = PrometheusServer("prometheus", ROOT / "deploy/prometheus", "127.0.0.1:1", work_dir)
        try:
            dashboard, answers = ask(prometheus, begin, end)
        finally:
            prometheus.stop()
    caption = (f"{recording['device']}, {recording['date']}, {recording['version']}, recorded once a second; "
               "axes below in seconds")
    pictures(dashboard, answers, all, begin, directory, caption)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        of_a_recording(*sys.argv[1:])
    else:
        of_a_daemon(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
