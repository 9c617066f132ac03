#!/usr/bin/env bash
# Takes the pictures of the README from the real program on the demo's jobs: `./x screenshots`.
# Needs tmux and python3; the package `rich` is put into a directory below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
out=assets/pictures
tools=target/screenshots
mkdir -p "$out"
python="$tools/bin/python"
"$python" -c 'import rich' 2>/dev/null || { python3 -m venv "$tools"; "$tools/bin/pip" install --quiet rich; }

socket=tpu-screenshots-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null || true' EXIT
t() { tmux -L "$socket" -f /dev/null "$@"; }
keys() { t send-keys -t person "$@"; }
shown() { t capture-pane -p -t person; }
# Waits until the screen shows a text.
await() {
  for _ in $(seq 600); do
    if shown | grep -qF -- "$1"; then return; fi
    sleep 0.1
  done
  echo "waited in vain for: $1" >&2
  shown >&2
  exit 1
}
theme() {
  keys : && keys -l "theme $1" && keys Enter
}
# One picture in each of the two themes: name, title.
picture() {
  for look in dark light; do
    theme "$look"
    sleep 0.6
    t capture-pane -e -N -p -t person | "$python" tools/ansi_to_svg.py "$2" "$look" >"$out/$1-$look.svg"
  done
  echo "$out/$1-{dark,light}.svg"
}

t new-session -d -s person -x 124 -y 32 "env TERM=tmux-256color LANG=C.UTF-8 TZ=UTC '$program' demo"
await 'error: oom'
await 'error: kil'
keys j && keys r
await '5 +1'
keys : && keys -l 'run local alice lr=0.05 tag=faster -- ./train.sh --config.steps=2000 --config.step_ms=150' && keys Enter
await 'faster'
keys g && keys j j j
await 'continues 2'
await 'goodput'
keys Escape
sleep 2
picture jobs 'tpu monitor'
keys 3
await '[3 Events]'
await 'goodput'
sleep 1
picture events 'tpu monitor: what has happened'
keys 1
await '[1 Jobs]'
sleep 15
keys g && keys Space && keys j j j && keys Space
await '2 marked'
# The command line does not open over a page, so the theme is set below it.
for look in dark light; do
  theme "$look"
  keys =
  await 'progress'
  sleep 0.6
  t capture-pane -e -N -p -t person | "$python" tools/ansi_to_svg.py 'tpu monitor: two runs' "$look" >"$out/compare-$look.svg"
  keys Escape
  sleep 0.3
done
echo "$out/compare-{dark,light}.svg"
keys q
