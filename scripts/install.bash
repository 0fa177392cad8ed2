# What the scripts that install things share. Sourced, under `set -euo pipefail`.

# Where they put them: a directory of the user's.
cache=${XDG_CACHE_HOME:-}
case $cache in /*) ;; *) cache=${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache ;; esac
cache=$cache/remora-lab

# Downloads can fail briefly: how often each is tried, and the pauses between in seconds.
tries_max=3
pauses=(5 20)

# outcome COMMAND…: sets `status` to its exit status, with `set -e` holding inside, which bash ignores in a condition.
outcome() {
    set +e
    (
        set -e
        "$@"
    )
    status=$?
    set -e
}

# retry COMMAND…: runs it until it succeeds, at most tries_max times; ends the script with its status if it never does.
# Not for a condition, see `outcome`.
retry() {
    local try status
    for ((try = 1; ; try++)); do
        outcome "$@"
        if ((status == 0)); then return; fi
        if ((try == tries_max)); then exit "$status"; fi
        printf '==> failed (exit %d): %s; next try in %d s\n' "$status" "$*" "${pauses[try - 1]}" >&2
        sleep "${pauses[try - 1]}"
    done
}

# part NAME FILE…: calls install_NAME, unless it succeeded before and neither these files nor `install` have changed.
# What it installs goes to $root.
part() {
    local name=$1 digest log status
    shift
    digest=$(cat -- "$@" install | sha256sum)
    if [ "$(cat "$root/stamps/$name" 2>/dev/null)" = "$digest" ]; then return; fi
    printf '==> installing: %s\n' "$name"
    log=$root/stamps/$name.log
    outcome retry "install_$name" >"$log" 2>&1
    if ((status != 0)); then
        cat "$log" >&2
        printf '%s: %s could not be installed; its messages are above and in %s\n' "$0" "$name" "$log" >&2
        exit 1
    fi
    printf '%s' "$digest" >"$root/stamps/$name"
}
