// test/agents/real-turn.ts: one turn of the real program of an agent, from npm, against the scripted model. Not in our sandbox, but
// in the least that gives it its files: /etc and /run read-only with what the plan says, its own uid as the owner of everything,
// a home and a project.
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Agent, AgentInput, HookDoor, SignIn } from '../../src/agents/agent.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import type { GateRequest } from '../../src/protocol/hook.ts';

const CACHE = new URL('../../node_modules/.cache/agents/', import.meta.url).pathname;

/** Installed once, in the exact version, and found again by later runs of the tests. */
export function programOf({ install, name }: Agent): string[] {
  if (install === null) throw new Error(`${name} is not installed from npm`);
  const modules = installed(name, { [install.package]: install.version, ...install.more });
  const program = join(modules, install.entry[process.arch === 'arm64' ? 'arm64' : 'x64']);
  if (install.node === null) return [program];
  return [nodeOf(install.node), program];
}

function nodeOf(major: number): string {
  if (Number(process.versions.node.split('.')[0]) >= major) return process.execPath;
  return join(installed(`node-${major}`, { node: String(major) }), 'node/bin/node');
}

function installed(name: string, packages: Readonly<Record<string, string>>): string {
  const directory = join(CACHE, name);
  const wanted = JSON.stringify(packages);
  const mark = join(directory, 'installed.json');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return join(directory, 'node_modules');
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(join(CACHE, `.${name}-`));
  writeFileSync(join(fresh, 'package.json'), '{"private":true}');
  const specs = Object.entries(packages).map(([one, version]) => `${one}@${version}`);
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...specs], { cwd: fresh });
  writeFileSync(join(fresh, 'installed.json'), wanted);
  rmSync(directory, { recursive: true, force: true });
  renameSync(fresh, directory);
  return join(directory, 'node_modules');
}

export interface Place extends AsyncDisposable {
  readonly home: string;
  readonly project: string;
  /** What the hooks were asked, in our words. */
  readonly asked: GateRequest[];
  write(path: string, content: string): void;
  read(path: string): string;
  has(path: string): boolean;
  turn(options: TurnOptions): Promise<{ events: AgentEvent[]; code: number; session: string | null }>;
}

export interface TurnOptions {
  readonly prompt?: string;
  readonly endpoint: string;
  readonly key: string;
  readonly signIn?: SignIn;
  readonly session?: string | null;
  readonly model?: string;
  readonly maxTurns?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether hooks are set up at all; they refuse what speaks of "forbidden". `gone`: they are, and nobody answers. */
  readonly hooks?: 'asked' | 'gone';
}

export async function createPlace(agent: Agent): Promise<Place> {
  const root = mkdtempSync('/tmp/ags-agent-');
  const [home, project, files] = ['home', 'project', 'files'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [home, project, files]) mkdirSync(directory);
  execFileSync('git', ['init', '-q', project]);
  const asked: GateRequest[] = [];
  // As the hook door does it: what an adapter cannot read is not asked about, what speaks of "forbidden" is refused.
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const gate = agent.readHook?.(request.url?.split('/').at(-1) ?? '', JSON.parse(body)) ?? null;
      if (gate !== null) asked.push(gate);
      const allow = gate === null || gate.when !== 'before' || !JSON.stringify(gate.actions).includes('forbidden');
      response.writeHead(200).end(JSON.stringify(allow ? { allow } : { allow, reason: 'This is not wanted here.' }));
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  writeFileSync(join(root, 'hook.mjs'), HOOK);
  const doors: Record<NonNullable<TurnOptions['hooks']>, HookDoor> = {
    asked: { command: [process.execPath, join(root, 'hook.mjs'), url], url },
    gone: { command: [join(root, 'no such program')], url: 'http://127.0.0.1:1/hook' },
  };

  const write = (path: string, content: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  return {
    home,
    project,
    asked,
    write,
    read: (path) => readFileSync(join(root, path), 'utf8'),
    has: (path) => existsSync(join(root, path)),
    async turn(options) {
      const signIn = options.signIn ?? agent.signIns[0] ?? null;
      const prompt = options.prompt ?? 'Do what the scenario says.';
      const input: AgentInput = {
        program: programOf(agent),
        mode: 'headless',
        prompt,
        home,
        project,
        task: 'a-task',
        session: options.session ?? null,
        newSession: randomUUID(),
        model: options.model ?? null,
        maxTurns: options.maxTurns ?? null,
        maxCostMicros: null,
        signIn,
        endpoint: options.endpoint,
        hooks: options.hooks === undefined ? null : doors[options.hooks],
      };
      const plan = agent.plan(input);
      for (const { path, content } of plan.homeFiles) write(`home/${path}`, content);
      for (const [i, { content }] of plan.files.entries()) writeFileSync(join(files, String(i)), content);
      const env = {
        HOME: home,
        PATH: process.env['PATH'] ?? '',
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        ...(signIn?.secret.env == null ? {} : { [signIn.secret.env]: options.key }),
        ...(signIn?.secret.endpoint == null ? {} : { [signIn.secret.endpoint]: options.endpoint }),
        ...plan.env,
        ...options.env,
      };
      const mounts = plan.files.flatMap(({ to }, i) => ['--ro-bind', join(files, String(i)), to]);
      return await drive(
        agent,
        ['bwrap', ...BOX, '--bind', root, root, ...mounts, ...LOCK, '--chdir', project, '--', ...plan.argv],
        env,
        prompt,
      );
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

const BOX = [
  ...['--unshare-user', '--unshare-pid', '--die-with-parent', '--uid', '1001', '--gid', '1001'],
  ...[
    '--ro-bind',
    '/',
    '/',
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    '--tmpfs',
    '/tmp',
    '--tmpfs',
    '/run',
    '--tmpfs',
    '/etc',
  ],
  ...['passwd', 'group', 'hosts', 'nsswitch.conf', 'resolv.conf', 'ssl', 'alternatives', 'ld.so.cache', 'localtime']
    .map((name) => `/etc/${name}`)
    .filter((path) => existsSync(path))
    .flatMap((path) => ['--ro-bind', path, path]),
];
const LOCK = ['--remount-ro', '/etc', '--remount-ro', '/run'];

/** What the hook client does. */
const HOOK = `let json = '';
for await (const chunk of process.stdin) json += chunk;
const [url, event] = process.argv.slice(2);
const answer = await (await fetch(url + '/' + event, { method: 'POST', body: json })).json();
if (!answer.allow) console.error(answer.reason);
process.exitCode = answer.allow ? 0 : 2;
`;

async function drive(
  agent: Agent,
  argv: readonly string[],
  env: Record<string, string>,
  prompt: string,
): Promise<{ events: AgentEvent[]; code: number; session: string | null }> {
  const events: AgentEvent[] = [];
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { env, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  const driver = agent.drive({
    write: (text) => void child.stdin.write(text),
    end: () => void child.stdin.end(),
    emit: (event) => void events.push(event),
    gate: () => Promise.resolve({ allow: true }),
  });
  const raw = process.env['AGS_TEST_RAW'];
  const lines = [
    [child.stdout, (text: string) => driver.line(text)] as const,
    [child.stderr, (text: string) => driver.errorLine(text)] as const,
  ].map(([stream, take]) => {
    const reader = createInterface({ input: stream });
    reader.on('line', (text) => {
      if (raw !== undefined) writeFileSync(raw, `${text}\n`, { flag: 'a' });
      take(text);
    });
    return new Promise((resolve) => reader.once('close', resolve));
  });
  driver.start(prompt);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status, signal) => resolve(status ?? (signal === null ? 1 : 128)));
  });
  await Promise.all(lines);
  driver.exited(code);
  const started = events.find((event) => event.type === 'agent.started');
  return { events, code, session: started?.session ?? null };
}
