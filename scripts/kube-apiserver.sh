#!/bin/sh
# Builds Kubernetes' own API server, which no registry has as a program, from Debian's source package `kubernetes` (1.20), in
# about ten minutes of two processors and 3 GB. Needs deb-src in apt's sources, dpkg-dev and golang-go. Prints its path, which
# tests take in KUBE_APISERVER:
#
#   KUBE_APISERVER=$(scripts/kube-apiserver.sh) TESTS=storms node --test __test__/lease/kubernetes.test.js
set -eu
built=$(cd "$(dirname "$0")/.." && pwd)/target/kubernetes
if [ ! -x "$built/kube-apiserver" ]; then
  mkdir -p "$built/go/src/k8s.io"
  cd "$built"
  {
    apt-get source --download-only kubernetes
    dpkg-source --no-check -x kubernetes_*.dsc go/src/k8s.io/kubernetes
    cd go/src/k8s.io/kubernetes
    export GOPATH="$built/go" GO111MODULE=off GOFLAGS= GOPROXY=off
    vendor=k8s.io/kubernetes/vendor
    go build -o "$built/openapi-gen" "$vendor/k8s.io/kube-openapi/cmd/openapi-gen"
    # What its makefile finds by a marker in the sources.
    marked=$(
      grep -rl --include='*.go' '+k8s:openapi-gen=' staging/src/k8s.io pkg cmd | xargs -n1 dirname | sort -u |
        grep -v -e code-generator -e sample- -e /testdata |
        sed -e "s|^staging/src|$vendor|" -e 's|^pkg/|k8s.io/kubernetes/&|' -e 's|^cmd/|k8s.io/kubernetes/&|'
    )
    "$built/openapi-gen" -O zz_generated.openapi -p k8s.io/kubernetes/pkg/generated/openapi \
      -i "$(echo $marked | tr ' ' ,)" --go-header-file hack/boilerplate/boilerplate.generatego.txt \
      -r "$built/violations" --output-base "$built/go/src"
    go build -o "$built/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
  } >&2
fi
echo "$built/kube-apiserver"
