#!/usr/bin/env bash
# Makes the packages: a tar.gz, a wheel and a .deb, each with the program, completions, manual pages and documents, and a
# SHA-256 checksum beside each. `--source` packs the sources of the last commit instead.
#
# zig links the program, so that it starts on machines with an older glibc than this one's. A package has the same bytes for
# the same commit and tools: names are sorted, owner and time are fixed.
set -euo pipefail
cd "$(dirname "$0")/.."

# The oldest glibc on which the program starts, and the most bytes that packages may have. docs/install.md names them.
glibc=2.17
most_of_program=22000000
most_of_wheel=15000000

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/packages
mkdir -p "$out"

# Writes the checksum, so that `sha256sum -c` works in the directory of the package.
sum() { (cd "$out" && sha256sum "$1" >"$1.sha256"); echo "$out/$1"; }

fail() { echo "./x dist: $*" >&2 && exit 1; }

# Refuses a file that is larger than it may be.
at_most() {
  local size
  size=$(stat -c %s "$1")
  [ "$size" -le "$2" ] || fail "$(basename "$1") has $size bytes, and may have $2"
}

case "${1:-}" in
  --source)
    name=tpu-$version-source
    git archive --format=tar --prefix="$name/" HEAD | gzip -n >"$out/$name.tar.gz"
    sum "$name.tar.gz"
    exit
    ;;
  "") ;;
  *) echo "usage: ./x dist [--install] [--source]" >&2 && exit 2 ;;
esac

triple=$(uname -m)-unknown-linux-gnu
packing=$target/packing
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)
export SOURCE_DATE_EPOCH CARGO_TARGET_DIR=$target
export CARGO_ZIGBUILD_ZIG_PATH=$packing/python/ziglang/zig
export CARGO_ZIGBUILD_CACHE_DIR=$packing/cache ZIG_GLOBAL_CACHE_DIR=$packing/cache/zig
export "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$triple")_LINKER=$PWD/tools/zig-cc.sh"
[[ $PWD$target$HOME != *[[:space:]]* ]] || fail "zig links nothing below a directory with a blank in its name"

# The program is not to name the directory in which this machine keeps its libraries.
cargo fetch --locked --quiet
remaps=
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do
  remaps+="'--remap-path-prefix=$registry=', "
done

# Builds the wheel, and the program first if it is not there. What is in tpu.data goes into the wheel too.
wheel() {
  rm -f "$out"/*.whl
  # Beside the flags of .cargo/config.toml, which RUSTFLAGS would replace. A program for one address is smaller and starts
  # sooner: nothing is relocated.
  "$packing/python/bin/maturin" build --quiet --locked --profile dist --target "$triple" --zig \
    --compatibility "manylinux_${glibc/./_}" --out "$out" \
    --config "target.'cfg(target_os = \"linux\")'.rustflags=[$remaps'-Crelocation-model=static']"
}
rm -rf tpu.data
trap 'rm -rf tpu.data' EXIT
wheel

program=$target/$triple/dist/tpu
newest=$(tools/glibc.sh "$program")
[ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -1)" = "$glibc" ] ||
  fail "the program needs glibc $newest; it should start with $glibc"
at_most "$program" "$most_of_program"

# One tree for all packages: unpacked in ~/.local or in /usr, each file is where programs look for it.
name=tpu-$version-$(uname -m)-linux
stage=$out/$name
rm -rf "$stage"
documents=$stage/share/doc/tpu
mkdir -p "$stage"/{bin,share/man/man1,share/bash-completion/completions} \
  "$stage"/share/{zsh/site-functions,fish/vendor_completions.d} "$documents/assets"
install -m 755 "$program" "$stage/bin/tpu"
"$program" completions bash >"$stage/share/bash-completion/completions/tpu"
"$program" completions fish >"$stage/share/fish/vendor_completions.d/tpu.fish"
# zsh reads its file when the first Tab is pressed: that one is to be answered too.
{
  "$program" completions zsh
  echo '[ "$funcstack[1]" != _tpu ] || _clap_dynamic_completer_tpu "$@"'
} >"$stage/share/zsh/site-functions/_tpu"
"$program" man >"$stage/share/man/man1/tpu.1"
# Each command has a page of its own; the list is the program's.
"$program" help --all | sed -n 's/^  \([^ ]*\).*/\1/p' | while read -r command; do
  "$program" man "$command" >"$stage/share/man/man1/tpu-$command.1"
done
cp -r docs LICENSE README.md CHANGELOG.md CONTRIBUTING.md "$documents/"
cp -r assets/patterns.toml assets/recipes.toml assets/themes assets/example assets/pictures "$documents/assets/"
find "$stage" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

tar --sort=name --owner=0 --group=0 --numeric-owner -C "$out" -cf - "$name" | gzip -n >"$out/$name.tar.gz"

mkdir -p tpu.data/data
cp -rp "$stage/share" tpu.data/data/
said=$(wheel 2>&1) || fail "$said"
at_most "$out"/*.whl "$most_of_wheel"

rm -rf "$target/$triple/dist/share"
cp -rp "$stage/share" "$target/$triple/dist/"
rm -f "$out"/*.deb
PATH=$packing/bin:$PATH cargo deb --quiet --no-build --no-strip --profile dist --target "$triple" --output "$out" >/dev/null

rm -rf "$stage" "$target/$triple/dist/share"
for package in "$out/$name.tar.gz" "$out"/*.whl "$out"/*.deb; do sum "$(basename "$package")"; done
