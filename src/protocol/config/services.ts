// protocol/config/services.ts: services beside a task, as they are written.
import { z } from 'zod';
import { bytes, count, list, section, text, words } from './forms.ts';
import { BELOW, ENV_NAME, HOOK_TIME, IMAGE, SERVICE_NAME, SERVICE_WORD, SIZE, WORDS } from './words.ts';
import { SERVICE_PRESETS } from '../service.ts';

const service = section({
  preset: z.enum(SERVICE_PRESETS, { error: `one of ${SERVICE_PRESETS.join(', ')}` }).meta({
    description: 'What it is, if ags knows it: `ags help service-presets` lists them. `none`: not this one after all.',
    examples: ['postgres'],
  }),
  version: text(/^\d+(\.\d+)*$/, WORDS.version).meta({
    description: 'Which one, where several versions are installed.',
    examples: ['15'],
  }),
  database: text(SERVICE_WORD, WORDS.serviceWord).meta({
    description: 'The database that is made. Without it: app.',
    examples: ['shop'],
  }),
  user: text(SERVICE_WORD, WORDS.serviceWord).meta({
    description: 'Who it belongs to. Without it: app.',
    examples: ['shop'],
  }),
  password: words('a text; put it in quotes').meta({
    description:
      'Without it: app, where the service has users at all. It is no secret: nobody else can reach the service.',
    examples: ['shop'],
  }),
  port: count(1, 65_535).meta({ description: 'The port, if it is not the usual one.', examples: [5432] }),
  run: z
    .union(
      [words(WORDS.serviceRun), list(words('a word of the command'), 'words').min(1, { error: WORDS.serviceRun })],
      {
        error: WORDS.serviceRun,
      },
    )
    .meta({
      description:
        'Any program of this machine: a text for `sh -c`, or a list. It has to listen on 127.0.0.1, and finds its data directory in $DATA.',
      examples: ['mailpit --smtp 127.0.0.1:1025 --listen 127.0.0.1:8025'],
    }),
  ports: list(count(1, 65_535), 'ports')
    .min(1, { error: 'at least one port' })
    .max(16, { error: 'at most 16 ports' })
    .meta({ description: 'The ports of such a program.', examples: [[1025, 8025]] }),
  ready: section({
    port: count(1, 65_535).meta({ description: 'It is ready when this port accepts; without it: its first one.' }),
    command: words('a command').meta({
      description: 'It is ready when this command, run beside it, succeeds.',
      examples: ['test -e $DATA/ready'],
    }),
    timeout: text(HOOK_TIME, WORDS.hookTime).meta({
      description: 'How long it may take; then it has failed.',
      examples: ['60s'],
    }),
  })
    .partial()
    .meta({ description: 'When it is ready.' }),
  seed: list(text(BELOW, 'a path in the project'), 'files of the project').meta({
    description:
      'Files of the project, as they are in the base commit, that fill it: .sql for databases, .redis (commands) for Redis, .sh for anything. They run once; every task gets a copy of what came of it.',
    examples: [['db/schema.sql', 'db/seed.sql']],
  }),
  env: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({
      description:
        'Further variables inside, with {host}, {port}, {user}, {password}, {database} and {url} for what they are.',
      examples: [{ SPRING_URL: 'jdbc:postgresql://{host}:{port}/{database}' }],
    }),
  memory: bytes(SIZE, WORDS.size).meta({
    description:
      'How much memory it may use, beside what the sandbox may (`limits.memory`), and all services together never more than that. Without it: 512m, or an even share of what is left.',
    examples: ['512m'],
  }),
  image: text(IMAGE, WORDS.image).meta({
    description:
      'Its programs are those of this image, which an engine (Docker or Podman) of this machine must have: `ags image pull`. With a preset the image must have its programs; alone it runs what it runs by itself, as a user without any right.',
    examples: ['postgres:17'],
  }),
  environment: z
    .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
      error: 'names, each with its value',
    })
    .meta({ description: 'Variables of the service itself.', examples: [{ MINIO_ROOT_USER: 'app' }] }),
  scratch: list(text(/^\/[^\0]+$/, 'an absolute path'), 'absolute paths')
    .max(16, { error: 'at most 16 directories' })
    .meta({
      description: 'Directories of an image that it must be able to write in, and that are empty whenever it starts.',
      examples: [['/run/app', '/var/cache/app']],
    }),
}).partial();

export const services = z
  .record(text(SERVICE_NAME, WORDS.serviceName), service, { error: 'names, each with a preset or keys' })
  .meta({
    description:
      'Databases and the like that run beside a task, each in a sandbox of its own without network, with data that no other task sees. A preset alone is enough: `services: { db: postgres }`; `false` takes away what an earlier file named. See `ags help service-presets`.',
    examples: [{ postgres: 'postgres', redis: 'redis' }],
  });
