// cli/verbs/serve.ts: `ags serve`.
import { SERVE_OPTIONS, serveHere, stay } from '../serve-here.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'serve the page and the API to this machine',
  usage: 'serve [--port <number>]',
  takes: 0,
  about:
    'Serves a page to watch, review and merge tasks in a browser; the command line sees the same tasks. The first line is a link that signs in one browser, once. Only this machine can reach the server, and only with a sign-in.\nAgents keep running when the server stops. Scripts sign in with a key: ~/.local/state/ags/server/key',
  examples: ['ags serve', 'ags serve --port 8080', 'ags serve --host 192.168.1.5 --cert cert.pem --key key.pem'],
  options: SERVE_OPTIONS,
  async run(args, ctx) {
    const served = await serveHere(args, ctx);
    ctx.stdout.write(`${served.signInUrl()}\n`);
    ctx.stderr.write(
      'ags: Open this link; it works once. For a new link: ags web. Ctrl-C stops the server; agents keep running.\n',
    );
    return stay(served);
  },
};
export default verb;
