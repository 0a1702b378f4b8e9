// cli/verbs/trust.ts: `ags trust`: shows what a project's ags.yaml and hook files ask for, and approves it.
// Invariant: the user approves exactly what was shown. Each file is read once, and the approval is for the hash of those bytes.
import { isUtf8 } from 'node:buffer';
import { readProject } from '../../config/load.ts';
import { hookFileAsk } from '../../config/hook-asks.ts';
import { approvalOf, approve, isTrusted, revoke, sha256, untrustedHooks } from '../../config/trust.ts';
import { findProjectHooks, type HookFile } from '../../hooks/find.ts';
import { visible } from '../../lib/sanitize.ts';
import { count } from '../../lib/units.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Context, Verb } from '../verb.ts';
import { configInput } from './config.ts';

const verb: Verb = {
  summary: "approve what this project's ags.yaml and hooks ask for",
  usage: 'trust [--yes | --revoke] [--json]',
  takes: 0,
  instead: 'Go into the project first, then: ags trust',
  about:
    'A project may always restrict its sandboxes further. Settings that let them see or use more take effect only after you approve them, for exactly this content of the file. The same is true for hooks in .ags/hooks, which run on this machine: ags shows the content of each that is new or has changed, and you approve exactly that.',
  examples: ['ags trust', 'ags trust --yes', 'ags trust --revoke'],
  options: {
    yes: { type: 'boolean', short: 'y', about: 'approve without asking' },
    revoke: { type: 'boolean', about: 'revoke the approval' },
    json: { type: 'boolean', about: 'print JSON; approves nothing without --yes' },
  },
  async run({ values }, ctx) {
    if (values['yes'] === true && values['revoke'] === true)
      throw new AgsError('usage.invalid', '--yes and --revoke exclude each other.');
    const input = await configInput(ctx);
    if (values['revoke'] === true) return takeBack(input, values['json'] === true, ctx);

    const { asks: wanted, bytes, hasProjectFile } = await readProject(input);
    const hooks = findProjectHooks(input.projectDir);
    const asks = [...wanted, ...hooks.map(hookFileAsk)];
    const request = { stateDir: input.stateDir, projectDir: input.projectDir, bytes, asks: wanted, hooks };
    const json = values['json'] === true;
    const fresh = untrustedHooks(request);
    const before = isTrusted(request) && fresh.length === 0;
    if (!json)
      ctx.stderr.write(
        before
          ? nothingToAsk(hasProjectFile, asks)
          : `${visible(input.projectDir)}${hooks.length === 0 ? '/ags.yaml' : ''} asks for:\n${lines(wanted)}${hooks.map((hook) => lines([hookFileAsk(hook)]) + (fresh.includes(hook) ? contentOf(hook) : '')).join('')}`,
      );
    const approved = before || values['yes'] === true || (!json && (await saysYes(ctx)));
    if (approved && !before) approve({ ...request, now: ctx.now() });
    if (json)
      ctx.stdout.write(
        `${JSON.stringify({ project: input.projectDir, sha256: hasProjectFile ? sha256(bytes) : null, asks, hooks: hooks.map(({ path, sha256: digest }) => ({ path, sha256: digest })), approved }, null, 2)}\n`,
      );
    else if (!before)
      ctx.stderr.write(approved ? 'Approved. If the content changes, ags asks again.\n' : 'Not approved.\n');
    return approved ? EXIT.done : EXIT.failed;
  },
};

export default verb;

function nothingToAsk(hasProjectFile: boolean, asks: readonly string[]): string {
  if (asks.length > 0) return `Already approved:\n${lines(asks)}`;
  if (!hasProjectFile) return 'This project has no ags.yaml: there is nothing to approve.\n';
  return 'The ags.yaml of this project asks for nothing: there is nothing to approve.\n';
}

function lines(asks: readonly string[]): string {
  return asks.map((ask) => `  ${visible(ask)}\n`).join('');
}

const MOST_LINES = 200;

/** What a hook does, for the user who approves it. */
function contentOf({ path, bytes }: HookFile): string {
  if (!isUtf8(bytes) || bytes.includes(0)) return `    | not text, ${count(bytes.length, 'byte')}\n`;
  const all = bytes.toString('utf8').replace(/\n$/, '').split('\n');
  const more = all.length - MOST_LINES;
  return [
    ...all.slice(0, MOST_LINES).map((line) => `    | ${visible(line.replaceAll('\t', '  '))}`.trimEnd()),
    ...(more > 0 ? [`    ${count(more, 'more line')}: less ${visible(path)}`] : []),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

async function saysYes(ctx: Context): Promise<boolean> {
  if (!ctx.stdin.isTTY)
    throw new AgsError('usage.no-terminal', 'ags cannot ask: there is no terminal.', {
      hint: 'To approve without a prompt: ags trust --yes',
    });
  const answer = await ctx.ask('Approve this for this project? [y/N] ');
  return /^y(es)?$/i.test(answer.trim());
}

function takeBack(input: { stateDir: string; projectDir: string }, json: boolean, ctx: Context): number {
  const had = approvalOf(input.stateDir, input.projectDir) !== undefined && revoke(input);
  if (json) ctx.stdout.write(`${JSON.stringify({ project: input.projectDir, revoked: had }, null, 2)}\n`);
  else ctx.stderr.write(had ? 'The approval was revoked.\n' : 'There was no approval to revoke.\n');
  return EXIT.done;
}
