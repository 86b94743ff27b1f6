#!/bin/sh
# pkg_config.sh shared|static|cxx CC SOURCE ARG... - build SOURCE as pkg-config says, against the libraries in $LIBDIR, and run it;
# cxx: C++20, and both libraries.
set -eu
kind=$1 cc=$2 source=$3
shift 3
export PKG_CONFIG_PATH="$LIBDIR/pkgconfig"
unset KLINEAGE_TASKS
flags="-Wall -Wextra -Werror -std=c17 $(pkg-config --cflags klgate)"
case $kind in
shared)
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags -o gate_shared "$source" $(pkg-config --libs klgate) -Wl,-rpath,"$LIBDIR"
    ;;
cxx)
    command -v "$cc" >/dev/null || { echo "SKIPPED: no $cc"; exit 77; }
    # shellcheck disable=SC2046,SC2086
    "$cc" -Wall -Wextra -Werror -std=c++20 $(pkg-config --cflags klineage) -o gate_cxx "$source" $(pkg-config --libs klineage) \
        -Wl,-rpath,"$LIBDIR"
    ;;
static) # ours static, the system's as they come; the worker is found on PATH
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags -o gate_static "$source" "$LIBDIR/libklgate.a" $(pkg-config --static --libs-only-l klgate | sed 's/-lklgate//')
    PATH=$LIBDIR/../bin:$LIBDIR/../../bin:$PATH
    ;;
esac
exec "./gate_$kind" "$@"
