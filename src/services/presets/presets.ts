// services/presets/presets.ts: the known services, by name.
import type { ServicePresetName } from '../../protocol/service.ts';
import { nats, rabbitmq, redpanda } from './brokers.ts';
import { mariadb } from './mariadb.ts';
import { postgres } from './postgres.ts';
import type { ServicePreset } from './preset.ts';
import { redis, valkey } from './redis.ts';
import { elasticsearch, mailpit, memcached, minio, mongodb, opensearch, qdrant } from './stores.ts';

export const PRESETS: Readonly<Record<ServicePresetName, ServicePreset>> = {
  postgres,
  mariadb,
  mysql: { ...mariadb, name: 'mysql', title: 'MySQL (as MariaDB)', image: 'mysql' },
  redis,
  valkey,
  memcached,
  nats,
  rabbitmq,
  minio,
  mongodb,
  elasticsearch,
  opensearch,
  qdrant,
  redpanda,
  mailpit,
};
