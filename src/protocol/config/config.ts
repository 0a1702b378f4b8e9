// protocol/config/config.ts: the schema of ags.yaml and of the user's config.yaml. Every key is optional.
// Types, the JSON Schema, docs/reference/configuration.md and the file that `ags init` writes all come from it.
// Invariant: `needsTrust` marks every key that lets a sandbox see or use more; in a project's file it needs `ags trust`.
import { z } from 'zod';
import { agents } from './agents.ts';
import { checks } from './checks.ts';
import { compose } from './compose.ts';
import { docker } from './docker.ts';
import { home } from './home.ts';
import { hooks } from './hooks.ts';
import { services } from './services.ts';
import { source } from './source.ts';
import { bytes, count, flag, list, pattern, section, text, words } from './forms.ts';
import {
  BACKENDS,
  BELOW,
  BUDGET,
  CPUS,
  DURATION,
  ENV_NAME,
  ENV_PASS,
  HEADER,
  IMAGE,
  LISTEN,
  MODEL,
  PLACE,
  PRICE,
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

const network = section({
  mode: z.enum(NETWORK_MODES, { error: WORDS.mode }).meta({
    description:
      'on: only hosts that a rule allows can be reached. record: ags asks you about all other hosts, and notes them for `ags net lock`. off: only loopback.',
    examples: ['on'],
    needsTrust: 'above your own',
  }),
  defaults: flag.meta({
    description: 'Start from the built-in default list: source hosting, package registries, model APIs, IDE services.',
    examples: [true],
    needsTrust: 'above your own',
  }),
  presets: list(words('the name of a built-in list'), 'names of built-in lists').meta({
    description: 'Further built-in lists of rules.',
    examples: [['docker']],
    needsTrust: true,
  }),
  allow: list(words(RULE_WORDS), 'rules').meta({
    description:
      'Hosts that may be reached: a name, `*.example.com` for all names below it, with a port other than 443, with `http://` for port 80, or with methods and a path.',
    examples: [['example.com', '*.example.com', 'example.com:8443', 'GET,HEAD api.example.com/v1/*']],
    needsTrust: true,
  }),
  deny: list(words(RULE_WORDS), 'rules').meta({
    description: 'Hosts that may not be reached. It wins over every `allow` in any file.',
    examples: [['gist.github.com']],
  }),
  addresses: list(words(WORDS.block), 'blocks of addresses').meta({
    description: 'Private, loopback and other special addresses that allowed names may resolve to. Default: none.',
    examples: [['10.1.0.0/16']],
    needsTrust: true,
  }),
  tcp: list(words(WORDS.grant), 'grants such as db=localhost:5432').meta({
    description:
      'Single TCP services: a name inside, and the host and port it leads to. The port inside is the same unless you give one.',
    examples: [['db=localhost:5432', 'cache:6380=10.0.0.5:6379']],
    needsTrust: true,
  }),
  publish: list(
    z.union([count(1, 65_535), words(WORDS.port)], { error: WORDS.port }),
    'ports such as 3000 or "8080:3000"',
  ).meta({
    description:
      'Ports of the sandbox to publish on your loopback, as port or outside:inside. If a port is in use, ags picks another and prints it.',
    examples: [[3000, '8080:3000']],
    needsTrust: true,
  }),
  upstream: list(
    section({
      proxy: words(WORDS.proxy).meta({ description: 'The proxy, as http:// or socks5:// with host and port.' }),
      auth: source.meta({ description: 'Where "user:password" is stored: one of these.' }).optional(),
      hosts: list(words('a host or *.suffix'), 'hosts')
        .meta({ description: 'Use it only for these hosts. Default: all.', examples: [['*.corp']] })
        .optional(),
      resolve: z.enum(['here', 'there'], { error: 'here or there' }).optional().meta({
        description:
          'Where names are resolved: here (ags checks the address), or there, by the proxy, for names that only it knows.',
      }),
    }),
    'entries such as - proxy: socks5://proxy.corp:1080',
  ).meta({
    description: 'Proxies for outgoing connections. ags uses the first one that matches the host.',
    examples: [[{ proxy: 'socks5://proxy.corp:1080', hosts: ['*.corp'], resolve: 'there' }]],
    needsTrust: true,
  }),
  dns: list(words(WORDS.server), 'addresses of name servers').meta({
    description: 'Name servers to use in place of those of this machine. A sandbox itself never queries one.',
    examples: [['127.0.0.1:53']],
    needsTrust: true,
  }),
  askSeconds: count(1, 3600).meta({
    description: 'With mode record: how long a connection waits for your answer.',
    examples: [60],
  }),
  limits: section({
    connections: count(1, 65_535).meta({ description: 'Open connections at the same time.', examples: [512] }),
    perSecond: count(1, 100_000).meta({ description: 'New connections per second, on average.', examples: [200] }),
    bytesOut: bytes(SIZE_OR_NONE, WORDS.sizeOrNone).meta({ description: 'Total bytes sent.', examples: ['10g'] }),
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
    name: text(SECRET_NAME, WORDS.secretName).meta({ description: 'Its name in messages.' }),
    host: words('the host that it is for').meta({
      description: 'The one host that receives it, with a port if it is not 443. A rule must allow the host as well.',
    }),
    header: text(HEADER, WORDS.header)
      .optional()
      .meta({ description: 'The one header that carries it, for example `authorization`.' }),
    send: text(SEND, WORDS.send).optional().meta({
      description:
        'Set the header to this on every request, with {} for the value. Default: only replace the placeholder.',
    }),
    env: text(ENV_NAME, WORDS.envName).optional().meta({
      description: 'The variable inside that holds its placeholder.',
    }),
    endpoint: text(ENV_NAME, WORDS.envName).optional().meta({
      description: 'The variable inside that holds the URL of a loopback endpoint for the host.',
    }),
    from: source.meta({ description: 'Where the value is stored on this machine: one of these.' }),
  }),
  'secrets, each with name, host and from',
).meta({
  description:
    'Tokens that programs inside use without seeing them. Programs have a placeholder; the gateway replaces it with the value, for one host and in one header.',
  examples: [[{ name: 'github', host: 'api.github.com', env: 'GITHUB_TOKEN', from: { env: 'GITHUB_TOKEN' } }]],
  needsTrust: true,
});

export const ConfigFile = section({
  user: count(1, 65_533).meta({
    description:
      'The user ID inside when root runs ags. If an account of this machine has the default, the first free one from 61001. Other users keep their own ID. Never 0.',
    examples: [1001],
    needsTrust: true,
  }),
  backend: z.enum(BACKENDS, { error: WORDS.backend }).meta({
    description:
      'How sandboxes are built: native (bubblewrap), docker or podman (containers), or auto (the first of these that works here).',
    examples: ['docker'],
    needsTrust: true,
  }),
  image: text(IMAGE, WORDS.image).meta({
    description:
      'With a container backend: the image that provides the programs, in place of this machine. `devcontainer`: the image of .devcontainer/devcontainer.json. `none`: no image. See `ags image --help`.',
    examples: ['debian:12'],
    needsTrust: true,
  }),
  dockerfile: text(BELOW, WORDS.dockerfile).meta({
    description:
      'A Dockerfile of the project from which `ags image build` builds the image. It takes precedence over `image`.',
    examples: ['.ags/Dockerfile'],
    needsTrust: true,
  }),
  runtime: text(RUNTIME, WORDS.runtime).meta({
    description: 'Another container runtime of the engine, for example runsc (gVisor).',
    examples: ['runsc'],
    needsTrust: true,
  }),
  docker,
  compose,
  workspace: z.enum(WORKSPACES, { error: WORDS.workspace }).meta({
    description:
      "How a sandbox gets its own copy of the project's files: overlay (copy-on-write, ready at once), copy (a full copy, slower and larger), or auto (overlay where the kernel allows it, otherwise copy).",
    examples: ['auto'],
  }),
  home,
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
      description: 'Further directories or files of your home to show inside, relative to it.',
      examples: [['.local/share/my-tool']],
      needsTrust: true,
    }),
    remove: list(
      text(BELOW, 'a path relative to your home, such as .cargo/registry'),
      'paths relative to your home',
    ).meta({
      description: 'Entries to leave out, with everything below them. It wins over every `add`.',
      examples: [['.cargo/registry']],
    }),
  })
    .partial()
    .meta({
      description:
        'Tool directories of your home that are visible inside, read-only. The rest of your home does not exist inside.',
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
    description: 'Further names below /etc to show, read-only. `*` matches any part of a name.',
    examples: [['odbc.ini']],
    needsTrust: true,
  }),
  env: section({
    pass: list(text(ENV_PASS, WORDS.envPass), 'names of variables').meta({
      description:
        'Variables of your environment to pass on: names, or prefixes that end in `_*`. All others are invisible inside.',
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
    .meta({ description: 'The environment inside. It starts with only terminal, language and tool locations.' }),
  hide: list(pattern, 'patterns').meta({
    description:
      'Files of the project that must not exist inside, in addition to the built-in patterns for keys, `.env` files and similar.',
    examples: [['*.sqlite', 'customer-data/']],
  }),
  reveal: list(pattern, 'patterns').meta({
    description: 'Hidden files of the project to show inside anyway.',
    examples: [['.env.test', 'certs/dev.pem']],
    needsTrust: true,
  }),
  limits: section({
    processes: count(16, 4_194_304).meta({ description: 'Processes and threads at the same time.', examples: [2048] }),
    memory: bytes(SHARE, WORDS.share).meta({
      description: "Memory of all processes together: a size, or a share of this machine's memory.",
      examples: ['4g'],
    }),
    openFiles: count(64, 1_048_576).meta({ description: 'Open files of one process.', examples: [65_536] }),
    fileSize: bytes(SIZE, WORDS.size).meta({ description: 'Size of each written file.', examples: ['20g'] }),
    disk: bytes(SIZE, WORDS.size).meta({
      description: 'Everything a sandbox writes, in the project and in its home.',
      examples: ['20g'],
    }),
    tmp: bytes(SIZE, WORDS.size).meta({ description: 'Size of /tmp, which lives in memory.', examples: ['1g'] }),
    cpu: text(DURATION, WORDS.duration).meta({ description: 'CPU time of each process.', examples: ['30m'] }),
    time: text(DURATION, WORDS.duration).meta({
      description: 'Time from start to end; the sandbox is stopped when it is over.',
      examples: ['2h'],
    }),
    cpus: z
      .union([text(CPUS, WORDS.cpus), z.number().min(0.1).max(9999)], { error: WORDS.cpus })
      .meta({ description: 'Number of processors that all processes together may use.', examples: ['1.5'] }),
  })
    .partial()
    .meta({
      description: 'What a sandbox may use. Sizes end in k, m, g or t (powers of 1024), times in s, m, h or d.',
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
    .meta({ description: 'Kernel features that programs may use.' }),
  network,
  secrets,
  hooks,
  gateway: section({
    listen: list(text(LISTEN, WORDS.listen), 'places to listen at').meta({
      description: 'Addresses for clients: `127.0.0.1:3128`, `[::1]:3128`, or `unix:/run/ags/gateway.sock`.',
      examples: [['127.0.0.1:3128']],
    }),
    admin: text(LISTEN, WORDS.listen).meta({
      description: 'The address of `/healthz` and `/metrics`.',
      examples: ['127.0.0.1:9180'],
    }),
    log: text(PLACE, WORDS.place).meta({
      description: 'The file of the decision log.',
      examples: ['/var/log/ags/network.jsonl'],
    }),
    tokenFile: text(PLACE, WORDS.place).meta({
      description: 'A file with the proxy password that clients must send. Required if other machines can connect.',
      examples: ['/run/secrets/gateway-token'],
    }),
  })
    .partial()
    .meta({ description: 'Only for `ags gateway`, a gateway that runs as its own program.' }),
  setup: section({
    run: list(words('a command'), 'commands').meta({
      description:
        'Commands for `sh -c`, run one after the other in a sandbox over the base commit, with the network rules of the project and without its secrets. Agents start with the files they add (never files that git tracks).',
      examples: [['npm ci']],
    }),
    inputs: list(pattern, 'patterns').meta({
      description:
        'Files of the base commit that the result depends on: the commands run again when one of them changes. Default: the lockfiles and manifests of common package managers.',
      examples: [['package-lock.json', 'tools/versions.txt']],
    }),
    timeout: text(DURATION, WORDS.duration).meta({
      description: 'Time limit of all commands together.',
      examples: ['30m'],
    }),
  })
    .partial()
    .meta({
      description:
        'Prepares the workspaces of agents: its result is made once and shared, read-only, by all later tasks. A list is short for `run`: `setup: [npm ci]`.',
    }),
  tasks: section({
    agent: words('the name of an agent').meta({
      description: 'The default agent of `ags start`.',
      examples: ['claude'],
    }),
    model: words('the name of a model').meta({ description: 'The model of the agent.', examples: ['opus'] }),
    parallel: count(1, 64).meta({
      description: 'Number of agents that run at once; further tasks wait.',
      examples: [4],
      needsTrust: 'above your own',
    }),
    time: text(DURATION, WORDS.duration).meta({
      description: 'Time limit of each turn of an agent.',
      examples: ['2h'],
    }),
    cost: z
      .number({ error: 'an amount in dollars' })
      .positive({ error: 'an amount in dollars' })
      .meta({
        description: 'Cost limit of a task in dollars, by the price of its model (see `prices`).',
        examples: [5],
        needsTrust: 'above your own',
      }),
    budget: text(BUDGET, WORDS.budget).meta({
      description:
        'Cost limit of all your tasks together, in dollars for a calendar day or month. In a project: of its tasks together, beside your own budget. Tasks wait for the next day or month ([budgets.md](../start/budgets.md#a-budget-for-all-tasks)).',
      examples: ['20/day'],
    }),
    tokens: count(1, 1_000_000_000_000).meta({
      description: 'Limit of a task in tokens, input and output together.',
      examples: [5_000_000],
      needsTrust: 'above your own',
    }),
    turns: count(1, 100_000).meta({
      description: 'How often the model of an agent may answer in a turn of a task.',
      examples: [200],
    }),
  })
    .partial()
    .meta({ description: 'For agents that work on goals (`ags start`).' }),
  agents,
  prices: z
    .record(text(MODEL, WORDS.model), text(PRICE, WORDS.price), { error: 'names of models, each with its price' })
    .meta({
      description:
        'Prices of models in dollars for a million tokens, input/output or input/output/cached input. They win over the list prices that ags knows, and limits of cost use them.',
      examples: [{ 'my-model': '0.50/1.50' }],
      needsTrust: true,
    }),
  services,
  checks,
  merge: section({
    check: flag.meta({
      description: 'Refuse every merge unless the checks have passed for exactly its result.',
      examples: [true],
    }),
  })
    .partial()
    .meta({ description: 'How changes of agents get onto your branches.' }),
  review: section({
    risky: list(pattern, 'patterns').meta({
      description:
        'Further files that can run on your machine once you accept them. A review accepts them only if you name them.',
      examples: [['scripts/', 'deploy/*.sh']],
    }),
  })
    .partial()
    .meta({ description: 'How changes are reviewed.' }),
})
  .partial()
  .meta({ title: 'ags.yaml', description: 'Configuration of ags, for a project (ags.yaml) or a user (config.yaml).' });
export type ConfigFile = z.infer<typeof ConfigFile>;
