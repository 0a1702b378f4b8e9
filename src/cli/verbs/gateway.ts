// cli/verbs/gateway.ts: `ags gateway <command>`: the gateway as a separate program. Each command has its own file.
import { AgsError } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

type Run = (args: Arguments, ctx: Context) => Promise<number>;

const LISTENER = {
  options: ['socket', 'listen'],
  load: async () => (await import('../gateway/listener.ts')).openListener,
};

const COMMANDS: Readonly<Record<string, { options: readonly string[]; load(): Promise<Run> }>> = {
  serve: {
    options: ['config', 'rules', 'socket', 'log'],
    load: async () => (await import('../gateway/serve.ts')).serve,
  },
  listener: LISTENER,
  // The earlier name; generated dev container files use it.
  door: LISTENER,
  engine: { options: ['listen'], load: async () => (await import('../gateway/engine.ts')).serveEngine },
  check: { options: ['socket', 'listen'], load: async () => (await import('../gateway/check.ts')).check },
};

const verb: Verb = {
  summary: 'run the gateway by itself, for containers and clusters',
  usage: 'gateway {serve|listener|engine|check} [options]',
  takes: 1,
  about:
    'The gateway that every sandbox has, as a program: an HTTP, CONNECT and SOCKS5 proxy that lets through connections that rules allow and logs every decision. serve: runs it. Rules come from a list with one host per line (--rules; "!" denies), from a file with the keys of ags.yaml (--config), or both; without rules, nothing is allowed. A changed file takes effect at once, or not at all if it is invalid; open connections stay. --config can also set addresses, in addition to --socket:\n\n  gateway:\n    listen: ["127.0.0.1:3128", "unix:/run/ags/gateway.sock"]\n    admin: 127.0.0.1:9180       # /healthz and /metrics\n    log: /var/log/ags/network.jsonl\n    tokenFile: /run/secrets/gateway-token\n\nlistener: in a network that has only loopback, forwards connections to the socket of a gateway. engine: the private Docker daemon of a dev container (ags devcontainer init --docker); its only way out is the listener. check: tests whether they answer.',
  examples: [
    'ags gateway serve --socket /run/ags/gateway.sock --rules allow-list.txt',
    'ags gateway serve --config gateway.yaml',
    'ags gateway listener --socket /run/ags/gateway.sock --listen 127.0.0.1:3128',
    'ags gateway check --socket /run/ags/gateway.sock',
    'curl -x http://127.0.0.1:3128 https://github.com',
  ],
  options: {
    config: { type: 'string', value: 'file', about: 'serve: a file with addresses and rules' },
    rules: { type: 'string', value: 'file', multiple: true, about: 'serve: a list of hosts, one per line' },
    socket: { type: 'string', value: 'path', about: 'the Unix socket of the gateway; only its owner can connect' },
    log: { type: 'string', value: 'file', about: 'serve: the file of the decision log' },
    listen: {
      type: 'string',
      value: 'address:port',
      about: 'listener, engine, check: a loopback address; default 127.0.0.1:3128, for engine 127.0.0.1:2375',
    },
  },
  async run({ values, positionals }, ctx) {
    const [first] = positionals;
    const word = first ?? (values['config'] === undefined ? undefined : 'serve');
    const entry = word !== undefined && Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
    if (word === undefined || entry === undefined)
      throw new AgsError(
        'usage.invalid',
        word === undefined
          ? 'ags gateway takes one word: serve, listener, engine or check.'
          : `ags gateway has no "${visible(word)}".`,
        { hint: 'For example: ags gateway serve --socket /run/ags/gateway.sock --rules allow-list.txt' },
      );
    const unknown = Object.keys(values).find((name) => !entry.options.includes(name));
    if (unknown !== undefined)
      throw new AgsError('usage.invalid', `ags gateway ${word} does not take --${unknown}.`, {
        hint: 'See: ags gateway --help',
      });
    return (await entry.load())({ values, positionals: [] }, ctx);
  },
};
export default verb;
