#!/bin/sh
# Starts one part of the legacy site in the foreground, with its files in DIR:
#
#   DATABASE_DSN='pgsql:host=127.0.0.1;dbname=magazine;user=postgres' sh start.sh php DIR
#   sh start.sh nginx DIR PORT PHP-DIR SCRIPT          the page from SCRIPT: article.php or article-apcu.php
#   sh start.sh nginx-cache DIR PORT PHP-DIR SCRIPT    the same, kept for a second

set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin

# fill TEMPLATE: a configuration with its values.
fill() {
    sed -e "s|@here@|$here|g; s|@dir@|$dir|g" \
        -e "s|@port@|${port-}|g; s|@php@|${php-}|g; s|@script@|${script-}|g" "$here/$1" > "$dir/$1"
}

part=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
case $part in
php)
    fill php-fpm.conf
    # The distribution's settings are not read: php.ini has all there are.
    export PHP_INI_SCAN_DIR= DATABASE_DSN
    exec php-fpm8.2 --nodaemonize --allow-to-run-as-root -c "$here/php.ini" --fpm-config "$dir/php-fpm.conf"
    ;;
nginx | nginx-cache)
    port=$3
    php=$(cd "$4" && pwd)/php.sock
    script=$5
    fill "$part.conf"
    exec nginx -p "$dir" -c "$dir/$part.conf" -e stderr
    ;;
*)
    echo "start.sh: $part is neither php, nginx nor nginx-cache" >&2
    exit 2
    ;;
esac
