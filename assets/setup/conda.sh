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

# Sets `at` to the directory of the environment, and to nothing where there is none. What does not answer says nothing.
find_environment() {
    local all
    all=$("$conda" env list) || {
        echo "conda does not say which environments there are" >&2
        return 1
    }
    at=$(awk -v name="$name" '$1 == name { print $NF }' <<<"$all")
}

# Whether a program of this account is at work in it.
is_in_use() {
    grep -lsz "^CONDA_PREFIX=$at\$" /proc/[0-9]*/environ >/dev/null
}

# Its file has not changed since it was made.
is_of_file() {
    [ -z "$file" ] || cmp -s "$TPU_SETUP/$file" "$1/.tpu-environment"
}

if [ "$what" = check ]; then
    find_conda && find_environment && [ -n "$at" ] && is_of_file "$at"
    exit
fi

if ! find_conda; then
    command -v curl >/dev/null || install_packages curl || exit
    curl -fsSLo "$TPU_SETUP/miniconda.sh" "https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-$(uname -m).sh" &&
        bash "$TPU_SETUP/miniconda.sh" -b -p "$HOME/miniconda3" || exit
    conda=$HOME/miniconda3/bin/conda
    "$conda" tos accept --override-channels --channel defaults >/dev/null 2>&1
fi
find_environment || exit
if [ -z "$file" ]; then
    [ -n "$at" ] && exit 0
    echo "there is no environment $name, and no file: says what is in it" >&2
    exit 1
fi
if [ -n "$at" ]; then
    if [ ! -e "$at/.tpu-environment" ]; then
        echo "the environment $name is there, and somebody else has made it: leave file: away, or take another name" >&2
        exit 1
    elif is_in_use; then
        echo "the environment $name is of another file, and a program is at work in it: take another name" >&2
        exit 1
    fi
    "$conda" env update -n "$name" -f "$TPU_SETUP/$file" --prune || exit
else
    "$conda" env create -n "$name" -f "$TPU_SETUP/$file" || exit
fi
find_environment && [ -n "$at" ] && cp -- "$TPU_SETUP/$file" "$at/.tpu-environment"
