# A bucket of Cloud Storage as a directory: gcsfuse.sh check|run BUCKET MOUNT [OPTION...]

. "$TPU_SETUP/lib.sh"
what=$1 bucket=$2 mount=$(whole_path "$3")
shift 3
look_at_mount "$mount"

# That bucket, and not whatever is mounted there.
is_mounted() {
    [[ $type = fuse* ]] && [ "$source" = "$bucket" ] && timeout 60 stat -- "$mount/." >/dev/null 2>&1
}

# Its program has gone, which alone is a reason to unmount it: one that is slow to answer is somebody's.
is_dead() {
    LC_ALL=C timeout 60 stat -- "$mount/." 2>&1 | grep -q 'endpoint is not connected'
}

if [ "$what" = check ]; then
    command -v gcsfuse >/dev/null && is_mounted
    exit
fi

if ! command -v gcsfuse >/dev/null; then
    # Cloud Storage FUSE documentation, install on Debian and Ubuntu.
    key=/usr/share/keyrings/cloud.google.asc
    name=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
    command -v curl >/dev/null || install_packages curl || exit
    curl -fsSL https://packages.cloud.google.com/apt/doc/apt-key.gpg | as_root tee "$key" >/dev/null || exit
    echo "deb [signed-by=$key] https://packages.cloud.google.com/apt gcsfuse-$name main" |
        as_root tee /etc/apt/sources.list.d/gcsfuse.list >/dev/null || exit
    install_packages gcsfuse || exit
fi

if is_mounted; then
    # Only a forced set-up comes here: it is looked at, and not torn from whoever uses it.
    exit 0
elif [[ $type = fuse* ]] && [ "$source" = "$bucket" ]; then
    is_dead || {
        echo "$bucket is mounted at $mount and does not answer" >&2
        exit 1
    }
    echo "the program behind $mount has gone: $bucket is mounted anew"
    fusermount -u -z "$mount" 2>/dev/null || as_root umount -l "$mount" || exit
elif [ -n "$type" ]; then
    echo "$mount is taken: $source ($type) is mounted there, and not the bucket $bucket" >&2
    exit 1
fi
make_mount_point "$mount" && gcsfuse --implicit-dirs --dir-mode=777 --file-mode=777 "$@" "$bucket" "$mount"
