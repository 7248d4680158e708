#!/usr/bin/env bash
# Writes legacy.tar.gz and legacy.json.gz of tests/golden/data anew: what LegacySegments.java makes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$here/../data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
java -cp "$("$here/../../../tools/peer/peer" classpath)" "$here/LegacySegments.java" "$work"
gzip -9n <"$work/expected.json" >"$data/legacy.json.gz"
rm "$work/expected.json"
tar --sort=name --owner=0 --group=0 --mtime='2014-05-13 16:53:20Z' -C "$work" -cf - . | gzip -9n >"$data/legacy.tar.gz"
