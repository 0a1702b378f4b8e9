// services/presets/brokers.ts: message brokers.
import { credentials, type ServicePreset } from './preset.ts';
import { plain } from './plain.ts';

export const nats: ServicePreset = plain({
  name: 'nats',
  title: 'NATS',
  programs: [['nats-server']],
  places: ['/usr/sbin'],
  install: 'apt-get install nats-server',
  image: 'nats',
  ports: [4222],
  run: `exec nats-server --addr 127.0.0.1 --port "$PORT" --jetstream --store_dir "$DATA"`,
  url: (to) => `nats://${to.host}:${to.port}`,
  variable: 'NATS_URL',
  tried: true,
});

export const rabbitmq: ServicePreset = {
  ...plain({
    name: 'rabbitmq',
    title: 'RabbitMQ',
    programs: [['rabbitmq-server'], ['erl']],
    places: ['/usr/sbin', '/usr/lib/rabbitmq/bin'],
    install: 'apt-get install rabbitmq-server',
    image: 'rabbitmq',
    ports: [5672],
    // The wrapper scripts of distributions insist on running as root or as their own user.
    run: `export HOME="$DATA" RABBITMQ_MNESIA_BASE="$DATA/mnesia" RABBITMQ_LOG_BASE=/tmp RABBITMQ_LOGS=- RABBITMQ_NODENAME=rabbit@localhost \\
  RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$PORT" RABBITMQ_ENABLED_PLUGINS_FILE=/tmp/plugins RABBITMQ_PID_FILE=/tmp/pid \\
  ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_CONFIG_FILE=/tmp/rabbitmq
printf '[].' > /tmp/plugins
printf 'default_user = %s\\ndefault_pass = %s\\nloopback_users = none\\nlisteners.tcp.local = 127.0.0.1:%s\\n' \\
  "$SERVICE_USER" "$SERVICE_PASSWORD" "$PORT" > /tmp/rabbitmq.conf
for program in /usr/lib/rabbitmq/bin/rabbitmq-server "$(command -v rabbitmq-server)"; do test -x "$program" && exec "$program"; done`,
    url: (to) => `amqp://${credentials(to)}${to.host}:${to.port}`,
    variable: 'AMQP_URL',
    tried: true,
  }),
  user: 'app',
  password: 'app',
  env: (to) => ({ AMQP_URL: rabbitmq.url(to), RABBITMQ_URL: rabbitmq.url(to) }),
};

export const redpanda: ServicePreset = plain({
  name: 'redpanda',
  title: 'Redpanda (speaks Kafka)',
  programs: [['redpanda']],
  places: ['/opt/redpanda/bin'],
  install: 'Redpanda is not packaged in Debian: see docs.redpanda.com',
  image: 'redpandadata/redpanda',
  ports: [9092],
  run: `printf 'redpanda:\\n  data_directory: %s\\n  developer_mode: true\\n  kafka_api: [{address: 127.0.0.1, port: %s}]\\n' "$DATA" "$PORT" > /tmp/redpanda.yaml
exec redpanda --redpanda-cfg /tmp/redpanda.yaml --smp 1 --memory 256M --overprovisioned --unsafe-bypass-fsync 1`,
  url: (to) => `${to.host}:${to.port}`,
  variable: 'KAFKA_BROKERS',
  tried: false,
});
