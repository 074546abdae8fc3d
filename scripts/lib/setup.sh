# What scripts/demo, scripts/test and .ci/run share: installing what is missing, and building without a wall of text.
# Sourced, never run.
# shellcheck shell=bash

# The tools of administrators (ip, rdma, depmod) are not on every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The image that the tests in a virtual machine boot: .cache survives the removal of build/, a download does not repeat.
# shellcheck disable=SC2034 # used by the scripts that source this file
vm_image=$source_root/.cache/vm

# A program that says nothing for this long gets a line that shows it is at work, in seconds.
readonly progress_seconds=10
# How much of a failed program's output to show, in lines. The rest is in the log file that is named with it.
readonly failure_lines=60
# How long to wait for another package manager to finish, in seconds.
readonly package_lock_seconds=300

# One row per package. group: build (library, demo, benchmarks, tests), verbs (programs of others that tests run on the soft
# device), vm (tests on a kernel RDMA device, Debian and Ubuntu
# only, since the VM boots Debian's kernel), bench (what bench/rxe compares with in that VM) or lint (.ci/run). "-" means that
# another row or the base system brings it.
#
#   group | Debian, Ubuntu        | Fedora, RHEL           | openSUSE              | Arch             | why
readonly packages='
    build | g++                   | gcc-c++                | gcc-c++               | gcc              | the C++20 compiler
    build | cmake                 | cmake                  | cmake                 | cmake            | configures the build (3.25 or newer)
    build | ninja-build           | ninja-build            | ninja                 | ninja            | runs the build
    build | pkg-config            | pkgconf-pkg-config     | pkgconf-pkg-config    | pkgconf          | finds libraries without a CMake package
    build | libibverbs-dev        | rdma-core-devel        | rdma-core-devel       | rdma-core        | RDMA verbs
    build | ibverbs-providers     | libibverbs             | libibverbs            | -                | drivers of RDMA devices
    build | libhwloc-dev          | hwloc-devel            | hwloc-devel           | hwloc            | where cores and devices are
    build | libnuma-dev           | numactl-devel          | libnuma-devel         | numactl          | memory on the right NUMA node
    build | libtomlplusplus-dev   | tomlplusplus-devel     | tomlplusplus-devel    | tomlplusplus     | reads the configuration
    build | libfmt-dev            | fmt-devel              | fmt-devel             | fmt              | formats text
    build | libspdlog-dev         | spdlog-devel           | spdlog-devel          | spdlog           | the log
    build | libcli11-dev          | cli11-devel            | cli11-devel           | cli11            | command lines of the programs
    build | nlohmann-json3-dev    | json-devel             | nlohmann_json-devel   | nlohmann-json    | results as JSON
    build | libgtest-dev          | gtest-devel            | gtest                 | gtest            | tests
    build | libgmock-dev          | gmock-devel            | gmock                 | -                | tests
    build | libbenchmark-dev      | google-benchmark-devel | benchmark-devel       | benchmark        | benchmarks
    vm    | qemu-system-x86       | -                      | -                     | -                | the virtual machine
    vm    | busybox-static        | -                      | -                     | -                | the first program in it
    vm    | kmod                  | -                      | -                     | -                | picks the kernel modules it needs
    vm    | cpio                  | -                      | -                     | -                | packs its first file system
    vm    | iproute2              | -                      | -                     | -                | its network and its RDMA device
    vm    | zstd                  | -                      | -                     | -                | unpacks kernel modules
    vm    | xz-utils              | -                      | -                     | -                | unpacks the kernel
    vm    | rdma-core             | -                      | -                     | -                | the tests of verbs that come with it
    vm    | ibverbs-utils         | -                      | -                     | -                | tools that show the RDMA device
    verbs | ibverbs-utils         | libibverbs-utils       | libibverbs-utils      | -                | programs of others that run on the soft device
    verbs | perftest              | perftest               | perftest              | -                | … and measure it
    verbs | python3-pyverbs       | -                      | -                     | -                | … and the tests of verbs that come with it
    bench | perftest              | -                      | -                     | -                | bare verbs, which bench/rxe compares with
    lint  | clang-format-14       | -                      | -                     | -                | checks the format
    lint  | clang-tidy-14         | -                      | -                     | -                | finds what the compiler does not say
    lint  | shellcheck            | -                      | -                     | -                | finds mistakes in shell scripts
'

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Prints which column of the table this system uses: debian, fedora, opensuse, arch, or nothing.
distribution_family() {
    local ID='' ID_LIKE='' word
    # shellcheck source=/dev/null
    if [[ -r /etc/os-release ]]; then source /etc/os-release; fi
    for word in $ID $ID_LIKE; do
        case $word in
            debian | ubuntu) echo debian && return ;;
            fedora | rhel | centos) echo fedora && return ;;
            opensuse* | suse | sles) echo opensuse && return ;;
            arch) echo arch && return ;;
        esac
    done
}

is_installed() { # FAMILY PACKAGE
    case $1 in
        debian) [[ $(dpkg-query -W -f='${db:Status-Status}\n' "$2" 2>/dev/null) == installed* ]] ;;
        fedora | opensuse) rpm -q --quiet --whatprovides "$2" 2>/dev/null ;;
        arch) pacman -Qq "$2" >/dev/null 2>&1 ;;
    esac
}

# Prints "package|why" for each row of the groups that FAMILY names and does not have.
missing_packages() { # FAMILY GROUP...
    local family=$1 group debian fedora opensuse arch why package
    shift
    # shellcheck disable=SC2034 # the column is read by the name of the family
    while IFS='|' read -r group debian fedora opensuse arch why; do
        # The cells are padded; words have no spaces inside, so unquoted expansion trims them.
        # shellcheck disable=SC2086,SC2116
        group=$(echo $group) package=$(echo ${!family})
        [[ " $* " == *" $group "* && $package != - ]] || continue
        is_installed "$family" "$package" || printf '%s|%s\n' "$package" "${why# }"
    done < <(grep '|' <<<"$packages")
}

# Makes sure that the packages of the groups are there. Debian and Ubuntu: installs them. Elsewhere: names them and stops.
need_packages() { # GROUP...
    local family missing names as_root=()
    family=$(distribution_family)
    [[ -n $family ]] || {
        say "This system is not one whose packages are known (Debian, Ubuntu, Fedora, RHEL, openSUSE, Arch)."
        say "If the build stops, it names what it misses. On Debian these packages are used:"
        print_packages "$(sed -nE 's/^ *build *\| *([^ ]+) .*\| *(.*)$/\1|\2/p' <<<"$packages")"
        return 0
    }
    missing=$(missing_packages "$family" "$@")
    [[ -n $missing ]] || return 0
    names=$(cut -d'|' -f1 <<<"$missing" | xargs)

    if [[ $family != debian ]]; then
        say "These packages are missing:"
        print_packages "$missing"
        case $family in
            fedora) say "Install them with: dnf install $names" && say "(RHEL and its kin have some of them in the repositories CRB and EPEL.)" ;;
            opensuse) say "Install them with: zypper install $names" ;;
            arch) say "Install them with: pacman -S --needed $names" ;;
        esac
        exit 1
    fi

    if ((EUID != 0)); then
        command -v sudo >/dev/null || {
            say "These packages are missing:"
            print_packages "$missing"
            die "run this as root, or have an administrator run: apt-get install $names"
        }
        as_root=(sudo)
    fi
    say "Installing with ${as_root[*]:+${as_root[*]} }apt-get what is missing:"
    print_packages "$missing"
    # sudo may ask for its password here, before the output is redirected.
    ((EUID == 0)) || sudo -v || die "sudo refused; have an administrator run: apt-get install $names"
    local log_directory=$source_root/build/logs
    quietly "Reading the package lists" "$log_directory/apt-update.log" \
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o "DPkg::Lock::Timeout=$package_lock_seconds" update
    # shellcheck disable=SC2086 # one word per package
    quietly "Installing $(wc -w <<<"$names") packages" "$log_directory/apt-install.log" \
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        -o "DPkg::Lock::Timeout=$package_lock_seconds" install $names
}

print_packages() { # LINES OF package|why
    awk -F'|' '{ printf "    %-22s %s\n", $1, $2 }' <<<"$1"
}

# Runs a command into a log file. The screen gets one line when it starts, one every few seconds, one when it ends; if it
# fails, the end of the log, and the script ends.
quietly() { # WHAT LOG COMMAND...
    local what=$1 log=$2 started=$SECONDS
    shift 2
    mkdir -p "$(dirname "$log")"
    : >"$log"
    say "$what …"
    if "$@" </dev/null 2>&1 | show_progress "$log"; then
        say "$what: done in $((SECONDS - started)) s"
    else
        say "$what: FAILED after $((SECONDS - started)) s: $*"
        say "The end of ${log#"$source_root"/}:"
        tail -n "$failure_lines" "$log" | awk '{ print "    " $0 }'
        exit 1
    fi
}

# Copies standard input to a log, and every few seconds its newest line to the screen. With a pattern (extended regular
# expression) of what is quiet, every other line goes to the screen at once.
show_progress() { # LOG [QUIET_PATTERN]
    local line='' newest='' shown=$SECONDS quiet=${2:-} status
    while true; do
        if IFS= read -r -t "$progress_seconds" line; then
            printf '%s\n' "$line" >&3
            if [[ -n $quiet && ! $line =~ $quiet ]]; then
                # ctest fills each line with dots up to the longest name of a test.
                say "    ${line//......../}"
                shown=$SECONDS
            else
                newest=$line
            fi
        else
            status=$?
            # Above 128 the time ran out, and `line` holds the part of a line that has come.
            printf '%s' "$line" >&3
            if ((status <= 128)); then break; fi
        fi
        if ((SECONDS - shown >= progress_seconds)); then
            newest=${newest:-no output yet}
            say "    … ${newest:0:110}"
            shown=$SECONDS
        fi
    done 3>>"$1"
}

# build PRESET [TARGET...] configures and builds, everything if no target is named.
build() {
    local preset=$1 directory=$source_root/build/$1
    shift
    # The compiler's own results from before are used where somebody has ccache; nothing depends on it.
    if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_C_COMPILER_LAUNCHER=ccache; fi
    quietly "Configuring $preset" "$directory/configure.log" cmake -S "$source_root" --preset "$preset"
    quietly "Building $preset" "$directory/build.log" cmake --build "$directory" ${1:+--target "$@"}
}
