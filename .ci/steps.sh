# Functions of `.ci/run` and `.ci/nightly`. A summary at the end has a line per step, and the exit status is 1 if any failed.

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
summary=()
failed=0

record() { # NAME STATUS SECONDS
  local result=passed
  if [ "$2" != 0 ]; then
    result=FAILED
    failed=1
  fi
  summary+=("$(printf '%-6s  %5d s  %s' "$result" "$3" "$1")")
}

step() { # NAME COMMAND...
  local name=$1 began=$SECONDS
  shift
  echo "--- $name"
  "$@"
  record "$name" $? $((SECONDS - began))
}

# Steps that run beside the next one; `collect` waits for them and prints what they wrote.
beside=()
declare -a began_at
start() { # NAME COMMAND...
  local name=$1
  shift
  beside+=("$name")
  (
    "$@" >"$logs/$name.log" 2>&1
    echo "$? $SECONDS" >"$logs/$name.result"
  ) &
  began_at[${#beside[@]}]=$SECONDS
}
collect() {
  wait
  local i=0 name status ended
  for name in "${beside[@]}"; do
    i=$((i + 1))
    echo "--- $name"
    cat "$logs/$name.log"
    read -r status ended <"$logs/$name.result" || status=1 ended=$SECONDS
    record "$name" "$status" $((ended - began_at[i]))
  done
  beside=()
}

finish() {
  echo "--- summary: $SECONDS s"
  printf '%s\n' "${summary[@]}"
  exit "$failed"
}

# Programs that some tests need. Tests whose program is missing are skipped, and the closing line of the run lists them.
install_programs() {
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 0
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || true
  for package in redis-server pgbouncer chromium buildah podman runc debootstrap openssl golang-go mono-mcs mono-runtime libmono-system-net-http4.0-cil python3-pytest; do
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null || echo "not installed: $package"
  done
}

install() {
  start programs install_programs
  step 'npm ci' npm ci
  # The parser of the diagrams in docs/.
  step 'npm ci, tools' npm ci --prefix tools
  collect
  [ "$failed" = 0 ] || finish
}

# Files of test/system that take minutes.
slow='/test/system/(walkthroughs|pages-browser|push-killed|killed-claims|lost-connections|collections-concurrency|canary)\.test\.ts$'
