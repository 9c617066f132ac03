#!/usr/bin/env python3
"""Draws what `tpu demo --record` wrote as a moving picture: `cast_to_svg.py TITLE <demo.cast >picture.svg`.

Each row that is ever seen is drawn once; a frame is a column of references to rows, and one animation goes from frame to
frame. Used by `./x screenshots` only. Needs the package `pyte`.
"""

import json
import sys
from html import escape

import pyte

# Seconds that a frame stays at least, and the last one.
SHORTEST = 1.0
LAST = 6.0
# Size of a cell and of its letters, in pixels.
WIDTH, HEIGHT, LETTERS = 7.22, 15, 12
# Around the screen, and above it for the title.
EDGE, TITLE = 8, 28
BACK, TEXT = "1c1c1c", "dadada"
# The sixteen colours, as the still pictures have them.
NAMED = {
    "black": "282828", "red": "d75f5f", "green": "87af5f", "brown": "d7af5f", "blue": "5f87d7", "magenta": "af87d7",
    "cyan": "5fafaf", "white": "d0d0d0", "brightblack": "767676", "brightred": "ff8787", "brightgreen": "afd787",
    "brightbrown": "ffd75f", "brightblue": "87afff", "brightmagenta": "d7afff", "brightcyan": "87d7d7",
    "brightwhite": "ffffff",
}


# The same by their numbers among 256.
NUMBERED = dict(zip(pyte.graphics.FG_BG_256[:16], NAMED.values()))


def colour(name: str, usual: str) -> str:
    return usual if name == "default" else NAMED.get(name) or NUMBERED.get(name, name)


def row(cells: dict, columns: int) -> str:
    """One row: runs of cells that look alike."""
    runs, column = [], 0
    while column < columns:
        cell = cells[column]
        if cell.data == "":
            # The second half of a wide letter.
            column += 1
            continue
        front, back = colour(cell.fg, TEXT), colour(cell.bg, BACK)
        if cell.reverse:
            front, back = back, front
        look = (front, back, cell.bold, cell.underscore)
        if runs and runs[-1][1] == look:
            runs[-1][2].append(cell.data)
        else:
            runs.append((column, look, [cell.data]))
        column += 1
    drawn = ""
    for begin, (front, back, bold, underscore), letters in runs:
        text, x = "".join(letters), begin * WIDTH
        if back != BACK:
            drawn += f'<rect x="{x:.1f}" width="{len(letters) * WIDTH:.1f}" height="{HEIGHT}" fill="#{back}"/>'
        shown = text.rstrip()
        if not shown:
            continue
        lead = len(shown) - len(shown.lstrip())
        more = (' font-weight="bold"' if bold else "") + (' text-decoration="underline"' if underscore else "")
        fill = "" if front == TEXT else f' fill="#{front}"'
        drawn += (
            f'<text x="{x + lead * WIDTH:.1f}" y="11.5"{fill}{more} textLength="{(len(shown) - lead) * WIDTH:.1f}">'
            f"{escape(shown.lstrip())}</text>"
        )
    return drawn


def main() -> None:
    title = sys.argv[1]
    lines = sys.stdin.read().splitlines()
    header = json.loads(lines[0])
    columns, rows = header["width"], header["height"]
    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    known: dict[str, int] = {}
    frames: list[tuple[float, list[int]]] = []
    taken, end = None, 0.0

    def take(time: float) -> None:
        frame = []
        for line in range(rows):
            drawn = row(screen.buffer[line], columns)
            frame.append(known.setdefault(drawn, len(known)))
        if not frames or frames[-1][1] != frame:
            frames.append((time, frame))

    for line in lines[1:]:
        time, kind, text = json.loads(line)
        if kind != "o":
            continue
        if taken is None:
            taken = time
        if time - taken >= SHORTEST:
            take(taken)
            taken = time
        stream.feed(text)
        end = time
    take(taken if taken is not None else 0.0)
    begin = frames[0][0]
    length = end - begin + LAST
    wide, high = columns * WIDTH, rows * HEIGHT
    steps = "".join(
        f"{(time - begin) / length * 100:.2f}%{{transform:translateX(-{at * wide:.0f}px)}}"
        for at, (time, _) in enumerate(frames)
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide + 2 * EDGE:.0f} {high + TITLE + EDGE:.0f}" '
        f'font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{LETTERS}">',
        f"<title>{escape(title)}</title>",
        f"<style>text{{white-space:pre}}@keyframes play{{{steps}}}"
        f"#film{{animation:play {length:.1f}s steps(1,end) infinite}}"
        # Who wants nothing to move sees how it ends.
        f"@media (prefers-reduced-motion: reduce){{#film{{animation:none;transform:translateX(-{(len(frames) - 1) * wide:.0f}px)}}}}"
        "</style>",
        f'<rect width="100%" height="100%" rx="8" fill="#{BACK}"/>',
        f'<text x="{wide / 2 + EDGE:.0f}" y="19" text-anchor="middle" fill="#8a8a8a">{escape(title)}</text>',
        "<defs>",
    ]
    out += [f'<g id="r{at}">{drawn}</g>' for drawn, at in known.items() if drawn]
    out.append("</defs>")
    out.append(f'<svg x="{EDGE}" y="{TITLE}" width="{wide:.0f}" height="{high}"><g id="film" fill="#{TEXT}">')
    empty = known.get("", -1)
    for at, (_, frame) in enumerate(frames):
        uses = "".join(
            f'<use href="#r{drawn}" y="{line * HEIGHT}"/>' for line, drawn in enumerate(frame) if drawn != empty
        )
        out.append(f'<g transform="translate({at * wide:.0f} 0)">{uses}</g>')
    out.append("</g></svg></svg>")
    sys.stdout.write("\n".join(out) + "\n")


main()
