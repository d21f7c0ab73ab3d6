# shellcheck shell=sh disable=SC2154 # `root`, `build` and `jobs` are of ./dev, which reads this file
# Failing tests to solve: ./dev exercises.

# exercise PROGRAM: a line per test, then all that the first failing one said. A program that dies in a test fails in it.
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
      -*) usage "exercises: no option '$1'" ;;
      *) name=$1 ;;
    esac
    shift
  done
  setup base
  compile release "${kind}s" || die "that does not compile; the errors are above"
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
  [ -n "$found" ] || die "no exercise '$name'; see examples/exercises"
  say ""
  [ -z "$bad" ] || {
    say "Not solved yet:$bad. What to do is in examples/exercises/<name>/README.md; all that the tests said in build/log."
    exit 1
  }
  say "All solved."
}
