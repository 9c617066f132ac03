#!/usr/bin/env bash
# Takes the pictures of the README from the real program on the demo's jobs: `./x screenshots`.
# Needs tmux and python3; the packages `rich` and `pyte` are put into a directory below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
out=assets/pictures
tools=target/screenshots
mkdir -p "$out"
python="$tools/bin/python"
"$python" -c 'import pyte, rich' 2>/dev/null || { python3 -m venv "$tools"; "$tools/bin/pip" install --quiet pyte rich; }

socket=tpu-screenshots-$$
room=$(mktemp -d)
server=
# The demo takes its lab down before it ends.
close() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  for _ in $(seq 300); do
    keys q 2>/dev/null || break
    sleep 0.1
  done
  t kill-server 2>/dev/null || true
  rm -rf "$room"
}
trap close EXIT
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
# Shows only the jobs that match, or all again; the selection stays.
only() {
  keys / && keys -l "$1" && keys Enter
  await "/$1"
}
everything() {
  keys Escape
  sleep 0.5
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

# The story as it happens, from its beginning to the end of what happens by itself.
env TERM=tmux-256color LANG=C.UTF-8 TZ=UTC TMPDIR="$room" "$program" demo --record "$room/demo.cast" --size 100x28 \
  </dev/null >/dev/null
"$python" tools/cast_to_svg.py 'tpu demo' <"$room/demo.cast" >"$out/demo.svg"
echo "$out/demo.svg"

t new-session -d -s person -x 124 -y 32 "env TERM=tmux-256color LANG=C.UTF-8 TZ=UTC TMPDIR='$room' '$program' demo"
await 'error: oom'
await 'killed-by'
only tag:interrupted
keys r
await '+1'
everything
keys : && keys -l 'run local alice lr=0.05 tag=faster -- ./train.sh --config.steps=4000 --config.step_ms=100' && keys Enter
only tag:faster
await 'ep '
everything
# The one whose target is taken away goes on by itself on a new one.
only tag:preempted
await 'continues'
await 'goodput'
everything
sleep 20
keys Escape
picture jobs 'tpu monitor'
only tag:preempted
keys Enter
await 'lowest'
picture detail 'tpu monitor: one job'
keys Escape
everything
# The same jobs in a browser, where there is one.
if [ -x /usr/bin/chromium ] && [ -e web/node_modules/playwright-core ]; then
  lab=$(echo "$room"/tpu-demo-*)
  of_lab() {
    env TMUX_TMPDIR="$lab" XDG_CONFIG_HOME="$lab/config" TPU_CLOUD=sim TPU_DATA="$lab/data.json" TPU_TMUX_SOCKET=demo "$program" "$@"
  }
  token=$(of_lab token create pictures --role admin 2>/dev/null)
  of_lab serve --listen 127.0.0.1:7967 >/dev/null 2>&1 &
  server=$!
  sleep 2
  printf '%s' "$token" | node web/test/pictures.js http://127.0.0.1:7967 "$out"
  of_lab token revoke pictures >/dev/null
  echo "$out/page-{jobs,phone}-{dark,light}.png"
else
  echo "no pictures of the page: there is no chromium, or npm has not installed web/" >&2
fi
keys 4
await '[4 Events]'
await 'goodput'
sleep 1
picture events 'tpu monitor: what has happened'
keys 2
await '[2 Targets]'
keys j
sleep 1
picture targets 'tpu monitor: the targets'
keys 1
await '[1 Jobs]'
for tag in baseline faster; do
  only "tag:$tag"
  keys Space
  everything
done
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
