#!/bin/sh
# package.sh CPACK BUILD - both Debian packages, unpacked: the program finds its worker, its tasks and its cards there.
set -eu
cpack=$1 build=$2
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || exit 77
rm -rf packages
"$cpack" -G DEB -B packages --config "$build/CPackConfig.cmake" >packages.log 2>&1 || { cat packages.log; exit 1; }
for package in packages/*.deb; do dpkg-deb -x "$package" packages/root; done
root=$PWD/packages/root/usr
unset KLINEAGE_TASKS KLINEAGE_LIBRARY
cd packages # nothing of the source tree is below here
for file in bin/klineage-worker share/man/man1/klineage.1 include/klineage/klineage.h share/bash-completion/completions/klineage; do
    [ -s "$root/$file" ] || { echo "$file is missing"; exit 1; }
done
grep -q '^\.TH' "$root/share/man/man1/klineage.1"
"$root/bin/klineage" gate gemm "$root/share/klineage/tasks/gemm/naive.c" --workload M=64,N=64,K=64 --check-only --no-journal
