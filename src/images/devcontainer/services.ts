// images/devcontainer/services.ts: services of a project beside its dev container, as services of a compose file. Pure.
// They share the network of the dev container, which is only loopback: ports must differ, and passwords protect nothing.
import { AgsError } from '../../protocol/errors.ts';
import type { ServiceConfig, ServicePresetName } from '../../protocol/service.ts';
import { connectionOf, type Described } from '../../services/presets/connection.ts';
import type { Connection } from '../../services/presets/preset.ts';
import { PRESETS } from '../../services/presets/presets.ts';

/** How to run the usual image of a service. */
interface Recipe {
  readonly tag: string;
  /** Never root, and without capabilities. */
  readonly user: string;
  readonly data: string;
  readonly tmpfs: readonly string[];
  environment(to: Connection): Readonly<Record<string, string>>;
  command(to: Connection): readonly string[];
  healthy(to: Connection): readonly string[];
}

const redisLike = (name: 'redis' | 'valkey', tag: string): Recipe => ({
  tag,
  user: name,
  data: '/data',
  tmpfs: ['/tmp'],
  environment: ({ password }) => (password === '' ? {} : { REDISCLI_AUTH: password }),
  command: ({ port, password }) => [
    `${name}-server`,
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--dir',
    '/data',
    '--save',
    '',
    '--appendonly',
    'yes',
    ...(password === '' ? [] : ['--requirepass', password]),
  ],
  healthy: ({ port }) => [`${name}-cli`, '-p', String(port), 'ping'],
});

const RECIPES: Readonly<Partial<Record<ServicePresetName, Recipe>>> = {
  postgres: {
    tag: '17-bookworm',
    user: 'postgres',
    data: '/var/lib/postgresql/data',
    tmpfs: ['/tmp', '/var/run/postgresql:mode=1777'],
    environment: ({ user, password, database, port }) => ({
      POSTGRES_USER: user,
      POSTGRES_PASSWORD: password,
      POSTGRES_DB: database,
      PGPORT: String(port),
    }),
    command: ({ port }) => ['postgres', '-p', String(port), '-c', 'listen_addresses=127.0.0.1'],
    healthy: ({ user, port }) => ['pg_isready', '--host=127.0.0.1', `--port=${port}`, `--username=${user}`],
  },
  mariadb: {
    tag: '11',
    user: 'mysql',
    data: '/var/lib/mysql',
    tmpfs: ['/tmp', '/run/mysqld:mode=1777'],
    environment: ({ user, password, database }) => ({
      MARIADB_USER: user,
      MARIADB_PASSWORD: password,
      MARIADB_DATABASE: database,
      MARIADB_RANDOM_ROOT_PASSWORD: '1',
    }),
    command: ({ port }) => ['mariadbd', `--port=${port}`, '--bind-address=127.0.0.1'],
    healthy: () => ['healthcheck.sh', '--connect', '--innodb_initialized'],
  },
  redis: redisLike('redis', '7-bookworm'),
  valkey: redisLike('valkey', '8'),
};

/** Names that the compose file uses itself. */
const OURS: readonly string[] = ['holder', 'gateway', 'dev', 'docker'];

/** The names that `--service` accepts. */
const BESIDE: readonly string[] = Object.keys(RECIPES);

export interface ComposeService extends Described {
  readonly image: string;
  readonly user: string;
  readonly data: string;
  readonly tmpfs: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly healthy: readonly string[];
}

/** The configured services, and presets that were asked for by name. Sentences say what is left out. */
export function composeServices(
  configured: readonly ServiceConfig[],
  wished: readonly string[],
): { services: ComposeService[]; leftOut: string[] } {
  const wrong = wished.find((name) => !BESIDE.includes(name));
  if (wrong !== undefined)
    throw new AgsError('usage.invalid', `There is no service "${wrong}" for a dev container.`, {
      hint: `Available: ${BESIDE.join(', ')}. Add others to docker-compose.yaml in the same way.`,
    });
  const ours = configured.find(({ name }) => OURS.includes(name));
  if (ours !== undefined)
    throw new AgsError(
      'usage.invalid',
      `A service cannot be called "${ours.name}" in a dev container: the name is reserved.`,
      {
        hint: `Give it another name: ${ours.origin}`,
      },
    );
  const more = [...new Set(wished)].filter((name) => !configured.some((one) => one.preset === name));
  const all = [...configured, ...more.map((name) => plainService(name as ServicePresetName))];
  const leftOut: string[] = [];
  const services = all.flatMap((service): ComposeService[] => {
    const made = composeService(service);
    if (made === null) leftOut.push(`The service ${service.name}: dev containers support ${BESIDE.join(', ')}`);
    // A mounted seed could be a link, by which the project's author would choose a file of this machine.
    else if (service.seed.length > 0) leftOut.push(`The seeds of ${service.name}: load them from inside`);
    return made === null ? [] : [made];
  });
  refuseSamePort(services);
  return { services, leftOut };
}

function composeService(service: ServiceConfig): ComposeService | null {
  const preset = service.preset === null ? null : PRESETS[service.preset];
  const recipe = service.preset === null ? undefined : RECIPES[service.preset === 'mysql' ? 'mariadb' : service.preset];
  if (preset === null || recipe === undefined) return null;
  const to = connectionOf(service, preset);
  return {
    service,
    preset,
    to,
    image: service.image ?? `${service.preset === 'mysql' ? 'mariadb' : preset.image}:${service.version ?? recipe.tag}`,
    user: recipe.user,
    data: recipe.data,
    tmpfs: recipe.tmpfs,
    environment: recipe.environment(to),
    command: recipe.command(to),
    healthy: recipe.healthy(to),
  };
}

function refuseSamePort(services: readonly ComposeService[]): void {
  for (const [i, one] of services.entries()) {
    const other = services.slice(0, i).find(({ to }) => to.port === one.to.port);
    if (other !== undefined)
      throw new AgsError(
        'usage.invalid',
        `${other.service.name} and ${one.service.name} have the same port, but share one loopback in a dev container.`,
        { hint: `Give one of them another port: services: { ${one.service.name}: { port: ${one.to.port + 1} } }` },
      );
  }
}

const MEMORY_BYTES = 1024 ** 3;

function plainService(preset: ServicePresetName): ServiceConfig {
  return {
    name: preset,
    preset,
    image: null,
    environment: {},
    scratch: [],
    run: null,
    version: null,
    database: null,
    user: null,
    password: null,
    ports: [],
    seed: [],
    env: {},
    ready: { port: null, command: null, timeoutSeconds: 60 },
    memoryBytes: MEMORY_BYTES,
    origin: '--service',
  };
}
