#!/usr/bin/env bash
# Builds explorer.min.js from the sources, and LICENSES.txt of the software in it. Needs Node.js and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

npm ci --no-audit --no-fund --silent
options=(--bundle --minify --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning)
mkdir -p node_modules/.built
npx wat2wasm source/product.wat -o node_modules/.built/product.wasm
# regl without its checks, which only help to write shaders, is half the size.
options+=(--alias:regl=regl/dist/regl.unchecked.js)
# The worker is a text inside the page's script, which starts it.
npx esbuild source/worker.js "${options[@]}" --format=iife --loader:.wasm=binary --outfile=node_modules/.built/worker.txt
npx esbuild source/main.js "${options[@]}" --format=iife --loader:.txt=text --outfile=node_modules/.built/explorer.js
# Inside an HTML page, "</script" ends the script wherever it is. The first line is a hash of the sources, so that a
# test can tell if they changed since the build.
{
    echo "// $(cat build.sh package-lock.json source/* | sha256sum | cut -d ' ' -f 1)"
    sed 's#</script#<\\/script#g' node_modules/.built/explorer.js
} > explorer.min.js

for package in regl-scatterplot regl regl-line dom-2d-camera camera-2d-simple earcut gl-matrix pub-sub-es @flekschas/utils; do
    printf '%s %s\n\n' "$package" "$(node -p "require('./node_modules/$package/package.json').version")"
    cat node_modules/"$package"/LICENSE*
    printf '\n%s\n\n' '======================================================================'
done > LICENSES.txt
cat >> LICENSES.txt <<'END'
kdbush 4.0.2, inside regl-scatterplot

ISC License

Copyright (c) 2018, Vladimir Agafonkin

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.
END
