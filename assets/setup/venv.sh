# A virtual environment of Python: venv.sh check|run NAME PYTHON [FILE], the file one beside this one with its packages.

. "$TPU_SETUP/lib.sh"
what=$1 at=$HOME/.venvs/$2 python=${3:-python3} file=$4

# It is whole, of that Python and of that file: the note of both is its last part.
noted() {
    printf '%s\n' "$python"
    [ -z "$file" ] || cat "$TPU_SETUP/$file"
}

if [ "$what" = check ]; then
    [ -x "$at/bin/python" ] && noted | cmp -s - "$at/.tpu-environment"
    exit
fi

make_environment() {
    "$python" -m venv --clear "$at"
}
if ! command -v "$python" >/dev/null || ! "$python" -c 'import ensurepip' 2>/dev/null; then
    install_packages "${python##*/}" "${python##*/}-venv" || exit
fi
rm -f -- "$at/.tpu-environment"
mkdir -p "$HOME/.venvs" && make_environment || exit
[ -z "$file" ] || "$at/bin/python" -m pip install --disable-pip-version-check -r "$TPU_SETUP/$file" || exit
noted >"$at/.tpu-environment"
