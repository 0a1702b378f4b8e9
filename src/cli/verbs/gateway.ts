// cli/verbs/gateway.ts: `ags gateway --config <file>`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'run the gateway on its own, for containers and clusters',
  usage: 'gateway --config <file>',
  about:
    'The same gateway that every sandbox has: an HTTP, CONNECT and SOCKS5 proxy that lets through what the rules of the file allow\nand writes every decision down. The file has the keys of ags.yaml and a section of its own:\n\n  gateway:\n    listen: ["127.0.0.1:3128", "unix:/run/ags/gateway.sock"]\n    admin: 127.0.0.1:9180       # /healthz and /metrics\n    log: /var/log/ags/network.jsonl\n    tokenFile: /run/secrets/gateway-token\n  network:\n    defaults: false\n    allow: [github.com, "*.example.com"]\n\nSIGHUP reads the rules again: open connections stay, a file that is wrong changes nothing.',
  examples: ['ags gateway --config gateway.yaml', 'curl -x http://127.0.0.1:3128 https://github.com'],
  options: { config: { type: 'string', value: 'file', about: 'where to listen and what to allow' } },
  async run(args, ctx) {
    const path = args.values['config'];
    if (typeof path !== 'string')
      throw new AgsError('usage.invalid', 'Which file says where to listen and what to allow?', {
        hint: 'For example: ags gateway --config gateway.yaml',
      });
    const say = (text: string): void => void ctx.stderr.write(`ags: ${text}\n`);
    const { serveGateway } = await import('../../tasks/serve-gateway.ts');
    const served = await serveGateway(ctx.world, path, say);
    process.on('SIGHUP', () => {
      try {
        served.reload();
        say('The rules were read again.');
      } catch (error) {
        if (!(error instanceof AgsError)) throw error;
        say(`${error.message} The rules stay as they were.`);
      }
    });
    ctx.stdout.write('ready\n');
    say(`The gateway listens at ${served.places.join(', ')}.`);
    await new Promise<void>((resolve) => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve());
    });
    await served.close();
    return EXIT.done;
  },
};
export default verb;
