# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML page with embedded pictures."""

import html

from report import results as r

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1d1f; max-width: 1180px; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1rem; margin-bottom: 0.3rem; } p { margin: 0.2rem 0 0.6rem; color: #444; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.82rem; }
td, th { padding: 0.2rem 0.7rem; border-bottom: 1px solid #e4e4e4; text-align: right; }
td { white-space: nowrap; font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; } th { vertical-align: bottom; }
tbody tr:hover { background: #f4f7fb; } svg { max-width: 100%; height: auto; margin: 0.8rem 0; }
"""


def head(results):
    rows = [f"<li>{html.escape(r.device_label(x))}: {html.escape(x['device'])}, commit "
            f"<code>{html.escape(x['commit'])}</code>, {html.escape(x['date'])}, "
            f"{x['repetitions']} repetitions ({html.escape(x['file'])})</li>" for x in results]
    return "<ul>" + "".join(rows) + "</ul>"


def page(results, figures, tables):
    """Returns the page. `figures` is [(heading, [svg])], and `tables` has tables of report.table."""
    parts = [f"<h1>LU factorization with Crout</h1>{head(results)}"]
    for heading, pictures in figures:
        parts.append(f"<h2>{html.escape(heading)}</h2>" + "\n".join(pictures))
    parts.append("<h2>Tables</h2>" + "\n".join(table.html() for table in tables))
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            f"<title>Crout benchmark</title><style>{STYLE}</style></head>\n<body>"
            + "\n".join(parts) + "</body></html>\n")
