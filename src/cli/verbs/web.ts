// cli/verbs/web.ts: `ags web`.
import { spawn } from 'node:child_process';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { portOf, SERVE_OPTIONS, serveHere, stay } from '../serve-here.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'open the page in your browser; serve it if needed',
  usage: 'web [--port <number>]',
  takes: 0,
  about:
    'Finds the server on this port, or starts one, and opens the browser with a link that works once. Without a browser, it prints the link.',
  examples: ['ags web', 'ags web --port 8080', 'ags web --print'],
  options: { print: { type: 'boolean', about: 'print the link and open no browser' }, ...SERVE_OPTIONS },
  async run(args, ctx) {
    const port = portOf(args);
    const { findServer } = await import('../../server/sign-in/find-server.ts');
    const running = port === 0 || args.values['host'] !== undefined ? null : await findServer(ctx.host, port);
    if (running !== null) {
      show(running, args.values['print'] === true, ctx);
      return EXIT.done;
    }
    const served = await serveHere(args, ctx);
    show(served.signInUrl(), args.values['print'] === true, ctx);
    ctx.stderr.write('ags: Ctrl-C stops the server; agents keep running.\n');
    return stay(served);
  },
};
export default verb;

function show(url: string, print: boolean, ctx: Context): void {
  ctx.stdout.write(`${url}\n`);
  if (print) return;
  const opener = ctx.env['BROWSER']?.trim() || 'xdg-open';
  if (/\s/.test(opener))
    throw new AgsError(
      'usage.invalid',
      'BROWSER has more than one word. Open the link yourself, or set BROWSER to one program.',
    );
  // The browser belongs to the desktop and outlives ags.
  const child = spawn(opener, [url], { stdio: 'ignore', detached: true, env: { ...ctx.env } });
  child.on('error', () => ctx.stderr.write('ags: No browser was found; open the link yourself.\n'));
  child.unref();
}
