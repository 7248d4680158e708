#!/usr/bin/env bash
# Builds the record kernel with AddressSanitizer and UndefinedBehaviorSanitizer and fuzzes it against its Python
# twin. Usage: kernel_asan.sh [SECONDS] [SEED]; KERNEL names another _kernel.c. Exits 77 with a reason where the
# compiler lacks the sanitizers.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
seed=${2:-0}
python=${PYTHON:-python}
cc=${CC:-gcc}
kernel=${KERNEL:-src/odradek/records/_kernel.c}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}

command -v "$cc" >/dev/null || skip "$cc is not there"
library=$("$cc" -print-file-name=libasan.so)
[ -e "$library" ] || skip "$cc has no libasan.so"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$include/Python.h" ] || skip "Python.h is not there"

"$cc" -shared -fPIC -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -Wall -Wextra -Werror -Wno-unused-parameter -DPy_LIMITED_API=0x030b0000 "-I$include" \
    "$kernel" -o "$work/_kernel.abi3.so"

# The interpreter's own arenas would hide what is read past an allocation, and it never frees everything.
LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
    "$python" -m tests.property.kernel_fuzz "$work/_kernel.abi3.so" "$seconds" "$seed"
