"""Reads its words by argparse or typer."""
import sys

if sys.argv[1] == "argparse":
    import argparse

    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--lr", type=float, required=True)
    parser.parse_args(sys.argv[2:])
else:
    import typer

    def main(lr: float):
        print("step 1/1 loss", lr)

    sys.argv = ["train.py", *sys.argv[2:]]
    typer.run(main)
