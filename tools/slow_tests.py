"""Lists the tests of the last run that took longer than three seconds, with the reason that each gives.

A reason is a comment `// slow: …` above the test, else `//! slow: …` at the head of its file, else of its folder.
Usage: slow_tests.py JUNIT_REPORT…, of which the newest is read
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

LIMIT_S = 3.0
REASON = re.compile(r"^\s*//[/!]? slow: (.*)$")


def source_of(test: str) -> tuple[list[str], int, pathlib.Path]:
    """Returns the lines of the file that holds `test`, the index of its `fn`, and its folder; no lines where it is not found."""
    *modules, name = test.split("::")
    for root in ("tests", "src", *sorted(str(path) for path in pathlib.Path().glob("crates/*/src"))):
        for depth in range(len(modules), 0, -1):
            base = pathlib.Path(root, *modules[:depth])
            for path in (base.with_suffix(".rs"), base / "mod.rs"):
                if not path.is_file():
                    continue
                lines = path.read_text().splitlines()
                for index, line in enumerate(lines):
                    if re.search(rf"\bfn {re.escape(name)}\b|\b{re.escape(name)}: \d", line):
                        return lines, index, path.parent
    return [], 0, pathlib.Path()


def head_of(lines: list[str]) -> str | None:
    """Returns the reason that a file gives at its head."""
    for line in lines:
        if not line.startswith("//!"):
            return None
        if found := REASON.match(line):
            return found[1]
    return None


def reason_of(test: str) -> str:
    """Returns what the test, else its file, else its folder says about its time."""
    lines, index, folder = source_of(test)
    while index > 0 and lines[index - 1].lstrip().startswith(("//", "#[")):
        index -= 1
        if found := REASON.match(lines[index]):
            return found[1]
    heads = [lines]
    for above in (folder, *folder.parents[:-1]):
        heads += [path.read_text().splitlines() for path in (above / "mod.rs", above.with_suffix(".rs")) if path.is_file()]
    return next((reason for head in heads if (reason := head_of(head))), "NO REASON GIVEN")


def main() -> None:
    reports = [path for path in map(pathlib.Path, sys.argv[1:]) if path.is_file()]
    if not reports:
        sys.exit("no run to look at: ./x test")
    newest = max(reports, key=lambda path: path.stat().st_mtime)
    cases = ElementTree.parse(newest).iter("testcase")
    times = sorted(((float(case.get("time", 0)), case.get("name", "")) for case in cases), reverse=True)
    slow = [(seconds, name) for seconds, name in times if seconds > LIMIT_S]
    for seconds, name in slow:
        print(f"{seconds:7.1f} s  {name}\n           {reason_of(name)}")
    print(f"{len(slow)} of {len(times)} tests took longer than {LIMIT_S:.0f} s")


if __name__ == "__main__":
    main()
