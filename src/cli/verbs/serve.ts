// cli/verbs/serve.ts: `ags serve`.
import { SERVE_OPTIONS, serveHere, stay } from '../serve-here.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'serve the page and the API to this machine',
  usage: 'serve [--port <number>]',
  about:
    'Watch, review and merge in a browser; everything can be done on the command line as well, and both see the same tasks. The first line is a link that lets one browser in, once. Nobody else can come in; only this machine can reach it.\nStopping it stops no agent. For scripts there is a key: ~/.local/state/ags/server/key',
  examples: ['ags serve', 'ags serve --port 8080', 'ags serve --host 192.168.1.5 --cert cert.pem --key key.pem'],
  options: SERVE_OPTIONS,
  async run(args, ctx) {
    const served = await serveHere(args, ctx);
    ctx.stdout.write(`${served.entryUrl()}\n`);
    ctx.stderr.write('ags: Open this link; it works once. A new one: ags web. Ctrl-C ends this, and no agent.\n');
    return stay(served);
  },
};
export default verb;
