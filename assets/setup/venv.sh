# A virtual environment of Python: venv.sh check|run NAME PYTHON [FILE], the file one beside this one with its packages.
# Each Python and file has a directory of its own, to which NAME leads: what is at work in one is never changed.

. "$TPU_SETUP/lib.sh"
what=$1 name=$HOME/.venvs/$2 python=${3:-python3} file=$4

sum=$({
    printf '%s\n' "$python"
    [ -z "$file" ] || cat "$TPU_SETUP/$file"
} | sha256sum)
at=$name.${sum:0:16}

# It is whole, which the note says that is its last part; and the name leads to it.
is_made() {
    [ -x "$at/bin/python" ] && [ -e "$at/.tpu-environment" ]
}

if [ "$what" = check ]; then
    is_made && [ "$(readlink -- "$name")" = "${at##*/}" ]
    exit
fi

if [ -e "$name" ] && [ ! -L "$name" ]; then
    echo "$name is there, and somebody else has made it: take another name" >&2
    exit 1
fi
if ! is_made; then
    if ! command -v "$python" >/dev/null || ! "$python" -c 'import ensurepip' 2>/dev/null; then
        install_packages "${python##*/}" "${python##*/}-venv" || exit
    fi
    mkdir -p "$HOME/.venvs" && "$python" -m venv --clear "$at" || exit
    [ -z "$file" ] || "$at/bin/python" -m pip install --disable-pip-version-check -r "$TPU_SETUP/$file" || exit
    : >"$at/.tpu-environment"
fi
ln -s "${at##*/}" "$name.$$" && mv -fT "$name.$$" "$name"
