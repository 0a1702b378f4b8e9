// cli/verbs/agents.ts: `ags agents`: lists, installs, updates and removes agents.
import { AGENTS } from '../../agents/agents.ts';
import type { Agent } from '../../agents/agent.ts';
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { readableSize } from '../../lib/units.ts';
import { visible } from '../../lib/sanitize.ts';
import { installAgent, removeAgent } from '../../agent-setup/install.ts';
import type { AgentProgram } from '../../agent-setup/agent-program.ts';
import { listAgents, type AgentFacts } from '../../agent-setup/about.ts';
import { readInstalled } from '../../agent-setup/installed-agents.ts';
import { agentNamed } from '../agent-name.ts';
import { createPaint } from '../terminal/colour.ts';
import { table } from '../terminal/format.ts';
import { signInWords } from '../terminal/sign-in-words.ts';
import { refuseSurplus } from '../parse.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'list the agents; install, update and remove them',
  usage: 'agents {list|install|remove|update} [name...] [options]',
  takes: 'any',
  about:
    'ags finds agents on your PATH. "install" fetches the version that ags was tested with from your npm registry, inside a sandbox that reaches nothing else; package scripts do not run. Sandboxes see installed agents read-only.',
  examples: [
    'ags agents',
    'ags agents install codex gemini',
    'ags agents install claude --version latest',
    'ags agents update',
    'ags agents remove codex',
  ],
  options: {
    version: { type: 'string', value: 'version', about: 'install: this version instead of the tested one' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run(args, ctx) {
    const [word = 'list', ...names] = args.positionals;
    if (args.values['version'] !== undefined && word !== 'install')
      throw new AgsError('usage.invalid', '--version is for "ags agents install".');
    switch (word) {
      case 'list':
        refuseSurplus('agents list', names, { ...verb, takes: 0 });
        return list(args, ctx);
      case 'install':
        return install(some(names, word), args, ctx);
      case 'remove':
        return remove(some(names, word), args, ctx);
      case 'update':
        return update(names.map(agentNamed), args, ctx);
      default:
        throw new AgsError('usage.invalid', `ags agents has no "${visible(word)}".`, {
          hint: AGENTS.some(({ name }) => name === word)
            ? `Did you mean: ags agents install ${word}`
            : 'See: ags agents --help',
        });
    }
  },
};
export default verb;

function some(names: readonly string[], word: string): Agent[] {
  if (names.length === 0)
    throw new AgsError('usage.invalid', 'Which agent?', {
      hint: `For example: ags agents ${word} ${AGENTS.find((agent) => agent.install !== null)?.name ?? '<name>'}`,
    });
  return names.map(agentNamed);
}

async function list({ values }: Arguments, ctx: Context): Promise<number> {
  const rows = await listAgents(ctx.host);
  if (values['json'] === true) {
    ctx.stdout.write(`${JSON.stringify({ agents: rows.map(document) }, null, 2)}\n`);
    return EXIT.done;
  }
  const paint = createPaint(ctx.colour);
  const head = ['NAME', 'AGENT', 'PROGRAM', 'SIGNED IN', 'HOOKS'].map((text) => ({
    text,
    paint: (word: string) => paint('bold', word),
  }));
  ctx.stdout.write(
    table([
      head,
      ...rows.map(({ agent, program, signIn }) => [
        agent.name,
        agent.title,
        programWords(program),
        signInWords(signIn),
        agent.gate,
      ]),
    ]),
  );
  const missing = rows.find(({ program }) => program === null);
  if (missing !== undefined) ctx.stderr.write(`To install one: ags agents install ${missing.agent.name}\n`);
  return EXIT.done;
}

function document({ agent, program, signIn }: AgentFacts): object {
  return {
    name: agent.name,
    title: agent.title,
    installed: program !== null,
    version: program?.version ?? null,
    source: program?.source ?? null,
    tried: agent.install?.version ?? null,
    signIn,
    hooks: agent.gate,
    resumes: agent.resumes,
  };
}

function programWords(program: AgentProgram | null): string {
  if (program === null) return 'not installed';
  switch (program.source) {
    case 'built-in':
      return 'part of ags';
    case 'installed':
      return `${program.version} (by ags)`;
    case 'image':
      return `${program.version} (in the image)`;
    case 'host':
      return `${program.version ?? 'unknown version'} (yours: ${program.path})`;
  }
}

async function install(agents: readonly Agent[], { values }: Arguments, ctx: Context): Promise<number> {
  const version = typeof values['version'] === 'string' ? values['version'] : null;
  const done: object[] = [];
  for (const agent of agents) {
    const began = ctx.now().getTime();
    using line = progressLine(ctx);
    const { bytes, already, ...installed } = await installAgent(ctx.host, agent, version, {
      onStart: (text) => line.say(`Installing ${text} ...`),
      onProgress: line.progress,
      notice: line.say,
    });
    line.clear();
    done.push({ name: agent.name, version: installed.version, bytes, already });
    if (values['json'] === true) continue;
    const seconds = Math.round((ctx.now().getTime() - began) / 1000);
    ctx.stdout.write(
      already
        ? `${agent.title} ${installed.version} is already installed.\n`
        : `Installed ${agent.title} ${installed.version} (${readableSize(bytes)}, ${seconds} s).\n`,
    );
  }
  if (values['json'] === true) ctx.stdout.write(`${JSON.stringify({ installed: done }, null, 2)}\n`);
  return EXIT.done;
}

/** The size so far, on a line that is rewritten; on a terminal only. */
function progressLine(ctx: Context): Disposable & {
  say(text: string): void;
  progress(bytes: number): void;
  clear(): void;
} {
  const clear = (): void => void (ctx.terminal.stderr && ctx.stderr.write('\r\x1b[K'));
  return {
    say(text) {
      clear();
      ctx.stderr.write(`${visible(text)}\n`);
    },
    progress: (bytes) => void (ctx.terminal.stderr && ctx.stderr.write(`\r\x1b[K  ${readableSize(bytes)}`)),
    clear,
    [Symbol.dispose]: clear,
  };
}

async function remove(agents: readonly Agent[], { values }: Arguments, ctx: Context): Promise<number> {
  const removed: string[] = [];
  for (const agent of agents) {
    const had = await removeAgent(ctx.host, agent);
    if (had) removed.push(agent.name);
    if (values['json'] !== true)
      ctx.stdout.write(had ? `Removed ${agent.title}.\n` : `${agent.title} was not installed by ags.\n`);
  }
  if (values['json'] === true) ctx.stdout.write(`${JSON.stringify({ removed }, null, 2)}\n`);
  return EXIT.done;
}

async function update(named: readonly Agent[], args: Arguments, ctx: Context): Promise<number> {
  const old = (named.length === 0 ? AGENTS : named).filter((agent) => {
    const installed = readInstalled(ctx.host, agent.name);
    return installed !== null && installed.version !== agent.install?.version;
  });
  if (old.length > 0) return install(old, { ...args, values: { json: args.values['json'] } }, ctx);
  if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify({ installed: [] }, null, 2)}\n`);
  else ctx.stdout.write('All installed agents are up to date.\n');
  return EXIT.done;
}
