// protocol/config/config.ts: what a user may write in ags.yaml or in their own config.yaml. Every field is optional.
// Types, JSON Schema, docs/reference/configuration.md and the file that `ags init` writes all come from this one schema.
// `needsTrust` marks what lets a sandbox see or use more: in a project's own file it waits for `ags trust`.
import { z } from 'zod';
import { checks } from './checks.ts';
import { compose } from './compose.ts';
import { docker } from './docker.ts';
import { hooks } from './hooks.ts';
import { services } from './services.ts';
import { bytes, count, flag, list, pattern, section, text, words } from './forms.ts';
import {
  BACKENDS,
  BELOW,
  CPUS,
  DURATION,
  ENV_NAME,
  ENV_PASS,
  HEADER,
  IMAGE,
  LISTEN,
  PLACE,
  RUNTIME,
  SECRET_NAME,
  SEND,
  SHARE,
  SIZE,
  SIZE_OR_NONE,
  WORDS,
  WORKSPACES,
} from './words.ts';
import { NETWORK_MODES } from '../network.ts';
import { RULE_WORDS } from '../network-rule.ts';

const source = section({
  env: text(ENV_NAME, WORDS.envName).meta({ description: 'A variable of your environment.' }),
  file: text(PLACE, WORDS.place).meta({ description: 'A file; line ends after the value are left out.' }),
  command: list(words('a word of the command'), 'words: a program and its arguments')
    .min(1, { error: 'a program and its arguments' })
    .meta({ description: 'A program of this machine, with its arguments, that prints it.' }),
  keychain: text(/^[^/]+\/[^/]+$/, 'service/account').meta({ description: 'A keychain entry: service/account.' }),
}).partial();

const network = section({
  mode: z.enum(NETWORK_MODES, { error: WORDS.mode }).meta({
    description:
      'on: what a rule allows can be reached. record: you are asked about the rest, and all of it is noted for `ags net lock`. off: nothing but loopback.',
    examples: ['on'],
    needsTrust: 'above your own',
  }),
  defaults: flag.meta({
    description: 'Start from the built-in default list: source hosting, package registries, model APIs, IDE services.',
    examples: [true],
    needsTrust: 'above your own',
  }),
  presets: list(words('the name of a built-in list'), 'names of built-in lists').meta({
    description: 'Further built-in lists of hosts.',
    examples: [['docker']],
    needsTrust: true,
  }),
  allow: list(words(RULE_WORDS), 'rules').meta({
    description:
      'What may be reached: a host, `*.example.com` for all below it, with a port other than 443, with `http://` for port 80, or with methods and a path.',
    examples: [['example.com', '*.example.com', 'example.com:8443', 'GET,HEAD api.example.com/v1/*']],
    needsTrust: true,
  }),
  deny: list(words(RULE_WORDS), 'rules').meta({
    description: 'What may not. This wins over every `allow`, wherever it stands.',
    examples: [['gist.github.com']],
  }),
  addresses: list(words(WORDS.block), 'blocks of addresses').meta({
    description:
      'Private, loopback and other special addresses that allowed names may lead to. Without it they never do.',
    examples: [['10.1.0.0/16']],
    needsTrust: true,
  }),
  tcp: list(words(WORDS.grant), 'grants such as db=localhost:5432').meta({
    description:
      'Single services, of any protocol: a name that exists inside, and the host and port that it leads to. The port inside is the same unless it is given.',
    examples: [['db=localhost:5432', 'cache:6380=10.0.0.5:6379']],
    needsTrust: true,
  }),
  publish: list(
    z.union([count(1, 65_535), words(WORDS.port)], { error: WORDS.port }),
    'ports such as 3000 or "8080:3000"',
  ).meta({
    description:
      'Ports of the sandbox that your own loopback has too, as port or outside:inside. If the port is taken, another is chosen and said.',
    examples: [[3000, '8080:3000']],
    needsTrust: true,
  }),
  upstream: list(
    section({
      proxy: words(WORDS.proxy).meta({ description: 'http:// or socks5://, with host and port.' }),
      auth: source.meta({ description: 'Where "user:password" is kept: one of these.' }).optional(),
      hosts: list(words('a host or *.suffix'), 'hosts')
        .meta({ description: 'Only for these hosts. Without it for all.', examples: [['*.corp']] })
        .optional(),
      resolve: z.enum(['here', 'there'], { error: 'here or there' }).optional().meta({
        description:
          'Who looks names up: here (and the address is checked), or there, by the proxy, for names that only it knows.',
      }),
    }),
    'entries such as - proxy: socks5://proxy.corp:1080',
  ).meta({
    description: 'Proxies to go through. The first that has the host is used.',
    examples: [[{ proxy: 'socks5://proxy.corp:1080', hosts: ['*.corp'], resolve: 'there' }]],
    needsTrust: true,
  }),
  dns: list(words(WORDS.server), 'addresses of name servers').meta({
    description: 'Name servers to ask instead of those of this machine. A sandbox itself never asks any.',
    examples: [['127.0.0.1:53']],
    needsTrust: true,
  }),
  askSeconds: count(1, 3600).meta({
    description: 'With mode record: how long a connection waits for your answer.',
    examples: [60],
  }),
  limits: section({
    connections: count(1, 65_535).meta({ description: 'Connections open at one time.', examples: [512] }),
    perSecond: count(1, 100_000).meta({ description: 'New connections in a second, on average.', examples: [200] }),
    bytesOut: bytes(SIZE_OR_NONE, WORDS.sizeOrNone).meta({ description: 'Sent out in all.', examples: ['10g'] }),
  })
    .partial()
    .meta({ description: 'How much a sandbox may use of the network.', needsTrust: 'above your own' }),
})
  .partial()
  .meta({
    description: 'What a sandbox may reach. What no rule allows does not exist for it, names included.',
  });

const secrets = list(
  section({
    name: text(SECRET_NAME, WORDS.secretName).meta({ description: 'What messages call it.' }),
    host: words('the host that it is for').meta({
      description: 'The one host that it is sent to, with a port if it is not 443. It has to be allowed as well.',
    }),
    header: text(HEADER, WORDS.header)
      .optional()
      .meta({ description: 'The one header it stands in: `authorization`.' }),
    send: text(SEND, WORDS.send).optional().meta({
      description:
        'Set the header to this on every request, with {} for the value. Without it, only the placeholder is replaced.',
    }),
    env: text(ENV_NAME, WORDS.envName).optional().meta({
      description: 'The variable inside that holds a placeholder for it.',
    }),
    endpoint: text(ENV_NAME, WORDS.envName).optional().meta({
      description: 'The variable inside that holds the URL of an endpoint on loopback that leads to the host.',
    }),
    from: source.meta({ description: 'Where the value is kept, outside: one of these.' }),
  }),
  'secrets, each with name, host and from',
).meta({
  description:
    'Tokens that programs inside use without seeing them: they have a placeholder, and the value takes its place on the way to one host, in one header.',
  examples: [[{ name: 'github', host: 'api.github.com', env: 'GITHUB_TOKEN', from: { env: 'GITHUB_TOKEN' } }]],
  needsTrust: true,
});

export const ConfigFile = section({
  user: count(1, 65_533).meta({
    description: 'The uid inside when ags is run by root. Any other caller keeps their own uid. Never 0.',
    examples: [1001],
    needsTrust: true,
  }),
  backend: z.enum(BACKENDS, { error: WORDS.backend }).meta({
    description:
      'What builds sandboxes: native (bubblewrap), docker or podman (containers), or auto (the first of these that is there).',
    examples: ['docker'],
    needsTrust: true,
  }),
  image: text(IMAGE, WORDS.image).meta({
    description:
      'The image whose programs a sandbox has in place of those of this machine, with a container backend. `devcontainer`: the one that .devcontainer/devcontainer.json names. `none`: no image. See `ags image --help`.',
    examples: ['debian:12'],
    needsTrust: true,
  }),
  dockerfile: text(BELOW, WORDS.dockerfile).meta({
    description:
      'A Dockerfile of the project, which `ags image build` makes the image from. It counts more than an `image` beside it.',
    examples: ['.ags/Dockerfile'],
    needsTrust: true,
  }),
  runtime: text(RUNTIME, WORDS.runtime).meta({
    description: 'Another runtime of the engine for the container of a sandbox, for example runsc (gVisor).',
    examples: ['runsc'],
    needsTrust: true,
  }),
  docker,
  compose,
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
    cpus: z
      .union([text(CPUS, WORDS.cpus), z.number().min(0.1).max(9999)], { error: WORDS.cpus })
      .meta({ description: 'How many processors all processes together may keep busy.', examples: ['1.5'] }),
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
  network,
  secrets,
  hooks,
  gateway: section({
    listen: list(text(LISTEN, WORDS.listen), 'places to listen at').meta({
      description: 'Where clients come to: `127.0.0.1:3128`, `[::1]:3128`, or `unix:/run/ags/gateway.sock`.',
      examples: [['127.0.0.1:3128']],
    }),
    admin: text(LISTEN, WORDS.listen).meta({
      description: 'Where `/healthz` and `/metrics` are answered.',
      examples: ['127.0.0.1:9180'],
    }),
    log: text(PLACE, WORDS.place).meta({
      description: 'The file of the decision log.',
      examples: ['/var/log/ags/network.jsonl'],
    }),
    tokenFile: text(PLACE, WORDS.place).meta({
      description:
        'A file with what clients have to give as the password of the proxy. Needed where others than this machine can connect.',
      examples: ['/run/secrets/gateway-token'],
    }),
  })
    .partial()
    .meta({ description: 'For `ags gateway` alone: a gateway that runs on its own.' }),
  setup: section({
    run: list(words('a command'), 'commands').meta({
      description:
        'Commands for `sh -c`, run one after the other in a sandbox over the base commit, with the network rules of the project and without its secrets. What they add (never what git tracks) is there when an agent starts.',
      examples: [['npm ci']],
    }),
    inputs: list(pattern, 'patterns').meta({
      description:
        'Files of the base commit that decide what comes out: the commands run again when one of them has changed. Without it: the lockfiles and manifests of the usual package managers.',
      examples: [['package-lock.json', 'tools/versions.txt']],
    }),
    timeout: text(DURATION, WORDS.duration).meta({
      description: 'How long all commands together may take.',
      examples: ['30m'],
    }),
  })
    .partial()
    .meta({
      description:
        'What the workspace of an agent needs besides the files of its commit, made once and shared, read-only, by all tasks after it. A list alone is short for `run`: `setup: [npm ci]`.',
    }),
  tasks: section({
    agent: words('the name of an agent').meta({
      description: 'The agent that `ags start` uses unless told otherwise.',
      examples: ['claude'],
    }),
    model: words('the name of a model').meta({ description: 'The model that it is told to use.', examples: ['opus'] }),
    parallel: count(1, 64).meta({
      description: 'How many agents run at once; further ones wait their turn.',
      examples: [4],
      needsTrust: 'above your own',
    }),
    time: text(DURATION, WORDS.duration).meta({
      description: 'How long a turn of an agent may take.',
      examples: ['2h'],
    }),
    cost: z
      .number({ error: 'an amount in dollars' })
      .positive({ error: 'an amount in dollars' })
      .meta({ description: 'How much a task may cost, in dollars, where the agent knows.', examples: [5] }),
    turns: count(1, 100_000).meta({ description: 'How many steps an agent may take.', examples: [200] }),
  })
    .partial()
    .meta({ description: 'For agents that work on goals (`ags start`).' }),
  services,
  checks,
  merge: section({
    check: flag.meta({
      description: 'Nothing is merged unless the checks have passed for exactly what is merged.',
      examples: [true],
    }),
  })
    .partial()
    .meta({ description: 'How changes of agents come onto your branches.' }),
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
