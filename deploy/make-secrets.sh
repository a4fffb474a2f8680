#!/bin/sh
# make-secrets.sh HOST: what the composition keeps secret, into secrets/ beside this file, each readable by the one user
# that needs it. Run it as root. What is there already stays: these keys are never made twice for one deployment.
set -eu
umask 077
host=${1:?"usage: make-secrets.sh pay.example.com"}
paydesk=10001 postgres=999 haproxy=99
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets

keep() { # keep NAME USER: standard input becomes the secret
    cat > "$1.new"
    chown "$2:$2" "$1.new"
    chmod 0400 "$1.new"
    mv "$1.new" "$1"
}

[ -e secret_key ] || openssl rand -hex 32 | keep secret_key "$paydesk"
[ -e idempotency_secret ] || openssl rand -hex 32 | keep idempotency_secret "$paydesk"
[ -e vault_keys ] || printf 'k%s:%s\n' "$(openssl rand -hex 4)" "$(openssl rand -base64 32)" | keep vault_keys "$paydesk"
[ -e superuser_password ] || openssl rand -hex 32 | keep superuser_password "$postgres"
if [ ! -e database_url ]; then
    password=$(openssl rand -hex 32)
    printf '%s\n' "$password" | keep database_password "$postgres"
    printf 'postgresql://paydesk:%s@/paydesk?host=/run/postgresql\n' "$password" | keep database_url "$paydesk"
fi
# For trying: browsers warn of it. Put your certificate with its chain and its key in its place.
if [ ! -e tls.pem ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj "/CN=$host" \
        -addext "subjectAltName=DNS:$host" -keyout key.new -out certificate.new 2> /dev/null
    cat certificate.new key.new | keep tls.pem "$haproxy"
    rm certificate.new key.new
fi
