#!/usr/bin/env bash
# Packs what a user needs: the stripped program, completions, manual pages, assets and licence, as a tar.gz with
# a SHA-256 checksum beside it. `--source` packs the sources of the last commit instead.
#
# The archive holds one directory and the same bytes for the same commit and compiler: names are sorted, owner
# and time are fixed.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
out=${CARGO_TARGET_DIR:-target}/packages
mkdir -p "$out"

# The checksum, so that `sha256sum -c` works in the directory of the archive.
sum() { (cd "$out" && sha256sum "$1" >"$1.sha256"); echo "$out/$1"; }

case "${1:-}" in
  --source)
    name=tpu-$version-source
    git archive --format=tar --prefix="$name/" HEAD | gzip -n >"$out/$name.tar.gz"
    sum "$name.tar.gz"
    exit
    ;;
  "") ;;
  *) echo "usage: ./x dist [--source]" >&2 && exit 2 ;;
esac

# The program is not to name the directory in which this machine keeps its libraries.
cargo fetch --locked --quiet
remaps=
for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/; do
  remaps+="'--remap-path-prefix=$registry=', "
done
# Beside the flags of .cargo/config.toml, which RUSTFLAGS would replace.
cargo build --locked --profile dist --quiet --config "target.'cfg(target_os = \"linux\")'.rustflags=[$remaps]"
program=${CARGO_TARGET_DIR:-target}/dist/tpu
name=tpu-$version-$(uname -m)-linux
stage=$out/$name
rm -rf "$stage"
mkdir -p "$stage"/{bin,completions,man,assets}
install -m 755 "$program" "$stage/bin/tpu"
for shell in bash zsh fish; do
  "$program" completions "$shell" >"$stage/completions/tpu.$shell"
done
"$program" man >"$stage/man/tpu.1"
# Each command has a page of its own; the list is the program's.
"$program" help --all | sed -n 's/^  \([^ ]*\).*/\1/p' | while read -r command; do
  "$program" man "$command" >"$stage/man/tpu-$command.1"
done
cp -r assets/patterns.toml assets/recipes.toml assets/themes assets/example "$stage/assets/"
cp LICENSE README.md CHANGELOG.md "$stage/"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2026-01-01 00:00Z' -C "$out" -cf - "$name" |
  gzip -n >"$out/$name.tar.gz"
rm -rf "$stage"
sum "$name.tar.gz"
