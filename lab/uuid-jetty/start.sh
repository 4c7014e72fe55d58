#!/bin/sh
# start.sh build [TARGET]: compiles with Maven, into the folder TARGET if one is named.
# start.sh serve PORT [TARGET]: serves what was built on 127.0.0.1:PORT.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case ${1-} in
build)
    target=${2-$here/target}
    mkdir -p "$target"
    # Maven builds beside its own file.
    cp -R "$here/pom.xml" "$here/src" "$target/"
    exec mvn -q -B -f "$target/pom.xml" package
    ;;
serve)
    target=${3-$here/target}/target
    exec java -Xms256m -Xmx256m -XX:+UseParallelGC -cp "$target/uuid-jetty.jar:$target/lib/*" UuidServer "$2"
    ;;
*)
    echo "usage: start.sh build [TARGET] | serve PORT [TARGET]" >&2
    exit 2
    ;;
esac
