// services/presets/redis.ts: Redis and Valkey. Every write goes to the append-only file at once, so data survives a killed process.
import { credentials, type ServicePreset } from './preset.ts';

function redisLike(name: 'redis' | 'valkey', title: string): ServicePreset {
  const programs = (what: string): string[] => {
    const both = [`redis-${what}`, `valkey-${what}`];
    return name === 'redis' ? both : both.toReversed();
  };
  const tool = (what: string): string => `$(command -v ${programs(what).join(' || command -v ')})`;
  const client = `REDISCLI_AUTH="$SERVICE_PASSWORD" ${tool('cli')} -h 127.0.0.1 -p "$PORT"`;
  const preset: ServicePreset = {
    name,
    title,
    kind: 'redis',
    programs: [programs('server'), programs('cli')],
    places: [],
    install: name === 'redis' ? 'apt-get install redis-server' : 'apt-get install valkey-server',
    image: name === 'redis' ? 'redis' : 'valkey/valkey',
    ports: [6379],
    user: null,
    password: null,
    database: null,
    init: null,
    run: `exec ${tool('server')} --bind 127.0.0.1 --port "$PORT" --dir "$DATA" --daemonize no --save '' --appendonly yes \\
  --appendfsync no --protected-mode no --requirepass "$SERVICE_PASSWORD"`,
    // While it loads its data, the server answers with another message.
    ready: `test "$(${client} ping 2> /dev/null)" = PONG`,
    prepare: null,
    stop: 'TERM',
    dataVersion: `head -c 99 appendonlydir/*.base.rdb | grep -ao 'redis-ver.[0-9.]*' | grep -o '[0-9.]*$'`,
    // redis-cli exits with 0 even if a command failed.
    seeds: {
      '.redis': `said=$(${client} < "$1"); printf '%s\\n' "$said" | grep -E '^(ERR|WRONGTYPE|NOAUTH|\\(error\\))' && exit 1 || true`,
    },
    url: (to) => `redis://${to.password === '' ? '' : credentials({ ...to, user: 'default' })}${to.host}:${to.port}`,
    env: (to) => ({ REDIS_URL: preset.url(to), REDIS_HOST: to.host, REDIS_PORT: String(to.port) }),
    client: (to) => [programs('cli')[0] ?? '', '-u', preset.url(to)],
    tried: name === 'redis',
  };
  return preset;
}

export const redis = redisLike('redis', 'Redis');
export const valkey = redisLike('valkey', 'Valkey');
