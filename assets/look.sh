# Which processes on a machine are those of which command of `tpu`: read before `door.sh` and before `figures.sh`, which
# both set `base`, `index` and `machine` as `door.sh` does.

# Puts `TOKEN PID START` of every process of every command on this worker into `found`, without the guards.
# What cannot be looked for is not nothing.
look() {
    found=$(listed)
    [ "${found##*$'\n'}" = done ] && found=${found%done} && return
    echo "tpu: failed the worker cannot look for processes (awk, grep or /proc)"
    exit 1
}

listed() {
    local dir where
    printf 'TPU_LAUNCH=x\0' | grep -qazoxE 'TPU_LAUNCH=[A-Za-z0-9_-]+' || return
    {
        cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^/S /'
        grep -HazoxE 'TPU_LAUNCH=[A-Za-z0-9_-]+' /proc/[0-9]*/environ 2>/dev/null |
            tr '\0' '\n' | sed 's/^/T /'
        grep -HazoxF -e "TPU_MACHINE=$machine" -e TPU_MACHINE= /proc/[0-9]*/environ 2>/dev/null |
            tr '\0' '\n' | sed 's/^/M /; /:TPU_MACHINE=$/s/^M/N/'
        for dir in "$base/runs/"*".$index"; do
            ours "$dir" || continue
            where=
            read -r where <"$dir/machine"
            dir=${dir##*/}
            [ -n "$where" ] || echo "R ${dir%.*}"
            file "$dir" guard G
            file "$dir" pid P
        done
    } | awk '
        $1 == "S" {
            rest = $0; sub(/^.*\) /, "", rest); split(rest, f, " ")
            parent[$2] = f[2]; group[$2] = f[3]; start[$2] = f[20]
            if (f[1] == "Z") zombie[$2] = 1
            if ($0 ~ /^S [0-9]+ \(tmux: server/) server[$2] = 1
        }
        $1 == "T" { split($2, at, "/"); t = $2; sub(/^.*TPU_LAUNCH=/, "", t); launch[at[3]] = t }
        $1 == "M" { split($2, at, "/"); here[at[3]] = 1 }
        # What names no machine is ours if its run is: the host may be that of other targets, too.
        $1 == "N" { split($2, at, "/"); nameless[at[3]] = 1 }
        $1 == "R" { run[$2] = 1 }
        # The guard leads the group in which the command begins.
        $1 == "G" && start[$3] == $4 { guard[$3] = 1; leader[$3] = $2 }
        $1 == "P" && start[$3] == $4 { leader[$3] = $2 }
        END {
            # A tmux server that somebody started inside a command is none of its processes.
            do {
                more = 0
                for (p in parent) if (!server[p] && server[parent[p]]) { server[p] = 1; more = 1 }
            } while (more)
            for (p in nameless) if (launch[p] in run) here[p] = 1
            for (p in launch) if (here[p] && !guard[p] && !server[p]) own[p] = launch[p]
            for (p in group) {
                g = group[p]
                if ((g in leader) && !(p in own) && !guard[p] && !server[p]) own[p] = leader[g]
            }
            do {
                more = 0
                for (p in parent) {
                    q = parent[p]
                    if (!(p in own) && (q in own) && !guard[p] && !server[p]) {
                        own[p] = own[q]; more = 1
                    }
                }
            } while (more)
            for (p in own) if ((p in start) && !zombie[p]) print own[p], p, start[p]
            if ($0 != "") print "done"
        }'
}

# Whether a run belongs to this worker; another target may have one of the same index on this host. What was
# started while nobody knew the worker's address belongs to any.
ours() { # RUN
    local where
    read -r where 2>/dev/null <"$1/machine" && [ "${where:-$machine}" = "$machine" ]
}

file() { # RUN-NAME FILE TAG
    local pid start
    read -r pid start 2>/dev/null <"$base/runs/$1/$2" && echo "$3 ${1%.*} $pid $start"
}
