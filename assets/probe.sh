# What `tpu` asks a machine about itself before it gives it anything to do; `machine.sh` is read first. `done` stands at
# the end. `versions` is set where those of programs are asked for, which takes longer than all else. The format of
# df(1) is that of POSIX.

machine
heard 2 df -Pk -- "${HOME:-/}" | {
    read -r _
    read -r _ _ _ free _ && echo "disk $free"
}
if [ -n "$versions" ]; then
    command -v tmux >/dev/null && echo "tmux $(heard 2 tmux -V)"
    command -v python3 >/dev/null && echo "python $(heard 2 python3 -V)"
fi
echo done
