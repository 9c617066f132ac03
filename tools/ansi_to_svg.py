#!/usr/bin/env python3
"""Draws a terminal's screen, captured with its colours, as SVG: `ansi_to_svg.py TITLE THEME <screen >picture`.

Used by `./x screenshots` only. Needs the package `rich`.
"""

import io
import re
import sys

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme

# Background, text, and the sixteen colours of the terminal in which the program was looked at.
THEMES = {
    "dark": TerminalTheme(
        (28, 28, 28),
        (218, 218, 218),
        [(40, 40, 40), (215, 95, 95), (135, 175, 95), (215, 175, 95), (95, 135, 215), (175, 135, 215), (95, 175, 175), (208, 208, 208)],
        [(118, 118, 118), (255, 135, 135), (175, 215, 135), (255, 215, 135), (135, 175, 255), (215, 175, 255), (135, 215, 215), (255, 255, 255)],
    ),
    "light": TerminalTheme(
        (238, 238, 238),
        (38, 38, 38),
        [(0, 0, 0), (175, 0, 0), (0, 110, 0), (135, 95, 0), (0, 70, 175), (120, 40, 150), (0, 110, 120), (90, 90, 90)],
        [(110, 110, 110), (200, 30, 30), (0, 130, 0), (150, 110, 0), (0, 90, 215), (140, 60, 180), (0, 130, 140), (0, 0, 0)],
    ),
}


def main() -> None:
    title, theme = sys.argv[1:3]
    # One decoder for all lines: a colour holds until it is changed, also on the next line.
    texts = list(AnsiDecoder().decode(sys.stdin.read().rstrip("\n")))
    width = max(text.cell_len for text in texts)
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for text in texts:
        console.print(text, soft_wrap=False, no_wrap=True, overflow="ignore", crop=False)
    picture = console.export_svg(title=title, theme=THEMES[theme], unique_id="tpu")
    # No fonts from elsewhere: whoever looks has one of fixed width.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S)
    picture = picture.replace("Fira Code", "ui-monospace, DejaVu Sans Mono, Menlo, Consolas")
    sys.stdout.write("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


main()
