# SPDX-License-Identifier: BSD-2-Clause
"""Ratios as a plot in SVG: one line for each row, with its range, the point of equality, and the goal.

The scale is logarithmic, so that twice as much and half as much are equally far from 1. Rows of which less is better are drawn
with the ratio turned around: right of the middle is always better."""
import math
from xml.sax.saxutils import escape

LINE, LEFT, WIDTH, TOP = 22, 380, 460, 78
FONT = 'font-family="sans-serif" font-size="12"'


def _turned(row):
    """(ratio, low, high, goal or None) with more being better, within what a plot can show."""
    values = [min(max(v, 1 / 1024), 1024) for v in (row.ratio, row.low, row.high)]
    goal = float(row.goal.split()[1]) if row.goal else None
    if row.better == "higher":
        return *values, goal
    ratio, low, high = (1 / v for v in values)
    return ratio, high, low, 1 / goal if goal else None


def _text(x, y, text, more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {FONT} {more}>{escape(text)}</text>'


def _line(x1, y1, x2, y2, colour, width=1, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}" {more}/>'


def _row(row, y, x_of):
    ratio, low, high, goal = _turned(row)
    colour = "#999" if row.loaded else "#1b7837" if ratio >= 1 else "#b2182b"
    out = [_text(LEFT - 12, y + 4, f"{row.test}, {row.quantity}", 'text-anchor="end"'), _line(x_of(low), y, x_of(high), y, colour, 2),
           f'<circle cx="{x_of(ratio):.1f}" cy="{y}" r="4.5" fill="{colour}"/>',
           _text(LEFT + WIDTH + 14, y + 4, f"{ratio:.2f}" + (" (loaded)" if row.loaded else ""))]
    if goal:
        out.append(_line(x_of(goal), y - 8, x_of(goal), y + 8, "#2166ac", 2))
    return out


def svg(title, conditions, rows):
    values = [v for r in rows for v in _turned(r) if v]
    limit = max([1.0, *(abs(math.log2(v)) for v in values)]) * 1.05
    height = TOP + LINE * len(rows) + 34

    def x_of(v):
        return LEFT + WIDTH * (0.5 + math.log2(v) / limit / 2)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 130}" height="{height}">',
           '<rect width="100%" height="100%" fill="white"/>', _text(16, 22, title, 'font-weight="bold"'), _text(16, 40, conditions),
           _text(16, 58, "how many times better than the other server; bar: range of the pairs; blue: goal; grey: the host was loaded")]
    for power in range(-math.floor(limit), math.floor(limit) + 1):
        x = x_of(2.0**power)
        out.append(_line(x, TOP - 8, x, height - 26, "#333" if power == 0 else "#ddd"))
        out.append(_text(x, height - 10, f"{2.0 ** power:g}", 'text-anchor="middle"'))
    for i, row in enumerate(rows):
        out += _row(row, TOP + LINE * i + 6, x_of)
    return "\n".join([*out, "</svg>", ""])
