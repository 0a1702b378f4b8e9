// protocol/config/words.ts: patterns and descriptions of single values. They are apart from the schema because flags are checked
// with them too, in commands that must not load zod: it takes longer to load than a sandbox takes to start.

export const WORDS = {
  size: 'a size such as 512m or 4g',
  share: 'a size such as 512m or 4g, or a share of the memory such as 50%',
  duration: 'a time such as 90s, 5m, 2h or 1d, or none',
  cpus: 'a number such as 2 or 1.5, or none',
  backend: 'auto, native, docker or podman',
  registry: 'a registry such as ghcr.io or registry.corp:5000, or docker.io=https://mirror.corp',
  home: 'task, project, or a directory: an absolute path, or one that begins with ~/',
  workspace: 'auto, overlay or copy',
  image: 'the name of an image such as debian:12, devcontainer, or none',
  dockerfile: 'a path in the project such as .ags/Dockerfile',
  runtime: 'the name of a runtime of the engine, such as runsc',
  place: 'an absolute path, or one that begins with ~/',
  envName: 'the name of a variable: letters, digits and _, not a digit first',
  envPass: 'the name of a variable, or a prefix that ends in _*',
  pattern: 'a pattern such as *.pem, without "!" in front',
  mode: 'on, off or record',
  sizeOrNone: 'a size such as 512m or 4g, or none',
  grant: 'name=host:port or name:port=host:port, such as db=localhost:5432',
  port: 'a port such as 3000, or outside:inside such as 8080:3000',
  block: 'a block of addresses such as 10.1.0.0/16',
  server: 'the address of a name server, such as 127.0.0.1:53',
  proxy: 'a proxy with its port, such as socks5://proxy.corp:1080 or http://proxy.corp:3128',
  listen: 'an address with its port such as 127.0.0.1:3128, or unix:/path',
  secretName: 'a name of letters, digits, - and _',
  header: 'the name of a header, such as authorization',
  check: 'a command, or the keys name and run',
  checks: 'a list of commands, or the keys run and timeout',
  hookRun: 'a program and its arguments as a list, or a text for sh -c',
  hookTime: 'a time from 1s to 10m',
  readyHook: 'log, protect-branches, no-secrets or format',
  composeName: 'a name of letters, digits, ., _ and -',
  serviceName: 'a name of lower-case letters, digits and -, a letter first, that is not localhost',
  serviceWord: 'a name of letters, digits and _, not a digit first',
  serviceRun: 'a text for sh -c, or a program and its arguments as a list',
  version: 'a version such as 15',
  modelUrl: 'the URL of a model endpoint, such as https://llm.example.com or http://localhost:11434',
  model: 'the name of a model, such as gpt-5.5',
  price: 'the price of a million tokens in dollars, input/output or input/output/cached input, such as 3/15/0.3',
  budget: 'an amount in dollars for a day or a month, such as 20/day',
  send: 'a text with {} where the value goes, such as "Bearer {}"',
} as const;

export const SIZE = /^\d+(\.\d+)?([kmgtKMGT](i?[bB])?)?$/;
export const SHARE = /^\d+(\.\d+)?(%|[kmgtKMGT](i?[bB])?)?$/;
export const SIZE_OR_NONE = /^(none|\d+(\.\d+)?([kmgtKMGT](i?[bB])?)?)$/;
export const DURATION = /^(none|(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$/;
export const CPUS = /^(none|\d{1,4}(\.\d{1,2})?)$/;
export const BACKENDS = ['auto', 'native', 'docker', 'podman'] as const;
export const WORKSPACES = ['auto', 'overlay', 'copy'] as const;
/** An image name as engines write it: never an option, a path or a command. */
export const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$/;
export const RUNTIME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** A host, optionally with a port, and optionally with the URL of its mirror. */
export const REGISTRY =
  /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?(?:=https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?)?$/;
export const PLACE = /^(~\/|\/)/;
export const HOME = /^(task|project|(~\/|\/).*)$/;
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
export const ENV_PASS = /^[A-Za-z_]([A-Za-z0-9_]*|[A-Za-z0-9_]*_\*)$|^_\*$/;
// A negated pattern would reveal a hidden file without `ags trust`; `reveal` is the key for that.
export const PATTERN = /^[^!]/;
/** A relative path that stays below its root: no name in it is empty, "." or "..". */
export const BELOW = /^(?!\.{0,2}(\/|$))[^/]+(\/(?!\.{0,2}(\/|$))[^/]+)*\/?$/;
export const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** The range is checked after all layers are merged. */
export const HOOK_TIME = /^(?=\d)(\d{1,3}m)?(\d{1,3}s)?$/;
/** A service or profile name, as compose allows it. */
export const COMPOSE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/;
/** A host name inside, hence a single label. */
export const SERVICE_NAME = /^(?!localhost$|sandbox$)[a-z][a-z0-9-]{0,30}$/;
export const SERVICE_WORD = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
export const MODEL = /^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,199}$/;
export const PRICE = /^\d{1,6}(?:\.\d{1,6})?(?:\/\d{1,6}(?:\.\d{1,6})?){1,2}$/;
export const BUDGET = /^\d{1,6}(?:\.\d{1,2})?\/(?:day|month)$/;
export const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
export const MODEL_URL = /^https?:\/\/\S+$/i;
export const SEND = /^[^{}]*\{\}[^{}]*$/;
/** An address (never a name) with a port, or the path of a Unix socket. */
export const LISTEN = /^(unix:\/.+|(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\]):\d{1,5})$/;
