# Keys and entries of the account's ssh: ssh_keys.sh check|run PRIVATE PUBLIC ENTRY NAME
# The first three are files beside this one, or nothing; the keys get NAME below ~/.ssh, and so is the entry marked.

. "$TPU_SETUP/lib.sh"
what=$1 private=$2 public=$3 entry=$4 name=$5
config=$HOME/.ssh/config
begin="# tpu: begin $name" end="# tpu: end $name"

# What stands between our marks.
marked() {
    awk -v begin="$begin" -v end="$end" '$0 == end { inside = 0 } inside { print } $0 == begin { inside = 1 }' "$config" 2>/dev/null
}

# A key of that name that somebody else has put there stays his.
is_free() { # FROM TO
    [ ! -e "$2" ] || cmp -s -- "$1" "$2" || [ -e "$HOME/.ssh/.tpu-$name" ] || {
        echo "$2 is there, and is another key: give this one another name" >&2
        return 1
    }
}

case $what in
check)
    [ -z "$private" ] || is_put "$TPU_SETUP/$private" "$HOME/.ssh/$name" 600 || exit
    [ -z "$public" ] || is_put "$TPU_SETUP/$public" "$HOME/.ssh/$name.pub" 644 || exit
    [ -z "$entry" ] || [ "$(marked)" = "$(cat "$TPU_SETUP/$entry")" ]
    ;;
run)
    mkdir -p "$HOME/.ssh" && chmod 700 "$HOME/.ssh" || exit
    [ -z "$private" ] || is_free "$TPU_SETUP/$private" "$HOME/.ssh/$name" || exit
    [ -z "$public" ] || is_free "$TPU_SETUP/$public" "$HOME/.ssh/$name.pub" || exit
    : >"$HOME/.ssh/.tpu-$name"
    [ -z "$private" ] || put_file "$TPU_SETUP/$private" "$HOME/.ssh/$name" 600 || exit
    [ -z "$public" ] || put_file "$TPU_SETUP/$public" "$HOME/.ssh/$name.pub" 644 || exit
    [ -n "$entry" ] || exit 0
    # What others have written there stays as it is.
    new=$TPU_SETUP/config.$name
    {
        [ ! -e "$config" ] || awk -v begin="$begin" -v end="$end" \
            '$0 == begin { inside = 1 } ! inside { print } $0 == end { inside = 0 }' "$config"
        printf '%s\n%s\n%s\n' "$begin" "$(cat "$TPU_SETUP/$entry")" "$end"
    } >"$new" && put_file "$new" "$config" 600
    ;;
esac
