#!/bin/sh
# compile_pch.sh COMMAND…: runs a compiler, past ccache. Beside a precompiled header it writes FILE.sum, the sum of all that the
# header is made of. ccache looks at that instead of the header (CCACHE_PCH_EXTSUM), which names folders of this tree: so that
# two trees with the same files share what they have compiled.
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
  *[!A-Za-z0-9/._-]*) # names that the lines below would take apart: this tree shares nothing
    rm -f "$output.sum"
    exit 0
    ;;
esac
{
  "$1" --version
  printf '%s\n' "$@" | sed "s|$root|.|g"
  # The rule of a make file: `target: file file \`.
  sed 's/^[^:]*://; s/\\$//' "$dependencies" | tr -s ' ' '\n' | sed '/^$/d' | xargs cat | sed "s|$root|.|g"
} | sha256sum >"$output.sum"
