"""rich's bar, log and traceback."""
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.traceback import install

if "pretty" in sys.argv:
    install()
console = Console()
columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
with Progress(*columns, console=console) as progress:
    task = progress.add_task("training", total=200)
    for i in range(200):
        time.sleep(0.01)
        progress.advance(task)
        if i % 50 == 0:
            console.log(f"loss {1 / (i + 1):.4f}")
        if i == 120 and len(sys.argv) > 1:
            raise ValueError("the tokenizer has no padding token")
