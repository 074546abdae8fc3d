# What build-image, run and self_test share. Sourced, never run.
# shellcheck shell=bash

# The tools of administrators (ip, rdma, depmod) are not on every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

vm_directory=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # used by the scripts that source this file
default_image=${VERBATIM_VM_IMAGE:-$(cd "$vm_directory/../.." && pwd)/.cache/vm}

# The exit status by which CTest (SKIP_RETURN_CODE) and Automake know a test that could not run here.
readonly exit_unavailable=77

# How long to wait for another build of the same image, in seconds. A build takes half a minute where packages come quickly.
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly lock_seconds=600

say() {
    printf 'vm/%s: %s\n' "${0##*/}" "$*" >&2
}

unavailable() {
    say "unavailable: $*"
    exit "$exit_unavailable"
}

# require COMMAND:PACKAGE... names every Debian package whose command is missing, all at once.
require() {
    local pair missing=()
    [[ $(uname -m) == x86_64 ]] || unavailable "only x86-64 hosts have a recipe, this one is $(uname -m)"
    for pair; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    if ((${#missing[@]})); then
        unavailable "missing Debian packages: ${missing[*]} (apt-get install ${missing[*]})"
    fi
}

# A fingerprint of everything an image is made from in this directory. An image that was made by another recipe is not used.
recipe() {
    cat "$vm_directory/build-image" "$vm_directory/init" | sha256sum
}

image_is_current() {
    [[ -r $1/recipe && $(<"$1/recipe") == "$(recipe)" ]]
}
