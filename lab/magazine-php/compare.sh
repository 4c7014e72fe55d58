#!/bin/sh
# Compares the answers of two URLs: `sh compare.sh http://127.0.0.1:8080/read?id=50000500 http://127.0.0.1:8081/read?id=50000500`.
#
# They are the same page if they are equal once `'` and `/` are escaped in one way: Millpond's templates write &#x27; and &#x2f;,
# PHP &#039; and a plain slash. Exit status: 0 if so, 1 with the difference.

set -eu
[ $# -eq 2 ] || { echo "usage: sh compare.sh URL URL" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for n in 1 2; do
    curl --fail --silent --show-error --output "$dir/page" "$1"
    sed -e "s|&#x2f;|/|g; s|&#x27;|'|g; s|&#039;|'|g" "$dir/page" > "$dir/$n"
    shift
done
diff "$dir/1" "$dir/2"
