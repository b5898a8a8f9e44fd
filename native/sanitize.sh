#!/bin/sh
# Builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer and runs the crypto tests on it.
#
#   PYTHON=.venv/bin/python native/sanitize.sh [pytest arguments]      default: -q tests/crypto
#
# On a CPU without AVX-512 IFMA its kernels are tested with their instructions emulated.
# Everything is made in build/sanitize; an installed vflcrypto is left alone and not used: site (and with it the
# import hook of an editable install) is switched off, and the packages come from PYTHONPATH instead.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
BUILD=build/sanitize
[ $# -gt 0 ] || set -- -q tests/crypto
EMULATE=ON
if grep -qs avx512ifma /proc/cpuinfo; then EMULATE=OFF; fi

for tool in cmake ninja; do
    "$PYTHON" -c "import $tool" 2>/dev/null || "$PYTHON" -m pip install --quiet "$tool"
done
"$PYTHON" -m cmake -S . -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVFL_SANITIZE=ON -DVFL_VERIFY=ON \
    -DVFL_EMULATE_IFMA=$EMULATE \
    -DPython_EXECUTABLE="$(command -v "$PYTHON")" \
    -DCMAKE_MAKE_PROGRAM="$("$PYTHON" -c 'import ninja, os; print(os.path.join(ninja.BIN_DIR, "ninja"))')"
"$PYTHON" -m cmake --build "$BUILD"

# A package folder with the Python files of the checkout and the instrumented extension.
ROOT=$PWD
rm -rf "$BUILD/path"
mkdir -p "$BUILD/path/vflcrypto"
for file in crypto/vflcrypto/*.py; do ln -s "$ROOT/$file" "$BUILD/path/vflcrypto/"; done
ln -s "$ROOT/$BUILD"/_native*.so "$BUILD/path/vflcrypto/"

# The interpreter itself is not instrumented, so the runtime is loaded first. Leaks: Python frees little at exit.
RUNTIME=$("${CC:-cc}" -print-file-name=libasan.so)
SITE=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
LD_PRELOAD="$RUNTIME" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    PYTHONPATH="$ROOT/$BUILD/path:$ROOT:$SITE" \
    "$PYTHON" -S -m pytest -p no:cacheprovider "$@"
