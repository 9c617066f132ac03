# A login at Weights & Biases: wandb.sh check|run VARIABLE HOST. The key is in the variable of that name and in no argument:
# it is kept where wandb itself keeps it, in the account's netrc.

. "$TPU_SETUP/lib.sh"
what=$1 variable=$2 host=$3 key=${!2}
netrc=$(realpath -m -- "${NETRC:-$HOME/.netrc}")

# The key that is kept for the host.
kept_key() {
    [ ! -r "$netrc" ] || awk -v host="$host" '
        { for (i = 1; i <= NF; i++) word[count++] = $i }
        END {
            for (i = 0; i < count; i++) {
                if (word[i] == "machine") is_it = word[++i] == host
                else if (word[i] == "default") is_it = 0
                else if (word[i] == "password" && is_it) { print word[i + 1]; exit }
            }
        }' "$netrc"
}

if [ "$what" = check ]; then
    kept=$(kept_key)
    [ -n "$kept" ] && { [ -z "$key" ] || [ "$kept" = "$key" ]; }
    exit
fi

case $key in
'')
    echo "no key is there: \$$variable is empty (tpu secrets set $variable)" >&2
    exit 1
    ;;
*[[:space:]]*)
    echo "\$$variable is no key of wandb: a blank stands in it" >&2
    exit 1
    ;;
esac
umask 077
new=$(mktemp "$netrc.XXXXXX") || exit
trap 'rm -f -- "$new"' EXIT
# What others have written there stays.
if [ -e "$netrc" ]; then
    awk -v host="$host" '
        $1 == "machine" { is_it = $2 == host }
        $1 == "default" || $1 == "macdef" { is_it = 0 }
        !is_it' "$netrc" >"$new" || exit
fi
printf 'machine %s\n  login user\n  password %s\n' "$host" "$key" >>"$new" && mv -fT -- "$new" "$netrc"
