#!/usr/bin/env bash
# Prints the oldest glibc on which a program starts, as in 2.17: the newest version of a symbol that it needs.
set -euo pipefail
readelf --version-info --wide "$1" | grep -o 'GLIBC_[0-9.]\+' | sed 's/^GLIBC_//' | sort -uV | tail -1
