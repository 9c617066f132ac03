# An environment of conda: conda.sh check|run NAME [FILE], the file one beside this one, of which it is made.

. "$TPU_SETUP/lib.sh"
what=$1 name=$2 file=$3

find_conda() {
    local known
    for known in conda "$HOME/miniconda3/bin/conda" "$HOME/miniforge3/bin/conda" "$HOME/anaconda3/bin/conda" /opt/conda/bin/conda; do
        conda=$(command -v "$known") && return
    done
    return 1
}

# The directory of the environment.
prefix() {
    "$conda" env list | awk -v name="$name" '$1 == name { print $NF }'
}

# Its file has not changed since it was made.
is_of_file() {
    [ -z "$file" ] || cmp -s "$TPU_SETUP/$file" "$1/.tpu-environment"
}

if [ "$what" = check ]; then
    find_conda && at=$(prefix) && [ -n "$at" ] && is_of_file "$at"
    exit
fi

if ! find_conda; then
    command -v curl >/dev/null || install_packages curl || exit
    curl -fsSLo "$TPU_SETUP/miniconda.sh" "https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-$(uname -m).sh" &&
        bash "$TPU_SETUP/miniconda.sh" -b -p "$HOME/miniconda3" || exit
    conda=$HOME/miniconda3/bin/conda
    "$conda" tos accept --override-channels --channel defaults >/dev/null 2>&1
fi
at=$(prefix)
if [ -z "$file" ]; then
    [ -n "$at" ] && exit 0
    echo "there is no environment $name, and no file: says what is in it" >&2
    exit 1
fi
if [ -n "$at" ]; then
    rm -f -- "$at/.tpu-environment"
    "$conda" env update -n "$name" -f "$TPU_SETUP/$file" --prune || exit
else
    "$conda" env create -y -n "$name" -f "$TPU_SETUP/$file" || exit
fi
at=$(prefix) && [ -n "$at" ] && cp -- "$TPU_SETUP/$file" "$at/.tpu-environment"
