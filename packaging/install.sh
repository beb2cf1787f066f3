#!/bin/sh
# Installs edge-ldp as a service on a Debian-like system, or takes it away again:
#
#   packaging/install.sh agent                 user, directories, virtual environment, unit, example configuration
#   packaging/install.sh aggregator            the same for a fleet's aggregator
#   packaging/install.sh agent --remove        stops and removes the service; configuration and state stay
#   packaging/install.sh agent --purge         removes these too: ledger, outbox, secrets
#
#   --from PATH     what pip installs: this source tree unless given; a service's wheel with the library's beside
#                   it, or a directory of all wheels for a machine without a network
#   --root DIR      under another root (an image being built); services are not started there
#   --with A,B      of the aggregator: what else is installed, and at upgrades again: oidc, postgres, archive, qr, spark
#   --image         the agent takes the invitation on the boot partition at its first start:
#                   /boot/firmware/edge-ldp.invitation, one for each card
#
# Running it again upgrades: the configuration and the state are never touched. Needs root and python3-venv.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
what= action=install from=$here root= image= with=
usage() { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
fail() { echo "install.sh: $1" >&2; exit "${2:-1}"; }

while [ $# -gt 0 ]; do
    case $1 in
        agent | aggregator) what=$1 ;;
        --remove | --purge) action=${1#--} ;;
        --from) from=${2:?--from needs a path}; shift ;;
        --with) with=${2:?--with needs names, as oidc,postgres}; shift ;;
        --image) image=edge-ldp-agent-first.service ;;
        --root) root=${2:?--root needs a directory}; shift ;;
        *) usage ;;
    esac
    shift
done
[ -n "$what" ] || usage
[ -z "$image" ] || [ "$what" = agent ] || usage
for each in $(echo "$with" | tr , ' '); do
    case $what,$each in
        aggregator,archive | aggregator,oidc | aggregator,postgres | aggregator,qr | aggregator,spark) ;;
        *) fail "--with: $what has no $each" 2 ;;
    esac
done
[ "$(id -u)" = 0 ] || fail "needs root: sudo $0 $what" 2

unit=edge-ldp-$what.service
case $what in
    agent) user=edge-ldp groups=dialout extras= units=$unit ;;
    aggregator) user=edge-ldp-aggregator groups= extras=console,
        units="$unit edge-ldp-aggregator@.service edge-ldp-compact.service edge-ldp-compact.timer
            edge-ldp-console.service edge-ldp-export.service edge-ldp-export.timer" ;;
esac
state=$root/var/lib/$user
venv=/opt/edge-ldp
in_root() { if [ -n "$root" ]; then chroot "$root" "$@"; else "$@"; fi; }
manager() { [ -n "$root" ] || [ ! -d /run/systemd/system ] || systemctl "$@"; }

remove() {
    manager disable --now "$unit" 2>/dev/null || true
    for each in $units; do
        case $each in
            *.timer) manager disable --now "$each" 2>/dev/null || true ;;
            *-console.*) manager disable --now "$each" 2>/dev/null || true ;;
            *@*) manager stop "${each%.service}*" 2>/dev/null || true; manager disable "$each" 2>/dev/null || true ;;
        esac
        rm -f "$root/etc/systemd/system/$each"
    done
    [ "$what" != agent ] || rm -f "$root/etc/systemd/system/edge-ldp-agent-first.service" \
        "$root/etc/systemd/system/multi-user.target.wants/edge-ldp-agent-first.service"
    manager daemon-reload
    other=$([ "$what" = agent ] && echo aggregator || echo agent)
    [ -e "$root/etc/systemd/system/edge-ldp-$other.service" ] || rm -rf "$root$venv" "$root/usr/local/bin/edge-ldp"
    if [ "$action" = remove ]; then
        echo "removed; kept: $root/etc/edge-ldp, $state (--purge deletes them)"
        return
    fi
    rm -rf "$state" "$root/etc/edge-ldp/$what.toml" "$root/etc/edge-ldp/$what.d"
    rmdir "$root/etc/edge-ldp" 2>/dev/null || true
    in_root userdel "$user" 2>/dev/null || true
    echo "purged: a new installation begins with a silence of one window, as if it were spent"
}

install_service() {
    in_root python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "needs Python 3.11 or newer with venv: apt-get install python3-venv"
    if ! in_root getent passwd "$user" >/dev/null; then
        in_root useradd --system --user-group --home-dir "/var/lib/$user" --no-create-home --shell /usr/sbin/nologin "$user"
    fi
    for group in $groups; do in_root usermod --append --groups "$group" "$user"; done
    install -d -m 0755 "$root/etc/edge-ldp"
    in_root install -d -m 0700 -o "$user" -g "$user" "/var/lib/$user"
    in_root python3 -m venv "$venv"
    told=$(mktemp)
    chosen=$root$venv/$what.extras
    [ -n "$with" ] || [ ! -e "$chosen" ] || with=$(cat "$chosen")
    extras=$extras${with:+$with,}
    lend
    pip_install "[${extras}sign]" 2>"$told" || {
        could_reach_the_index
        lacks cryptography cffi || fail "pip could not install it: $(tail -n 1 "$told")"
        echo "note: without cryptography, which is not there in wheels for every machine: plans stay unsigned" >&2
        pip_install "${extras:+[${extras%,}]}" 2>"$told" || {
            could_reach_the_index
            fail "pip could not install it: $(tail -n 1 "$told")"
        }
    }
    rm -f "$told"
    [ -z "$with" ] || echo "$with" >"$chosen"
    install -d "$root/usr/local/bin" "$root/etc/systemd/system"
    ln -sf "$venv/bin/edge-ldp" "$root/usr/local/bin/edge-ldp"
    for each in $units; do install -m 0644 "$here/config/systemd/$each" "$root/etc/systemd/system/$each"; done
    configure
    if [ -n "$image" ]; then
        install -m 0644 "$here/packaging/$image" "$root/etc/systemd/system/$image"
        install -d "$root/etc/systemd/system/multi-user.target.wants"
        ln -sf "../$image" "$root/etc/systemd/system/multi-user.target.wants/$image"
    fi
    manager daemon-reload
    by_hand="next: edit"
    if [ "$what" = agent ]; then
        echo "next: edge-ldp agent setup -c /etc/edge-ldp/agent.toml --replace (after a trial: --from its agent.toml)"
        by_hand="  or: edit"
    fi
    echo "$by_hand /etc/edge-ldp/$what.toml, then"
    echo "      edge-ldp $what check -c /etc/edge-ldp/$what.toml && systemctl enable --now $unit"
    [ "$what" = agent ] || echo "and to look at it: systemctl enable --now edge-ldp-console"
}

# Under another root pip sees nothing of this one: what it installs is lent to it.
lend() {
    [ -n "$root" ] || return 0
    lent=$(mktemp -d "$root/tmp/edge-ldp.XXXXXX")
    trap 'rm -rf "$lent"' EXIT
    at=$from name=
    [ -d "$from" ] || { at=$(dirname "$from") name=/$(basename "$from"); }
    tar -C "$at" --exclude './.*' -cf - . | tar -C "$lent" -xf -
    from=${lent#"$root"}$name
}

# What runs, with the extra given: the service in this source tree, in one wheel, or in a directory of them.
pip_install() {
    if [ -d "$root$from" ] && [ ! -e "$root$from/pyproject.toml" ]; then
        set -- --no-index --find-links "$from" "edge-ldp-$what$1"
    elif [ -d "$root$from" ]; then
        set -- --constraint "$from/constraints.txt" "$from" "$from/$what$1"
    else
        set -- --find-links "$(dirname "$from")" "edge-ldp-$what$1 @ file://$from"
    fi
    in_root "$venv/bin/pip" install --upgrade --force-reinstall --only-binary cffi,cryptography --quiet \
        --disable-pip-version-check "$@"
}

# Whether pip's words, in $told, are of packages that are not there for this machine.
lacks() {
    for package in "$@"; do
        ! grep -q "No matching distribution found for $package" "$told" || return 0
    done
    return 1
}

# A download that failed is no package that is missing: ends, and says so.
could_reach_the_index() {
    ! grep -qiE 'NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|SSLError|IncompleteRead|ConnectionResetError' "$told" ||
        fail "pip could not download: is there a network? try again, or install from wheels at hand: --from DIRECTORY"
}

# The example, readable by root and the service alone, unless there is a configuration already.
configure() {
    file=/etc/edge-ldp/$what.toml
    if [ -e "$root$file" ]; then
        echo "kept: $root$file"
        return
    fi
    install -m 0640 "$here/config/$what.toml" "$root$file"
    in_root chown "root:$user" "$file"
}

case $action in
    install) install_service ;;
    *) remove ;;
esac
