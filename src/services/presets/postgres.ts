// services/presets/postgres.ts: PostgreSQL. Data survives a killed process, but not a power failure, because fsync is off.
import { credentials, type ServicePreset } from './preset.ts';

export const postgres: ServicePreset = {
  name: 'postgres',
  title: 'PostgreSQL',
  kind: 'postgres',
  programs: [['postgres'], ['initdb'], ['pg_isready'], ['psql']],
  places: ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/opt/postgresql-*/bin'],
  install: 'apt-get install postgresql',
  image: 'postgres',
  ports: [5432],
  user: 'app',
  password: 'app',
  database: 'app',
  // Small segments make the first copy-on-write cheaper. C.UTF-8 sorts the same way on every machine.
  init: `printf '%s\\n' "$SERVICE_PASSWORD" > /tmp/password
for locale in C.UTF-8 C; do
  initdb -D "$DATA/pg" -U "$SERVICE_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 \\
    --encoding=UTF8 --locale=$locale --wal-segsize=1 --no-sync > /tmp/initdb 2>&1 && break
  rm -rf "$DATA/pg"
done
rm -f /tmp/password
test -d "$DATA/pg" || { cat /tmp/initdb; exit 1; }`,
  // PostgreSQL's own message about a version mismatch does not say what to do.
  run: `has=$(head -c 9 "$DATA/pg/PG_VERSION") is=$(postgres --version)
case "$is" in *" $has" | *" $has"[!0-9]*) ;; *)
  echo "ags: its data is of PostgreSQL $has and needs PostgreSQL $has; this is $is (with new data: ags restart)" >&2; exit 1;; esac
exec postgres -D "$DATA/pg" -p "$PORT" -k /tmp -c listen_addresses=127.0.0.1 -c fsync=off -c synchronous_commit=off \\
  -c full_page_writes=off -c shared_buffers=32MB -c autovacuum_naptime=1h -c min_wal_size=4MB -c max_wal_size=256MB`,
  ready: `pg_isready -q -h 127.0.0.1 -p "$PORT"`,
  prepare: `test "$SERVICE_DATABASE" = postgres || createdb -h /tmp -p "$PORT" -U "$SERVICE_USER" "$SERVICE_DATABASE"`,
  stop: 'INT',
  dataVersion: 'cat pg/PG_VERSION',
  seeds: {
    '.sql': `psql -X -q -v ON_ERROR_STOP=1 -h /tmp -p "$PORT" -U "$SERVICE_USER" -d "$SERVICE_DATABASE" -f "$1" > /dev/null`,
  },
  url: (to) => `postgres://${credentials(to)}${to.host}:${to.port}/${to.database}`,
  env: (to) => ({
    DATABASE_URL: postgres.url(to),
    POSTGRES_URL: postgres.url(to),
    PGHOST: to.host,
    PGPORT: String(to.port),
    PGUSER: to.user,
    PGPASSWORD: to.password,
    PGDATABASE: to.database,
  }),
  client: (to) => ['psql', postgres.url(to)],
  tried: true,
};
