# What `tpu` asks a machine about itself before it gives it anything to do; `machine.sh` is read first. `done` stands at
# the end. The format of df(1) is that of POSIX.

machine
heard 2 df -Pk -- "${HOME:-/}" | {
    read -r _
    read -r _ _ _ free _ && echo "disk $free"
}
command -v tmux >/dev/null && echo "tmux $(heard 2 tmux -V)"
command -v python3 >/dev/null && echo "python $(heard 2 python3 -V)"
echo done
