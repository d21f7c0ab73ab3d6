#!/bin/sh
# compile_pch.sh COMMAND…: runs a compiler without ccache. Beside a precompiled header it writes FILE.sum, the checksum of all its
# sources. ccache uses that instead of the header (CCACHE_PCH_EXTSUM), which contains paths of this tree: so two trees with the
# same files share compiled objects.
set -eu
"$@"

output=
dependencies=
previous=
for word; do
  case $previous in
    -o) output=$word ;;
    -MF) dependencies=$word ;;
  esac
  previous=$word
done
case $output in
  *.pch) ;;
  *) exit 0 ;;
esac
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
case $root in
  *[!A-Za-z0-9/._-]*) # the lines below would split such names: this tree shares nothing
    rm -f "$output.sum"
    exit 0
    ;;
esac
{
  "$1" --version
  printf '%s\n' "$@" | sed "s|$root|.|g"
  # A make rule: `target: file file \`.
  sed 's/^[^:]*://; s/\\$//' "$dependencies" | tr -s ' ' '\n' | sed '/^$/d' | xargs cat | sed "s|$root|.|g"
} | sha256sum >"$output.sum"
