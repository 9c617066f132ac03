# What several modules need.

# As the administrator, without a question.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

# apt-get, for as long as somebody else holds one of its locks: he is waited for, and never ended. Its own waiting
# (DPkg::Lock::Timeout) does not hold for the lock of its lists.
apt_get() {
    local said try
    for try in {1..60}; do
        said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=900 -y -q "$@" 2>&1) && return
        case $said in
        *"Could not get lock"* | *"Unable to lock"* | *"Unable to acquire"*)
            echo "somebody else installs packages: waiting for apt's lock"
            sleep 15
            ;;
        *) break ;;
        esac
    done
    printf '%s\n' "$said" | tail -n 20
    return 1
}

# Installs packages of the system.
install_packages() {
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get here: install $* by hand" >&2
        return 1
    fi
    apt_get update && apt_get install "$@"
}

# A path as people write it: `~/` is the account's home.
whole_path() {
    case $1 in
    "~/"*) printf '%s/%s' "$HOME" "${1#"~/"}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# Sets `source` and `type` to what is mounted at a place, and to nothing where nothing is. The last of several mounts
# is the one that is seen. Blanks stand there as octal numbers (fstab(5)).
look_at_mount() {
    local listed from at kind rest
    listed=$(realpath -m -- "$1")
    listed=${listed//\\/\\134}
    listed=${listed// /\\040}
    listed=${listed//$'\t'/\\011}
    source='' type=''
    while read -r from at kind rest; do
        [ "$at" != "$listed" ] || { source=$from type=$kind; }
    done </proc/self/mounts
}

# Makes a directory that the account can mount to.
make_mount_point() {
    [ -d "$1" ] || mkdir -p -- "$1" 2>/dev/null || { as_root mkdir -p -- "$1" && as_root chown "$(id -u):$(id -g)" "$1"; }
}

# Puts a file in its place, whole or not at all.
put_file() { # FROM TO MODE
    local to new
    to=$(realpath -m -- "$2")
    mkdir -p -- "$(dirname -- "$to")" || return
    new=$(mktemp "$to.XXXXXX") || return
    cp -- "$1" "$new" && chmod "$3" "$new" && mv -fT -- "$new" "$to" || {
        rm -f -- "$new"
        return 1
    }
}

# Whether a file is in its place, with these rights.
is_put() { # FROM TO MODE
    cmp -s -- "$1" "$2" && [ "$(stat -c %a -- "$2")" = "$3" ]
}
