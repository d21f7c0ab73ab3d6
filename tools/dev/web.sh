# shellcheck shell=sh disable=SC2154 # `root` is set by ./dev, which sources this file
# The dashboard: ./dev web.

# Builds web/dist, which is checked in: only a change of web/ or of src/http/openapi.json needs it, and Node 20 with npm.
cmd_web() {
  [ $# -eq 0 ] || usage "web takes no arguments"
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then die "web needs Node 20 or later, with npm"; fi
  (
    cd "$root/web"
    installed=$(find node_modules/.package-lock.json -newer package-lock.json 2>/dev/null || true)
    [ -n "$installed" ] || quietly "$build/log/npm.txt" npm ci --no-audit --no-fund
    node build.mjs
    node_modules/.bin/tsc
  ) || die "the dashboard does not build; the errors are above"
  python3 -B "$root/tests/web/bundle_test.py"
}
