# A directory of a server: nfs.sh check|run SERVER:/PATH MOUNT [OPTIONS]

. "$TPU_SETUP/lib.sh"
what=$1 export=$2 mount=$(whole_path "$3") options=$4
look_at_mount "$mount"

is_mounted() {
    [[ $type = nfs* ]] && [ "${source%/}" = "${export%/}" ] && timeout 30 stat -- "$mount/." >/dev/null 2>&1
}

if [ "$what" = check ]; then
    is_mounted
    exit
fi
is_mounted && exit 0
if [ -n "$type" ]; then
    echo "$mount is taken: $source ($type) is mounted there, and not $export" >&2
    exit 1
fi
command -v mount.nfs >/dev/null || [ -x /sbin/mount.nfs ] || install_packages nfs-common || exit
make_mount_point "$mount" && as_root mount -t nfs ${options:+-o "$options"} "$export" "$mount"
