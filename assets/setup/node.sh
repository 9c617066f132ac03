# Sets up one machine of an engine's job, where nobody of ours listens: bash node.sh FROM JOB WORKER NODE WHY, with FROM
# laid ready on a disk that all machines of the job see, and WHY a file there that says why it has failed, for the first
# that does: its own first line, then the reason. FROM/head is that line.
#
# What a module says goes into a log of its own beside the job's, how far it is into `set-up` there, and what a person
# wants to know is printed. Ready, it says so below FROM/ready and stays, with all that the steps have left running: an
# engine ends what belongs to it together.

from=$1 job=$2 node=$4 why=$5
export TPU_WORKER=$3
umask 077
own=$(mktemp -d "${TMPDIR:-/tmp}/tpu-set-up-XXXXXXXX") && cp -- "$from"/* "$own" 2>/dev/null
if [ ! -e "$own/setup.sh" ]; then
    echo "tpu: $job · set-up failed: node $node does not see what it takes, or has no room for it" | tee "$from/why-$TPU_WORKER"
    { cat "$from/head"; sed 's/.*set-up failed: //' "$from/why-$TPU_WORKER"; } >"$why.$TPU_WORKER" && ln -- "$why.$TPU_WORKER" "$why" 2>/dev/null
    exit 70
fi
printf '%s\n' "$node" >"$own/node"
{ printf '%s\n' "$node" && cat /proc/sys/kernel/random/boot_id; } >>"$own/machine"
: >"$own/alone"
mapfile -d '' -t steps <"$own/steps"
mark=$(<"$own/nonce")
logs=$TPU_LOG_DIR

module_of() { # STEP
    module=
    case $1 in '' | *[!0-9]*) ;; *) module=${steps[$1 * 6]} ;; esac
}

# One line for a person who looks at the job.
tell() {
    printf 'tpu: %s · %s\n' "$job" "$1"
}

# How far it is, for whoever asks.
note() {
    printf '%s\n' "$1" >"$logs/set-up.$TPU_WORKER" && mv -f -- "$logs/set-up.$TPU_WORKER" "$logs/set-up"
}

# The first failure of any machine is why the job has failed.
fail() {
    is_told=yes
    tell "set-up failed: $1"
    { cat "$from/head" && printf '%s\n' "$1"; } >"$why.$TPU_WORKER" && ln -- "$why.$TPU_WORKER" "$why" 2>/dev/null
    rm -f -- "$why.$TPU_WORKER"
}

hear() {
    local line said step event what code last= how brought= shown=-9 before
    module= is_told= is_ready=
    exec 7>/dev/null
    while IFS= read -r line || [ -n "$line" ]; do
        if [ "${line#"$mark "}" = "$line" ]; then
            printf '%s\n' "$line" >&7
            line=${line%$'\r'} line=${line##*$'\r'}
            [ -n "${line//[[:space:]]/}" ] || continue
            # What a terminal would obey is nobody's word.
            last=${line//[[:cntrl:]]/}
            if [ -n "$module" ] && [ $((SECONDS - shown)) -ge 5 ]; then
                shown=$SECONDS
                note "$module on node $node: $last"
            fi
            continue
        fi
        read -r step event what code <<<"${line#"$mark "}"
        if [ "$step" = ready ]; then
            is_ready=yes
            break
        fi
        before=$module
        module_of "$step"
        case $event in
        begins)
            if [ "$before" != "$module" ]; then
                brought=
                exec 7>"$logs/${module}_worker_$TPU_WORKER.log"
            fi
            ;;
        waits) tell "set-up: $module on node $node: waits for another set-up on that machine" ;;
        well | done)
            [ "$event" = well ] || brought=yes
            if [ "${steps[($step + 1) * 6]:-}" != "$module" ]; then
                tell "set-up: $module on node $node: $([ -n "$brought" ] && echo 'set up' || echo 'is so already')"
            fi
            ;;
        failed)
            case $what in
            again) how='it was set up, and its check still' ;;
            check) how='its check' ;;
            *) how='its set-up' ;;
            esac
            case $code in 124 | 137) code='took too long' ;; *) code="ended with $code" ;; esac
            fail "$module on node $node: $how $code${last:+: $last}"
            ;;
        esac
    done
    exec 7>&-
    [ -n "$is_told$is_ready" ] || fail "${module:-it} on node $node: it was ended"
    [ -n "$is_ready" ]
}

# What the steps leave running may hold their output for ever: who hears them does not wait for its end.
hear < <(exec bash "$own/setup.sh" 2>&1) || exit 70
rm -rf -- "${own:?}"
: >"$from/ready/$TPU_WORKER"
exec sleep infinity
