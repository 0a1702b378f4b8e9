// protocol/config/services.ts: the key `services`, for databases and other programs beside a task.
import { z } from 'zod';
import { bytes, count, list, section, text, words } from './forms.ts';
import { BELOW, ENV_NAME, HOOK_TIME, IMAGE, SERVICE_NAME, SERVICE_WORD, SIZE, WORDS } from './words.ts';
import { SERVICE_PRESETS } from '../service.ts';

const service = section({
  preset: z.enum(SERVICE_PRESETS, { error: `one of ${SERVICE_PRESETS.join(', ')}` }).meta({
    description:
      'A kind of service that ags knows (`ags help service-presets` lists them). `none` removes the service.',
    examples: ['postgres'],
  }),
  version: text(/^\d+(\.\d+)*$/, WORDS.version).meta({
    description: 'The version to use, if several are installed.',
    examples: ['15'],
  }),
  database: text(SERVICE_WORD, WORDS.serviceWord).meta({
    description: 'The database to create. Default: app.',
    examples: ['shop'],
  }),
  user: text(SERVICE_WORD, WORDS.serviceWord).meta({
    description: 'The user who owns it. Default: app.',
    examples: ['shop'],
  }),
  password: words('a text; put it in quotes').meta({
    description:
      'Password of the user. Default: app, if the service has users. It is no secret: only the task can reach the service.',
    examples: ['shop'],
  }),
  port: count(1, 65_535).meta({ description: 'The port, if not the default of the preset.', examples: [5432] }),
  run: z
    .union(
      [words(WORDS.serviceRun), list(words('a word of the command'), 'words').min(1, { error: WORDS.serviceRun })],
      {
        error: WORDS.serviceRun,
      },
    )
    .meta({
      description:
        'Any program of this machine: a text for `sh -c`, or a list. It must listen on 127.0.0.1; $DATA is its data directory.',
      examples: ['mailpit --smtp 127.0.0.1:1025 --listen 127.0.0.1:8025'],
    }),
  ports: list(count(1, 65_535), 'ports')
    .min(1, { error: 'at least one port' })
    .max(16, { error: 'at most 16 ports' })
    .meta({ description: 'The ports of the program in `run`.', examples: [[1025, 8025]] }),
  ready: section({
    port: count(1, 65_535).meta({
      description: 'The service is ready when this port accepts connections. Default: its first port.',
    }),
    command: words('a command').meta({
      description: 'The service is ready when this command, run beside it, succeeds.',
      examples: ['test -e $DATA/ready'],
    }),
    timeout: text(HOOK_TIME, WORDS.hookTime).meta({
      description: 'Time limit until it is ready; after it, the service has failed.',
      examples: ['60s'],
    }),
  })
    .partial()
    .meta({ description: 'How ags knows that the service is ready.' }),
  seed: list(text(BELOW, 'a path in the project'), 'files of the project').meta({
    description:
      'Files of the base commit that fill it with data: .sql for databases, .redis (commands) for Redis, .sh for anything. They run once; every task gets a copy of the result.',
    examples: [['db/schema.sql', 'db/seed.sql']],
  }),
  env: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({
      description: 'Further variables inside; {host}, {port}, {user}, {password}, {database} and {url} are replaced.',
      examples: [{ SPRING_URL: 'jdbc:postgresql://{host}:{port}/{database}' }],
    }),
  memory: bytes(SIZE, WORDS.size).meta({
    description:
      'Memory limit of the service, in addition to that of the sandbox (`limits.memory`); all services together never use more than that limit. Default: 512m, or an even share of the rest.',
    examples: ['512m'],
  }),
  image: text(IMAGE, WORDS.image).meta({
    description:
      'An image that provides its programs; Docker or Podman on this machine must have it (`ags image pull`). With a preset, the image must contain the programs of the preset. Without one, the command of the image runs, as an unprivileged user.',
    examples: ['postgres:17'],
  }),
  environment: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({ description: 'Environment variables of the service itself.', examples: [{ MINIO_ROOT_USER: 'app' }] }),
  scratch: list(text(/^\/[^\0]+$/, 'an absolute path'), 'absolute paths')
    .max(16, { error: 'at most 16 directories' })
    .meta({
      description: 'Directories of an image that the service may write to. They are empty at every start.',
      examples: [['/run/app', '/var/cache/app']],
    }),
}).partial();

export const services = z
  .record(text(SERVICE_NAME, WORDS.serviceName), service, { error: 'names, each with a preset or keys' })
  .meta({
    description:
      'Databases and similar programs that run beside a task, each in its own sandbox without a network, with data that no other task sees. A preset is enough: `services: { db: postgres }`. `false` removes a service of an earlier file. See `ags help service-presets`.',
    examples: [{ postgres: 'postgres', redis: 'redis' }],
  });
