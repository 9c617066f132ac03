# Runs a command that prints into a second place as well: bash -c THIS command FILE COMMAND... What it prints is added to
# FILE, below the account's home if that begins with ~/. Ends with the command's exit code.

file=$1
shift
case $file in "~/"*) file=$HOME/${file#"~/"} ;; esac
# By this name whoever asks a program to save its state goes past us, to the command itself.
{ printf tpu-command >/proc/self/comm; } 2>/dev/null
# Handlers, not ignored signals: the command gets the default back.
trap ':' INT TERM QUIT HUP USR1 USR2

if ! { mkdir -p -- "$(dirname -- "$file")" && : >>"$file"; } 2>/dev/null; then
    echo "tpu: output: $file cannot be written" >&2
    exit 126
fi
# It ends when all who print have ended, and by nothing else: a job may take its time to save a checkpoint.
exec > >(trap '' INT TERM QUIT HUP USR1 USR2; exec tee -a -- "$file") 2>&1
tee=$!

# What bash says of a signal that ended it is no word of the job.
exec 8>&2 2>/dev/null
"$@" 2>&8 8>&-
code=$?

# Its last words are heard to their end; what it left running may print for ever, and is not waited for.
exec >&- 8>&-
tries=0
while kill -0 "$tee" && [ "$tries" -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
exit "$code"
