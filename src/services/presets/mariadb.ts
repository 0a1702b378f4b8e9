// services/presets/mariadb.ts: MariaDB, which is also used for MySQL.
import { credentials, type ServicePreset } from './preset.ts';

const server = `$(command -v mariadbd || command -v mysqld)`;
const local = `$(command -v mariadb || command -v mysql) --no-defaults --socket=/tmp/mariadb.sock`;

export const mariadb: ServicePreset = {
  name: 'mariadb',
  title: 'MariaDB',
  kind: 'mysql',
  programs: [
    ['mariadbd', 'mysqld'],
    ['mariadb-install-db', 'mysql_install_db'],
    ['mariadb-admin', 'mysqladmin'],
    ['mariadb', 'mysql'],
  ],
  places: ['/usr/sbin'],
  install: 'apt-get install mariadb-server',
  image: 'mariadb',
  ports: [3306],
  user: 'app',
  password: 'app',
  database: 'app',
  init: `$(command -v mariadb-install-db || command -v mysql_install_db) --no-defaults --datadir="$DATA/mariadb" \\
  --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve > /tmp/install 2>&1 || { cat /tmp/install; exit 1; }`,
  run: `exec ${server} --no-defaults --datadir="$DATA/mariadb" --bind-address=127.0.0.1 --port="$PORT" --socket=/tmp/mariadb.sock \\
  --pid-file=/tmp/mariadb.pid --skip-name-resolve --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-buffer-pool-size=64M \\
  --innodb-log-file-size=16M --innodb-flush-method=fsync --innodb-use-native-aio=0 --performance-schema=0 --sync-binlog=0`,
  ready: `$(command -v mariadb-admin || command -v mysqladmin) --no-defaults --socket=/tmp/mariadb.sock --silent ping > /dev/null 2>&1`,
  // Names are validated with the configuration; quotes and backslashes in the password are escaped here.
  prepare: `password=$(printf '%s' "$SERVICE_PASSWORD" | sed "s/[\\\\\\\\']/\\\\\\\\&/g")
${local} -u root <<END
CREATE DATABASE IF NOT EXISTS \\\`$SERVICE_DATABASE\\\`;
CREATE USER IF NOT EXISTS \\\`$SERVICE_USER\\\`@'%' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO \\\`$SERVICE_USER\\\`@'%' WITH GRANT OPTION;
END`,
  stop: 'TERM',
  dataVersion: `grep -o '^[0-9.]*' mariadb/m*_upgrade_info`,
  seeds: { '.sql': `${local} -u root "$SERVICE_DATABASE" < "$1"` },
  url: (to) => `mysql://${credentials(to)}${to.host}:${to.port}/${to.database}`,
  env: (to) => ({
    DATABASE_URL: mariadb.url(to),
    MYSQL_URL: mariadb.url(to),
    MYSQL_HOST: to.host,
    MYSQL_PORT: String(to.port),
    MYSQL_TCP_PORT: String(to.port),
    MYSQL_USER: to.user,
    MYSQL_PASSWORD: to.password,
    MYSQL_PWD: to.password,
    MYSQL_DATABASE: to.database,
  }),
  client: (to) => [
    'mariadb',
    `--host=${to.host}`,
    `--port=${to.port}`,
    `--user=${to.user}`,
    `--password=${to.password}`,
    to.database,
  ],
  tried: true,
};
