#!/bin/sh
# find_package.sh CMAKE PROJECT PREFIX ARG... - configure and build PROJECT against PREFIX, and run what came of it.
set -eu
cmake=$1 project=$2 prefix=$3
shift 3
unset KLINEAGE_TASKS
rm -rf project
"$cmake" -S "$project" -B project -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug >project.log 2>&1 || { cat project.log; exit 1; }
"$cmake" --build project >project.log 2>&1 || { cat project.log; exit 1; }
project/search "$@"
exec project/loaded "$LIBDIR"/libklgate.so.* "$@"
