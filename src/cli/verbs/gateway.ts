// cli/verbs/gateway.ts: `ags gateway <what>`: the gateway as a program of its own. Each word has a file of its own.
import { AgsError } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

type Run = (args: Arguments, ctx: Context) => Promise<number>;

const WORDS: Readonly<Record<string, { options: readonly string[]; load(): Promise<Run> }>> = {
  serve: {
    options: ['config', 'rules', 'socket', 'log'],
    load: async () => (await import('../gateway/serve.ts')).serve,
  },
  door: { options: ['socket', 'listen'], load: async () => (await import('../gateway/listener.ts')).openDoor },
  engine: { options: ['listen'], load: async () => (await import('../gateway/engine.ts')).serveEngine },
  check: { options: ['socket', 'listen'], load: async () => (await import('../gateway/check.ts')).check },
};

const verb: Verb = {
  summary: 'run the gateway on its own, for containers and clusters',
  usage: 'gateway {serve|door|engine|check} [options]',
  about:
    'The same gateway that every sandbox has: an HTTP, CONNECT and SOCKS5 proxy that lets through what rules allow and writes every decision down. serve: rules come from a list with a host on each line (--rules; "!" denies), from a file with the keys of ags.yaml (--config), or both; without either nothing is allowed. A file that changes takes effect at once, or not at all if it is wrong; open connections stay. --config can also say where to listen, beside --socket:\n\n  gateway:\n    listen: ["127.0.0.1:3128", "unix:/run/ags/gateway.sock"]\n    admin: 127.0.0.1:9180       # /healthz and /metrics\n    log: /var/log/ags/network.jsonl\n    tokenFile: /run/secrets/gateway-token\n\ndoor: where there is no network but loopback, take connections there to the socket of a gateway. engine: in a container of a dev container (ags devcontainer init --docker), an engine of its own whose only way out is the door. check: are they well?',
  examples: [
    'ags gateway serve --socket /run/ags/gateway.sock --rules allow-list.txt',
    'ags gateway serve --config gateway.yaml',
    'ags gateway door --socket /run/ags/gateway.sock --listen 127.0.0.1:3128',
    'ags gateway check --socket /run/ags/gateway.sock',
    'curl -x http://127.0.0.1:3128 https://github.com',
  ],
  options: {
    config: { type: 'string', value: 'file', about: 'serve: where to listen and what to allow' },
    rules: { type: 'string', value: 'file', multiple: true, about: 'serve: a list of hosts, one on each line' },
    socket: { type: 'string', value: 'path', about: 'the Unix socket of the gateway; its owner alone may connect' },
    log: { type: 'string', value: 'file', about: 'serve: the file of the decision log' },
    listen: {
      type: 'string',
      value: 'address:port',
      about: 'door, engine, check: on loopback; 127.0.0.1:3128, and 127.0.0.1:2375 for the engine',
    },
  },
  async run({ values, positionals }, ctx) {
    const [first, ...more] = positionals;
    const word = first ?? (values['config'] === undefined ? undefined : 'serve');
    const entry = word !== undefined && Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (word === undefined || entry === undefined || more.length > 0)
      throw new AgsError(
        'usage.invalid',
        word === undefined || more.length > 0
          ? 'ags gateway takes one word: serve, door, engine or check.'
          : `ags gateway has no "${visible(word)}".`,
        { hint: 'For example: ags gateway serve --socket /run/ags/gateway.sock --rules allow-list.txt' },
      );
    const strange = Object.keys(values).find((name) => !entry.options.includes(name));
    if (strange !== undefined)
      throw new AgsError('usage.invalid', `ags gateway ${word} does not take --${strange}.`, {
        hint: 'See: ags gateway --help',
      });
    return (await entry.load())({ values, positionals: more }, ctx);
  },
};
export default verb;
