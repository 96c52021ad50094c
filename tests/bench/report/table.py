# SPDX-License-Identifier: Apache-2.0
"""Tables as Markdown or HTML, and the format of their numbers."""

import dataclasses
import html
import math


@dataclasses.dataclass
class Table:
    title: str
    header: list
    rows: list
    note: str = ""

    def markdown(self, level=3):
        lines = [f"{'#' * level} {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| " + " | ".join(map(_escape, self.header)) + " |")
        lines.append("|---|" + "---:|" * (len(self.header) - 1))
        lines += ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def html(self):
        def row(cells, tag):
            inner = "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        body = "\n".join(row(cells, "td") for cells in self.rows)
        return (f"<h3>{html.escape(self.title)}</h3>{note}\n<div class=\"table\"><table>"
                f"<thead>{row(self.header, 'th')}</thead>\n<tbody>{body}</tbody></table></div>")


def _escape(cell):
    return str(cell).replace("|", "\\|")


def number(value, digits=3):
    """Formats a number with significant digits, without an exponent if that is short. None is a dash."""
    if value is None:
        return "–"
    if isinstance(value, (bool, str)):
        return {True: "yes", False: "no"}.get(value, value)
    if isinstance(value, int):
        return str(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits - 1}e}"


def milliseconds(seconds):
    return number(None if seconds is None else 1e3 * seconds)


def times(ratio):
    return "–" if ratio is None else f"{number(ratio)}×"


def count(number_of, noun):
    return f"{number_of} {noun}" + ("" if number_of == 1 else "s")


def mean(values):
    return sum(values) / len(values) if values else None


def deviation(values):
    """Returns the standard deviation of the values, which are the whole population."""
    if not values:
        return None
    return math.sqrt(sum((value - mean(values)) ** 2 for value in values) / len(values))


def quantile(values, share):
    """Returns a quantile by linear interpolation between the sorted values, or None without values."""
    if not values:
        return None
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])
