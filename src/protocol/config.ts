// protocol/config.ts: what a user may write in ags.yaml or in their own config.yaml. Every field is optional.
// Types, JSON Schema, docs/configuration.md and the file that `ags init` writes all come from this one schema.
// `needsTrust` marks what lets a sandbox see or use more: in a project's own file it waits for `ags trust`.
import { z } from 'zod';
import { BELOW, DURATION, ENV_NAME, ENV_PASS, PATTERN, PLACE, SHARE, SIZE, WORDS, WORKSPACES } from './config-words.ts';

const flag = z.boolean({ error: 'true or false' });
const text = (pattern: RegExp, expected: string) => z.string({ error: expected }).regex(pattern, { error: expected });
const list = <T extends z.ZodType>(item: T, expected: string) => z.array(item, { error: `a list of ${expected}` });
const count = (min: number, max: number) => {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};
const bytes = (form: RegExp, error: string) =>
  z.union([z.int({ error }).positive({ error }), text(form, error)], { error });
const pattern = text(PATTERN, WORDS.pattern);
const section = <T extends z.ZodRawShape>(shape: T) => z.strictObject(shape, { error: 'keys, each with its value' });

export const ConfigFile = section({
  user: count(1, 65_533).meta({
    description: 'The uid inside when ags is run by root. Any other caller keeps their own uid. Never 0.',
    examples: [1001],
    needsTrust: true,
  }),
  workspace: z.enum(WORKSPACES, { error: WORDS.workspace }).meta({
    description:
      "How a sandbox gets its own copy of the project's files: overlay (copy-on-write, ready at once), copy (a real copy, slower and larger), or auto (overlay where the kernel allows it, else copy).",
    examples: ['auto'],
  }),
  tools: section({
    defaults: flag.meta({
      description:
        'Start from the built-in list of tool directories: asdf, nvm, cargo, pyenv, go, sdkman and many more.',
      examples: [true],
    }),
    add: list(
      text(BELOW, 'a path relative to your home, such as .local/share/tool'),
      'paths relative to your home',
    ).meta({
      description: 'Further directories or files of your home to show, relative to it.',
      examples: [['.local/share/my-tool']],
      needsTrust: true,
    }),
    remove: list(
      text(BELOW, 'a path relative to your home, such as .cargo/registry'),
      'paths relative to your home',
    ).meta({
      description: 'Entries not to show, with all that is below them. This wins over every `add`.',
      examples: [['.cargo/registry']],
    }),
  })
    .partial()
    .meta({
      description:
        'Tool directories of your home that are visible inside, read-only. The rest of your home does not exist there.',
    }),
  mounts: list(
    section({
      path: text(PLACE, WORDS.place).meta({
        description: 'An absolute path, or one that begins with `~/`.',
      }),
    }),
    'entries such as - path: /opt/models',
  ).meta({
    description: 'Further files or directories of this machine to show at their own path, read-only.',
    examples: [[{ path: '/opt/models' }]],
    needsTrust: true,
  }),
  etc: list(text(BELOW, 'a name below /etc, such as odbc.ini'), 'names below /etc').meta({
    description: 'Further names below /etc to show, read-only. `*` stands for any part of a name.',
    examples: [['odbc.ini']],
    needsTrust: true,
  }),
  env: section({
    pass: list(text(ENV_PASS, WORDS.envPass), 'names of variables').meta({
      description:
        'Variables of your environment to hand on: names, or prefixes that end in `_*`. Nothing else of it is visible inside.',
      examples: [['DATABASE_NAME', 'MYAPP_*']],
      needsTrust: true,
    }),
    set: z
      .record(text(ENV_NAME, WORDS.envName), z.string({ error: 'a text; put it in quotes' }), {
        error: 'names, each with its value',
      })
      .meta({ description: 'Variables to set inside. They win over `pass`.', examples: [{ LOG_LEVEL: 'debug' }] }),
  })
    .partial()
    .meta({ description: 'The environment inside. It starts empty but for terminal, language and tool locations.' }),
  hide: list(pattern, 'patterns').meta({
    description:
      'Files of the project that must not exist inside, besides the built-in patterns for keys, `.env` files and the like.',
    examples: [['*.sqlite', 'customer-data/']],
  }),
  reveal: list(pattern, 'patterns').meta({
    description: 'Hidden files of the project that may be seen after all.',
    examples: [['.env.test', 'certs/dev.pem']],
    needsTrust: true,
  }),
  limits: section({
    processes: count(16, 4_194_304).meta({ description: 'Processes and threads at one time.', examples: [2048] }),
    memory: bytes(SHARE, WORDS.share).meta({
      description: "Memory of all processes together: a size, or a share of this machine's memory.",
      examples: ['4g'],
    }),
    openFiles: count(64, 1_048_576).meta({ description: 'Open files of one process.', examples: [65_536] }),
    fileSize: bytes(SIZE, WORDS.size).meta({ description: 'Size of any one file that is written.', examples: ['20g'] }),
    disk: bytes(SIZE, WORDS.size).meta({
      description: 'Everything that a sandbox writes, in the project and in its home.',
      examples: ['20g'],
    }),
    tmp: bytes(SIZE, WORDS.size).meta({ description: 'Size of /tmp, which lives in memory.', examples: ['1g'] }),
    cpu: text(DURATION, WORDS.duration).meta({ description: 'CPU time of any one process.', examples: ['30m'] }),
    time: text(DURATION, WORDS.duration).meta({
      description: 'Time from start to end; then the sandbox is ended.',
      examples: ['2h'],
    }),
  })
    .partial()
    .meta({
      description:
        'What a sandbox may use up. Sizes have k, m, g or t behind them (powers of 1024), times s, m, h or d.',
      needsTrust: 'above your own',
    }),
  kernel: section({
    ptrace: flag.meta({
      description: 'Let debuggers and strace work inside, on processes of the sandbox only.',
      examples: [true],
      needsTrust: true,
    }),
    unixSockets: flag.meta({
      description: 'Let programs use Unix sockets inside. No socket of this machine is visible either way.',
      examples: [false],
      needsTrust: true,
    }),
  })
    .partial()
    .meta({ description: 'What programs may ask of the kernel.' }),
  review: section({
    risky: list(pattern, 'patterns').meta({
      description:
        'Further files that run on your machine once they are taken: the review never takes them unless they are named.',
      examples: [['scripts/', 'deploy/*.sh']],
    }),
  })
    .partial()
    .meta({ description: 'How changes are looked at.' }),
})
  .partial()
  .meta({ title: 'ags.yaml', description: 'Configuration of ags, for a project (ags.yaml) or a user (config.yaml).' });
export type ConfigFile = z.infer<typeof ConfigFile>;
