# Runs a command as its job wants it: bash -c THIS command FILE WHEN PAUSE COMMAND... What it prints is added to FILE as
# well, below the account's home if that begins with ~/; an empty FILE is none. Of DIR/./FILE the directory is that of the
# job's file: a machine that does not have it has the rest of the path where the command runs. WHEN it has ended (never, always or
# on-failure) it begins again, PAUSE seconds later. Ends with the exit code of the last run. Whoever stops the job ends this,
# too: after a signal nothing begins again.

file=$1 when=$2 pause=$3
shift 3
# By this name whoever asks a program to save its state goes past us, to the command itself.
{ printf tpu-command >/proc/self/comm; } 2>/dev/null
# Handlers, not ignored signals: the command gets the default back.
is_stopped=
trap 'is_stopped=yes' INT TERM QUIT HUP USR1 USR2

tee=
if [ -n "$file" ]; then
    case $file in
    "~/"*) file=$HOME/${file#"~/"} ;;
    */./*) [ -d "${file%%/./*}" ] || file=${file#*/./} ;;
    esac
    if ! { mkdir -p -- "$(dirname -- "$file")" && : >>"$file"; } 2>/dev/null; then
        echo "tpu: output: $file cannot be written" >&2
        exit 126
    fi
    # It ends when all who print have ended, and by nothing else: a job may take its time to save a checkpoint.
    exec > >(trap '' INT TERM QUIT HUP USR1 USR2; exec tee -a -- "$file") 2>&1
    tee=$!
fi

# What bash says of a signal that ended it is no word of the job.
exec 8>&2 2>/dev/null
while :; do
    "$@" 2>&8 8>&-
    code=$?
    [ -z "$is_stopped" ] || break
    case $when in
    always) ;;
    on-failure) [ "$code" -ne 0 ] || break ;;
    *) break ;;
    esac
    printf 'tpu: %s · ended with exit code %s, and begins again in %s s (repeat: %s)\n' "$TPU_JOB" "$code" "$pause" "$when"
    sleep "$pause" 8>&-
    [ -z "$is_stopped" ] || break
done

# Its last words are heard to their end; what it left running may print for ever, and is not waited for.
exec >&- 8>&-
tries=0
while [ -n "$tee" ] && kill -0 "$tee" && [ "$tries" -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
exit "$code"
