// services/presets/stores.ts: caches; stores for objects, documents, search and vectors; and a mail server that keeps what it receives.
import { credentials, type ServicePreset } from './preset.ts';
import { plain } from './plain.ts';

export const minio: ServicePreset = {
  ...plain({
    name: 'minio',
    title: 'MinIO (speaks S3)',
    programs: [['minio']],
    places: [],
    install: 'MinIO is not packaged in Debian: see min.io',
    image: 'minio/minio',
    ports: [9000],
    run: `MINIO_ROOT_USER="$SERVICE_USER" MINIO_ROOT_PASSWORD="$SERVICE_PASSWORD" exec minio server --quiet --address "127.0.0.1:$PORT" --console-address 127.0.0.1:9001 "$DATA"`,
    url: (to) => `http://${to.host}:${to.port}`,
    variable: 'MINIO_URL',
    tried: false,
  }),
  user: 'app',
  password: 'app-password',
  env: (to) => ({
    MINIO_URL: minio.url(to),
    AWS_ENDPOINT_URL_S3: minio.url(to),
    AWS_ACCESS_KEY_ID: to.user,
    AWS_SECRET_ACCESS_KEY: to.password,
    AWS_REGION: 'us-east-1',
  }),
};

export const memcached: ServicePreset = {
  ...plain({
    name: 'memcached',
    title: 'Memcached',
    programs: [['memcached']],
    places: [],
    install: 'apt-get install memcached',
    image: 'memcached',
    ports: [11211],
    run: `exec memcached --listen 127.0.0.1 --port "$PORT" --memory-limit 64`,
    url: (to) => `memcached://${to.host}:${to.port}`,
    variable: 'MEMCACHED_URL',
    tried: true,
  }),
  env: (to) => ({ MEMCACHED_URL: memcached.url(to), MEMCACHE_SERVERS: `${to.host}:${to.port}` }),
};

export const mongodb: ServicePreset = {
  ...plain({
    name: 'mongodb',
    title: 'MongoDB',
    programs: [['mongod']],
    places: [],
    install: 'MongoDB is not packaged in Debian: see mongodb.com',
    image: 'mongo',
    ports: [27017],
    run: `mkdir -p "$DATA/db"; exec mongod --dbpath "$DATA/db" --bind_ip 127.0.0.1 --port "$PORT" --unixSocketPrefix /tmp`,
    url: (to) => `mongodb://${to.host}:${to.port}/${to.database}`,
    variable: 'MONGODB_URI',
    tried: false,
  }),
  database: 'app',
  env: (to) => ({ MONGODB_URI: mongodb.url(to), MONGO_URL: mongodb.url(to) }),
  client: (to) => ['mongosh', mongodb.url(to)],
};

function searchEngine(name: 'elasticsearch' | 'opensearch', title: string, image: string, site: string): ServicePreset {
  return plain({
    name,
    title,
    programs: [[name]],
    places: [`/usr/share/${name}/bin`],
    install: `${title} is not packaged in Debian: see ${site}`,
    image,
    ports: [9200],
    run: `export ES_JAVA_OPTS='-Xms256m -Xmx256m' OPENSEARCH_JAVA_OPTS='-Xms256m -Xmx256m'
exec ${name} -Ediscovery.type=single-node -Ehttp.port="$PORT" -Enetwork.host=127.0.0.1 -Epath.data="$DATA" -Epath.logs=/tmp`,
    url: (to) => `http://${to.host}:${to.port}`,
    variable: `${name.toUpperCase()}_URL`,
    tried: false,
  });
}

export const elasticsearch = searchEngine('elasticsearch', 'Elasticsearch', 'elasticsearch', 'elastic.co');
export const opensearch = searchEngine('opensearch', 'OpenSearch', 'opensearchproject/opensearch', 'opensearch.org');

export const qdrant: ServicePreset = plain({
  name: 'qdrant',
  title: 'Qdrant',
  programs: [['qdrant']],
  places: [],
  install: 'Qdrant is not packaged in Debian: see qdrant.tech',
  image: 'qdrant/qdrant',
  ports: [6333],
  run: `cd "$DATA" && QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT="$PORT" QDRANT__STORAGE__STORAGE_PATH="$DATA/storage" exec qdrant --disable-telemetry`,
  url: (to) => `http://${to.host}:${to.port}`,
  variable: 'QDRANT_URL',
  tried: false,
});

export const mailpit: ServicePreset = {
  ...plain({
    name: 'mailpit',
    title: 'Mailpit',
    programs: [['mailpit']],
    places: [],
    install: 'Mailpit is not packaged in Debian: see mailpit.axllent.org',
    image: 'axllent/mailpit',
    ports: [1025, 8025],
    run: `exec mailpit --smtp "127.0.0.1:$PORT" --listen 127.0.0.1:8025 --database "$DATA/mail.db" --disable-version-check`,
    url: (to) => `smtp://${credentials(to)}${to.host}:${to.port}`,
    variable: 'SMTP_URL',
    tried: false,
  }),
  env: (to) => ({
    SMTP_URL: mailpit.url(to),
    SMTP_HOST: to.host,
    SMTP_PORT: String(to.port),
    MAILPIT_URL: `http://${to.host}:${to.ports[1] ?? 8025}`,
  }),
};
