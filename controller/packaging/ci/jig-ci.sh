#!/bin/sh
# Runs firmware on a board of a lab from a CI job, by SSH and `jig` alone.
#
#   jig-ci.sh SELECTOR test plan.toml --image build/app.elf
#
# SELECTOR is what `jig shell -b` takes; the rest is a call of jig without a board. From the
# environment, beside JIG_RIG:
#   JIG_CI_RETRY    further attempts when the rig has failed (exit code 75); default 1
#   JIG_CI_WAIT     time in the queue for a board, of each attempt; default 30m
#   JIG_CI_OUT      folder of reports and runs; default jig-report
#   JIG_CI_COMMENT  what others see of the lease; default the number of the job
#
# A retry is a new lease. The place at which the rig has failed is less healthy and less rested than
# others that fit, so another place is given where one is free. A failure of the firmware is never
# retried. The exit code is that of the last attempt.
set -u

usage() {
    echo "usage: jig-ci.sh SELECTOR COMMAND [ARGUMENT...]" >&2
    exit 2
}

[ $# -ge 2 ] || usage
selector=$1
shift
retries=${JIG_CI_RETRY:-1}
wait=${JIG_CI_WAIT:-30m}
out=${JIG_CI_OUT:-jig-report}
comment=${JIG_CI_COMMENT:-ci ${GITHUB_RUN_ID:-${CI_JOB_ID:-$$}}}
case $retries in
'' | *[!0-9]*)
    echo "JIG_CI_RETRY is no number: $retries" >&2
    exit 2
    ;;
esac

# Runs under the lease: notes which place it is, then becomes jig.
# shellcheck disable=SC2016
inner='here=$1; shift
printf "%s\n" "$JIG_BOARD" > "$here/place"
exec jig --runs "$here/runs" "$@" \
    --report "junit=$here/junit.xml" --report "json=$here/verdict.json" \
    --report "github=$here/summary.md" --report "annotations=$here/annotations"'

# What an earlier job left in a workspace that is used again.
rm -rf "$out"/attempt-[0-9]*
rm -f "$out/junit.xml" "$out/verdict.json" "$out/summary.md" "$out/place"
attempt=0
history=
while :; do
    attempt=$((attempt + 1))
    here=$out/attempt-$attempt
    mkdir -p "$here" || exit 75
    code=0
    jig shell -b "$selector" --wait "$wait" --comment "$comment" -- \
        sh -c "$inner" jig-ci "$here" "$@" || code=$?
    place=$(cat "$here/place" 2>/dev/null) || place='no place'
    history="$history- Attempt $attempt on $place: exit code $code
"
    if [ "$code" -ne 75 ] || [ "$attempt" -gt "$retries" ]; then
        break
    fi
    echo "jig-ci: the rig has failed on $place (exit code 75); attempt $((attempt + 1)) follows" >&2
done

# The reports of the attempt that counts.
for report in junit.xml verdict.json summary.md place; do
    if [ -f "$here/$report" ]; then
        cp "$here/$report" "$out/$report"
    fi
done
if [ -n "${GITHUB_ACTIONS:-}" ] && [ -f "$here/annotations" ]; then
    # The runner reads them on standard output.
    cat "$here/annotations"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    if [ -f "$here/summary.md" ]; then
        cat "$here/summary.md" >> "$GITHUB_STEP_SUMMARY"
    fi
    if [ "$attempt" -gt 1 ]; then
        printf '\n%s' "$history" >> "$GITHUB_STEP_SUMMARY"
    fi
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf 'place=%s\nexit-code=%s\nattempts=%s\n' "$place" "$code" "$attempt" >> "$GITHUB_OUTPUT"
fi
printf '%s' "$history" >&2
exit "$code"
