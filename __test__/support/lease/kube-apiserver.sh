#!/bin/sh
# Starts Kubernetes' own API server, which is $1, with an etcd, in the folder $2, on the ports $3 and $4. Their data and what
# kubernetes.js has put there are in the folder.
set -e
folder=$2
setpriv --pdeathsig KILL etcd --data-dir "$folder/etcd" --logger zap --log-level error \
  --listen-client-urls "http://127.0.0.1:$4" --advertise-client-urls "http://127.0.0.1:$4" \
  --listen-peer-urls http://127.0.0.1:0 --initial-advertise-peer-urls http://127.0.0.1:1 \
  --initial-cluster default=http://127.0.0.1:1 --heartbeat-interval 400 --election-timeout 4000 &
exec "$1" --etcd-servers "http://127.0.0.1:$4" --bind-address 127.0.0.1 --secure-port "$3" \
  --tls-cert-file "$folder/certificate" --tls-private-key-file "$folder/key" \
  --service-account-issuer https://kubernetes.default.svc --service-account-signing-key-file "$folder/key" \
  --service-account-key-file "$folder/key" --service-cluster-ip-range 10.0.0.0/24 \
  --token-auth-file "$folder/tokens.csv" --authorization-mode RBAC --cert-dir "$folder"
