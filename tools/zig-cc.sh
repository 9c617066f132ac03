#!/usr/bin/env bash
# The linker of `./x dist`: links for an old glibc by zig, and folds equal functions.
#
# zig's C compiler knows the symbols of each glibc, but refuses `--icf=all`; the linker inside zig takes it. So zig links
# once and says with which words it called its linker, and that is called again with the option.
# maturin names zig's C compiler in CC_TARGET.
set -euo pipefail
compiler=CC_$(uname -m)_unknown_linux_gnu
words=() folds=
for word in "$@"; do
  if [ "$word" = -Wl,--icf=all ]; then folds=1; else words+=("$word"); fi
done
if [ -z "$folds" ]; then exec "${!compiler}" "${words[@]}"; fi
said=$("${!compiler}" "${words[@]}" -v 2>&1) || { echo "$said" >&2 && exit 1; }
# Paths with blanks would need quotes, which zig does not print: dist.sh refuses them.
read -ra call < <(grep '^ld\.lld ' <<<"$said" | tail -1) || { echo "zig did not say how it links: $said" >&2 && exit 1; }
exec "$CARGO_ZIGBUILD_ZIG_PATH" "${call[@]}" --icf=all
