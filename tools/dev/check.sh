# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# House rules and layout: ./dev check, format.

sources() {
  for folder in core src tests bench examples cmake; do
    [ ! -d "$root/$folder" ] || find "$root/$folder" \( -name '*.cpp' -o -name '*.hpp' \) -type f
  done | sort
}

# Files that differ from the last commit, or are new.
changed_sources() {
  {
    git -C "$root" diff --name-only HEAD
    git -C "$root" ls-files --others --exclude-standard
  } | sort -u | while IFS= read -r file; do
    case $file in
      *.cpp) [ ! -f "$root/$file" ] || printf '%s\n' "$root/$file" ;;
    esac
  done
}

check_step() {
  step=$1
  shift
  started=$(date +%s)
  if "$@"; then
    say "check: $step ok ($(clock $(($(date +%s) - started))))"
  else
    warn "check: $step FAILED"
    check_failed=1
  fi
}

check_layout() {
  sources | xargs clang-format-19 --dry-run -Werror 2>"$build/log/layout.txt" && return 0
  # One line per file is enough: ./dev format repairs the layout.
  awk -F: -v root="$root/" '
    / error: / { if (!count[$1]++) { first[$1] = $2; order[++files] = $1 } }
    END { for (i = 1; i <= files; i++) { name = order[i]; sub(root, "", name); printf "%s:%d: %d places\n", name, first[order[i]], count[order[i]] } }
  ' "$build/log/layout.txt"
  say "./dev format repairs the layout."
  return 1
}

check_scripts() {
  (cd "$root" && shellcheck dev .ci/run cmake/compile_pch.sh tools/fresh-root tools/dev/*.sh)
}

# How each file would be compiled alone, with the precompiled headers: builds join files to batches (cmake/Batches.cmake). An editor can read
# $build/tidy/compile_commands.json, too.
compile_for_tidy() {
  quietly "$build/log/configure-tidy.txt" locked "$build/tidy" cmake -S "$root" --preset release -B "$build/tidy" -DSTINT_BATCH=1 ||
    die "cmake failed; its output is above"
  run_ninja tidy stint_pch_asio stint_pch_std stint_pch_test_quick || die "the precompiled headers do not compile; the errors are above"
}

# Checks files that the build compiles; others (peers of the benchmarks) are not our code.
check_clang_tidy() {
  if [ "$1" = --all ]; then
    list=$(sources | grep '\.cpp$')
  else
    list=$(changed_sources)
  fi
  list=$(for file in $list; do
    if grep -qF "\"file\": \"$file\"" "$build/tidy/compile_commands.json"; then printf '%s\n' "$file"; fi
  done)
  [ -n "$list" ] || {
    say "check: no changed .cpp file; --all checks every one"
    return 0
  }
  printf '%s\n' "$list" | xargs -P "$jobs" -n 1 clang-tidy-19 -p "$build/tidy" --quiet 2>"$build/log/clang-tidy.txt" ||
    {
      grep -v 'warnings generated\|Suppressed\|Use -header-filter' "$build/log/clang-tidy.txt" >&2
      return 1
    }
}

cmd_check() {
  all=--changed
  steps=
  while [ $# -gt 0 ]; do
    case $1 in
      --all) all=--all ;;
      layout | rules | scripts | tidy) steps="$steps $1" ;;
      *) usage "check: unknown step '$1': use layout, rules, scripts or tidy" ;;
    esac
    shift
  done
  setup program build
  mkdir -p "$build/log"
  check_failed=
  for name in ${steps:-layout rules scripts tidy}; do
    case $name in
      layout) check_step "layout (clang-format)" check_layout ;;
      rules) check_step "house rules (tools/tidy.py)" python3 -B "$root/tools/tidy.py" ;;
      scripts)
        setup check
        check_step "scripts (shellcheck)" check_scripts
        ;;
      tidy)
        setup check
        compile_for_tidy
        check_step "clang-tidy" check_clang_tidy "$all"
        ;;
    esac
  done
  [ -z "$check_failed" ]
}

cmd_format() {
  setup program build
  sources | xargs clang-format-19 -i
  python3 -B "$root/tools/tidy.py" --fix-docs
}
