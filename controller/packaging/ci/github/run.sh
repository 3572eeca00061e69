#!/bin/sh
# Called by action.yml: makes an SSH configuration of the inputs, and runs jig-ci.sh with it.
set -eu

folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/jig-ci.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

printf '%s\n' "$INPUT_KNOWN_HOSTS" > "$folder/known_hosts"
{
    echo 'Host *'
    echo "  UserKnownHostsFile $folder/known_hosts"
    echo '  StrictHostKeyChecking yes'
    echo '  BatchMode yes'
    if [ -n "$INPUT_KEY" ]; then
        (umask 077 && printf '%s\n' "$INPUT_KEY" > "$folder/key")
        echo "  IdentityFile $folder/key"
        echo '  IdentitiesOnly yes'
    fi
} > "$folder/config"
unset INPUT_KEY
# The client of OpenSSH, because only it can be given a configuration of its own.
JIG_SSH_COMMAND="ssh -F $folder/config"
export JIG_SSH_COMMAND

# One argument a line: a name with a space needs no quotes, and no shell reads it.
set --
while IFS= read -r argument; do
    if [ -n "$argument" ]; then
        set -- "$@" "$argument"
    fi
done <<EOF
$INPUT_COMMAND
EOF
sh "$(dirname "$0")/../jig-ci.sh" "$INPUT_BOARD" "$@"
