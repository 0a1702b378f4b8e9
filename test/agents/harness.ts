// test/agents/harness.ts: turns of the real program of an agent against the scripted model. Instead of ags's sandbox, a minimal one
// provides what the plan needs: read-only files, a home, a project, hooks, and an endpoint that inserts the key as the gateway does.
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as forward, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, AgentDriver, AgentInput, AgentIo, HookListener, SignIn } from '../../src/agents/agent.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import type { GateRequest, GateVerdict } from '../../src/protocol/hook.ts';
import type { Model } from '../model/server.ts';
import { programIn, programOf } from './programs.ts';

export interface TurnOptions {
  readonly prompt?: string;
  readonly key?: string;
  readonly session?: string | null;
  readonly model?: string;
  /** `gone`: the hook program does not exist. `mute`: it gets no answer. Undefined: no hooks. */
  readonly hooks?: 'asked' | 'gone' | 'mute';
  /** A kind means the first sign-in of that kind. */
  readonly signIn?: SignIn['kind'] | SignIn;
  readonly mode?: AgentInput['mode'];
  readonly settings?: AgentInput['settings'];
  readonly onEvent?: (event: AgentEvent, driver: AgentDriver) => void;
}

export interface TurnResult {
  readonly events: AgentEvent[];
  /** The lines of stdout. */
  readonly lines: string[];
  readonly code: number;
  readonly session: string | null;
}

export interface Stage extends AsyncDisposable {
  readonly project: string;
  /** The hook requests. */
  readonly asked: GateRequest[];
  write(path: string, content: string): void;
  read(path: string): string;
  has(path: string): boolean;
  /** Waits until the file exists. */
  until(path: string): Promise<void>;
  turn(options?: TurnOptions): Promise<TurnResult>;
  /** The command of a turn without running it: for a terminal, or to change it first. */
  prepare(options: TurnOptions): Prepared;
  run(prepared: Prepared): Promise<TurnResult>;
}

export interface Prepared {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly prompt: string;
}

export const KEY = 'the-real-key';

/** The last event of a turn that ended. */
export function finishOf({ events }: TurnResult): AgentEvent | undefined {
  return events.find(({ type }) => type === 'agent.finished');
}

/** Events with call IDs that are the same in every run. */
export function plain(events: readonly AgentEvent[]): unknown[] {
  const ids = new Map<string, string>();
  return events.map((event) => {
    if (!('id' in event)) return event;
    if (!ids.has(event.id)) ids.set(event.id, `call ${ids.size + 1}`);
    return { ...event, id: ids.get(event.id) };
  });
}

/** `judge` answers the hooks; where it returns undefined, calls that contain "forbidden" are refused. */
export async function createStage(
  agent: Agent,
  model: Model,
  judge: (request: GateRequest) => GateVerdict | undefined = () => undefined,
): Promise<Stage> {
  const program = programOf(agent);
  // Mounted explicitly: the checkout may be below /tmp, which is empty inside.
  const { directory } = programIn(agent);
  const root = mkdtempSync('/tmp/ags-agent-');
  const [home, project, files] = ['home', 'project', 'files'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [home, project, files]) mkdirSync(directory);
  execFileSync('git', ['init', '-q', project]);
  const asked: GateRequest[] = [];
  let key = KEY;
  let secret = agent.signIns[0]?.secret;
  const gate = (request: GateRequest): GateVerdict => {
    asked.push(request);
    return judge(request) ?? refuseForbidden(request);
  };

  const hooks = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const asks = agent.readHook?.(request.url?.split('/').at(-1) ?? '', JSON.parse(body)) ?? null;
      response.end(JSON.stringify(asks === null ? { allow: true } : gate(asks)));
    });
  });
  const endpoint = createServer((request, response) => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(request.headers))
      if (typeof value === 'string' && name !== 'host') headers[name] = value;
    if (secret?.send != null) headers[secret.header] = secret.send.replace('{}', key);
    const path = request.url?.replace(/^\/its-name/, '') ?? '/';
    const onward = forward(`${model.url}${path}`, { method: request.method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  const hookUrl = `${await listen(hooks)}/hook`;
  const endpointUrl = `${await listen(endpoint)}/its-name`;
  writeFileSync(join(root, 'hook.mjs'), HOOK_CLIENT);
  const listeners: Record<NonNullable<TurnOptions['hooks']>, HookListener> = {
    asked: { command: [process.execPath, join(root, 'hook.mjs'), hookUrl], url: hookUrl },
    mute: { command: ['sh', '-c', 'exit 2'], url: 'http://127.0.0.1:1/hook' },
    gone: { command: [join(root, 'no such program')], url: 'http://127.0.0.1:1/hook' },
  };

  const prepare = (options: TurnOptions): Prepared => {
    const wanted = options.signIn ?? 'api-key';
    const signIn = typeof wanted === 'string' ? (agent.signIns.find(({ kind }) => kind === wanted) ?? null) : wanted;
    key = options.key ?? KEY;
    secret = signIn?.secret;
    const prompt = options.prompt ?? 'Do what the scenario says.';
    const plan = agent.plan({
      program,
      mode: options.mode ?? 'headless',
      prompt,
      home,
      project,
      task: 'a-task',
      session: options.session ?? null,
      newSession: randomUUID(),
      model: options.model ?? null,
      signIn,
      endpoint: endpointUrl,
      ownEndpoint: signIn?.secret.own !== undefined,
      settings: options.settings ?? [],
      hooks: options.hooks === undefined ? null : listeners[options.hooks],
    });
    for (const { path, content } of plan.homeFiles) put(join(home, path), content);
    for (const [at, { content }] of plan.files.entries()) put(join(files, String(at)), content);
    const mounts = plan.files.flatMap(({ to }, at) => ['--ro-bind', join(files, String(at)), to]);
    return {
      argv: [
        'bwrap',
        ...BOX,
        '--ro-bind',
        directory,
        directory,
        '--bind',
        root,
        root,
        ...mounts,
        ...LOCK,
        '--chdir',
        project,
        '--',
        ...plan.argv,
      ],
      env: {
        HOME: home,
        PATH: process.env['PATH'] ?? '',
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        ...(secret?.env == null ? {} : { [secret.env]: 'a-placeholder' }),
        ...(secret?.endpoint == null ? {} : { [secret.endpoint]: endpointUrl }),
        ...plan.env,
      },
      prompt,
    };
  };

  return {
    project,
    asked,
    prepare,
    write: (path, content) => put(join(root, path), content),
    read: (path) => readFileSync(join(root, path), 'utf8'),
    has: (path) => existsSync(join(root, path)),
    async until(path) {
      while (!existsSync(join(root, path))) await sleep(20);
    },
    run: (prepared) => runTurn(agent, prepared, gate),
    turn: (options = {}) => runTurn(agent, prepare(options), gate, options.onEvent),
    async [Symbol.asyncDispose]() {
      for (const server of [hooks, endpoint]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function refuseForbidden({ when, actions }: GateRequest): GateVerdict {
  const forbidden = when === 'before' && JSON.stringify(actions).includes('forbidden');
  return forbidden ? { allow: false, reason: 'This is not wanted here.' } : { allow: true };
}

async function runTurn(
  agent: Agent,
  { argv, env, prompt }: Prepared,
  gate: (request: GateRequest) => GateVerdict,
  onEvent?: TurnOptions['onEvent'],
): Promise<TurnResult> {
  const [program = '', ...args] = argv;
  const events: AgentEvent[] = [];
  const seen: string[] = [];
  const child = spawn(program, args, { env, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  const io: AgentIo = {
    write: (text) => void child.stdin.write(text),
    end: () => void child.stdin.end(),
    emit(event) {
      events.push(event);
      onEvent?.(event, driver);
    },
    gate: (request) => Promise.resolve(gate(request)),
  };
  const driver = agent.drive(io);
  const streams = [
    createInterface({ input: child.stdout }).on('line', (text) => {
      seen.push(text);
      driver.line(text);
    }),
    createInterface({ input: child.stderr }).on('line', (text) => driver.errorLine(text)),
  ].map((reader) => new Promise((resolve) => reader.once('close', resolve)));
  driver.start(prompt);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => resolve(status ?? 128));
  });
  await Promise.all(streams);
  driver.exited(code);
  const session = events.flatMap((event) => (event.type === 'agent.started' ? [event.session] : []))[0] ?? null;
  return { events, lines: seen, code, session };
}

const ETC = 'passwd group hosts nsswitch.conf resolv.conf ssl alternatives ld.so.cache bash.bashrc';
const BOX = [
  ...'--unshare-user --unshare-pid --die-with-parent --uid 1001 --gid 1001 --ro-bind / /'.split(' '),
  ...'--dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /etc'.split(' '),
  ...ETC.split(' ')
    .map((name) => `/etc/${name}`)
    .filter((path) => existsSync(path))
    .flatMap((path) => ['--ro-bind', path, path]),
];
const LOCK = ['--remount-ro', '/etc', '--remount-ro', '/run'];

const HOOK_CLIENT = `let json = '';
for await (const chunk of process.stdin) json += chunk;
const [url, event] = process.argv.slice(2);
const answer = await (await fetch(url + '/' + event, { method: 'POST', body: json })).json();
if (!answer.allow) console.error(answer.reason);
process.exitCode = answer.allow ? 0 : 2;
`;

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function put(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
