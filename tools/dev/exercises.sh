# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are set by ./dev, which sources this file
# Failing tests to solve: ./dev exercises.

# exercise PROGRAM: prints a line per test, then the output of the first failing one. A program that crashes fails the current test.
exercise() {
  exercise_log="$build/log/$(basename "$1").txt"
  exercise_status=0
  "$1" >"$exercise_log" 2>&1 || exercise_status=$?
  awk '
    /^\[ RUN      \] / { name = $4; said = ""; open = 1; next }
    /^\[       OK \] / { print "  passed  " name; open = 0; next }
    /^\[  FAILED  \] .* ms\)$/ || (open && /^A thread is still blocked/) {
      print "  FAILED  " name
      if (first == "") { first = name; text = said ($1 == "A" ? $0 "\n" : "") }
      open = 0
      next
    }
    open { said = said $0 "\n" }
    END {
      if (open) { print "  FAILED  " name " (the program ended)"; if (first == "") { first = name; text = said } }
      if (first != "") printf "\nFirst to solve: %s\n%s", first, text
    }
  ' "$exercise_log"
  return "$exercise_status"
}

cmd_exercises() {
  kind=exercise
  name='*'
  while [ $# -gt 0 ]; do
    case $1 in
      --solutions) kind=solution ;;
      -*) usage "exercises: unknown option '$1'" ;;
      *) name=$1 ;;
    esac
    shift
  done
  setup program build
  compile release "${kind}s" || die "the exercise does not compile; the errors are above"
  mkdir -p "$build/log"
  found=
  bad=
  for program in "$build"/release/examples/exercises/${kind}_$name; do
    [ -x "$program" ] || continue
    [ -z "$found" ] || say ""
    found=yes
    say "$(basename "$program")"
    exercise "$program" || bad="$bad $(basename "$program" | sed "s/^${kind}_//")"
  done
  [ -n "$found" ] || die "there is no exercise '$name'; see examples/exercises"
  say ""
  [ -z "$bad" ] || {
    say "Not solved yet:$bad. Read examples/exercises/<name>/README.md for the task and build/log for the whole output."
    exit 1
  }
  say "All solved."
}
