# An image for the command: docker.sh check|run IMAGE

. "$TPU_SETUP/lib.sh"
what=$1 image=$2

# Sets `engine` to the words that start a container: docker, as this account may use it, or podman.
find_engine() {
    if command -v docker >/dev/null; then
        engine=(docker)
        docker info >/dev/null 2>&1 && return
        engine=(sudo -n --preserve-env=HOME docker)
        sudo -n docker info >/dev/null 2>&1 && return
    elif command -v podman >/dev/null; then
        engine=(podman)
        return
    fi
    return 1
}

if [ "$what" = check ]; then
    find_engine && "${engine[@]}" image inspect "$image" >/dev/null 2>&1 || exit
    # A digest is one image for ever; what a tag names may have changed since.
    case $image in *@sha256:*) exit 0 ;; esac
    [ -e "$TPU_SETUP/pulled" ] || "${engine[@]}" pull -q "$image" ||
        echo "whether $image has changed is unknown: the one that is here is taken"
    exit 0
fi

if ! find_engine; then
    command -v docker >/dev/null || install_packages docker.io || exit
    as_root systemctl start docker 2>/dev/null || as_root service docker start || exit
    # From the next login on without sudo; until then it helps.
    [ "$(id -u)" -eq 0 ] || as_root usermod -aG docker "$(id -un)" || exit
    find_engine || {
        echo "docker does not answer this account, also not by sudo" >&2
        exit 1
    }
fi
"${engine[@]}" pull "$image" && : >"$TPU_SETUP/pulled"
