#!/bin/sh
# Starts the magazine's article page on one of three servers, in the foreground, with its files in DIR:
#
#   sh start.sh classes DIR                           compiles the servlets into DIR, for CLASSES, and ends
#   sh start.sh tomcat DIR PORT THREADS               servlets; POOL and KEEP in the environment, see tomcat/Articles.java. CLASSES, if it
#                                                     is set, is a folder with the servlets; otherwise they are compiled
#   sh start.sh prefork DIR PORT PROCESSES KEEPALIVE TIMEOUT     Apache with PHP; KEEPALIVE is On or Off, TIMEOUT in seconds
#   sh start.sh event DIR PORT PHP-DIR                Apache before the PHP that `lab/magazine-php/start.sh php PHP-DIR` has started
#
# DATABASE_URL='jdbc:postgresql://127.0.0.1/magazine?user=postgres' for Tomcat,
# DATABASE_DSN='pgsql:host=127.0.0.1;dbname=magazine;user=postgres' for PHP.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
php=$(cd "$here/../../lab/magazine-php" && pwd)
static=$(cd "$here/../articles/static" && pwd)
PATH=$PATH:/usr/sbin

# fill FROM TO: a configuration with its values.
fill() {
    sed -e "s|@dir@|$dir|g; s|@port@|$port|g; s|@php@|$php|g; s|@static@|$static|g" \
        -e "s|@threads@|${threads-}|g; s|@processes@|${processes-}|g" \
        -e "s|@keepalive@|${keepalive-}|g; s|@timeout@|${timeout-}|g; s|@socket@|${socket-}|g" "$here/$1" > "$dir/$2"
}

# compile DIR: the servlets as classes.
compile() {
    lib=/usr/share/tomcat10/lib
    javac -encoding UTF-8 -d "$1" \
        -cp "$lib/servlet-api.jar:$lib/tomcat-jdbc.jar:/usr/share/tomcat10/bin/tomcat-juli.jar" "$here"/tomcat/*.java
}

part=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
port=${3-}
case $part in
classes)
    compile "$dir"
    ;;
tomcat)
    threads=$4
    mkdir -p "$dir/conf" "$dir/logs" "$dir/temp" "$dir/lib" "$dir/webapps/ROOT/WEB-INF/classes"
    fill tomcat/server.xml conf/server.xml
    cp "$here/tomcat/web.xml" "$dir/webapps/ROOT/WEB-INF/"
    cp -R "$static/." "$dir/webapps/ROOT/"
    ln -sf /usr/share/java/postgresql.jar "$dir/lib/"
    if [ -n "${CLASSES-}" ]; then
        cp "$CLASSES"/*.class "$dir/webapps/ROOT/WEB-INF/classes/"
    else
        compile "$dir/webapps/ROOT/WEB-INF/classes"
    fi
    export CATALINA_HOME=/usr/share/tomcat10 CATALINA_BASE="$dir" DATABASE_URL
    exec /usr/share/tomcat10/bin/catalina.sh run
    ;;
prefork)
    processes=$4
    keepalive=$5
    timeout=$6
    fill apache/prefork.conf apache.conf
    # The settings of lab/magazine-php; the distribution's are not read.
    cp "$php/php.ini" "$dir/php.ini"
    export PHP_INI_SCAN_DIR= DATABASE_DSN
    exec apache2 -D FOREGROUND -f "$dir/apache.conf"
    ;;
event)
    socket=$(cd "$4" && pwd)/php.sock
    fill apache/event.conf apache.conf
    exec apache2 -D FOREGROUND -f "$dir/apache.conf"
    ;;
*)
    echo "start.sh: $part is neither classes, tomcat, prefork nor event" >&2
    exit 2
    ;;
esac
