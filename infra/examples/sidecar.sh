#!/usr/bin/env bash
# An agent that makes the same call again and again, under `loopwarden sidecar`: warned, then refused.
# usage: sidecar.sh RUN_ID CALLS       needs curl; LOOPWARDEN_SIDECAR_URL and LOOPWARDEN_SIDECAR_TOKEN as the sidecar has them
set -euo pipefail
url=${LOOPWARDEN_SIDECAR_URL:-http://127.0.0.1:9099} run=$1
ask() { # PATH JSON; without a sidecar, or refused by it, it says so and the agent goes on
  curl --silent --show-error --fail --max-time 5 --header 'Content-Type: application/json' \
    --header "Authorization: Bearer ${LOOPWARDEN_SIDECAR_TOKEN:-}" --data "$2" "$url$1" || true
}
field() { grep -o "\"$1\":\"[^\"]*\"" | cut -d'"' -f4 || true; } # of a flat JSON object; with jq: jq -r ".$1 // empty"

ask /v1/events "{\"type\":\"run.started\",\"run_id\":\"$run\"}" >/dev/null
for number in $(seq "$2"); do
  call="\"run_id\":\"$run\",\"tool\":\"read\",\"args\":{\"path\":\"/etc/hostname\"},\"certain\":2,\"call_id\":\"call-$number\""
  answer=$(ask /v1/calls/before "{$call}")
  case $(field action <<<"$answer") in
    block | abort) echo "$number refused: $(field message <<<"$answer")" && continue ;;
  esac
  echo "$number read, $(ask /v1/calls/after "{$call,\"result\":\"always the same\"}" | field note)"
done
ask /v1/events "{\"type\":\"run.finished\",\"run_id\":\"$run\"}" >/dev/null
