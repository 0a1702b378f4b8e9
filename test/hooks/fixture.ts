// test/hooks/fixture.ts: a home and a project with hooks, opened as for a run.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Agent } from '../../src/agents/agent.ts';
import { approve } from '../../src/config/trust.ts';
import { findProjectHooks } from '../../src/hooks/find.ts';
import type { GateRequest, HookDecided, HookPolicy } from '../../src/protocol/hook.ts';
import { openRunHooks, type RunHooks, type RunHooksInput } from '../../src/agent-run/run-hooks.ts';
import type { HostContext } from '../../src/run/host-context.ts';

export const COMMAND: GateRequest = {
  when: 'before',
  tool: 'Bash',
  actions: [{ kind: 'command', command: 'npm test' }],
  input: { command: 'npm test' },
};
export const WRITE: GateRequest = {
  when: 'before',
  tool: 'Write',
  actions: [{ kind: 'write', path: 'src/a.ts', change: 'write', content: 'one' }],
  input: { file_path: 'src/a.ts', content: 'one' },
};
export const WROTE: GateRequest = { ...WRITE, when: 'after' };
export const READ: GateRequest = {
  when: 'before',
  tool: 'Read',
  actions: [{ kind: 'read', path: 'a' }],
  input: { file_path: 'a' },
};
export const STOP: GateRequest = { when: 'stop', tool: '', actions: [], input: null };

export const NO_HOOKS: HookPolicy = { use: [], commands: [], timeoutSeconds: 10 };

/** An agent whose hooks pass requests through unchanged. */
export const AGENT: Pick<Agent, 'name' | 'gate' | 'readHook'> = {
  name: 'tried',
  gate: 'enforced',
  readHook: (event, json) => (event === 'ignored' ? null : (json as GateRequest)),
};

export interface HookPlace extends AsyncDisposable {
  readonly root: string;
  readonly project: string;
  readonly task: string;
  readonly context: HostContext;
  readonly events: HookDecided[];
  /** Writes a file in the project. */
  file(path: string, content: string, mode?: number): void;
  /** Writes a file in ~/.config/ags/hooks. */
  own(path: string, content: string, mode?: number): void;
  trust(): void;
  open(more?: Partial<RunHooksInput>): Promise<RunHooks>;
  /** Events without durations. */
  said(): Omit<HookDecided, 'ms' | 'type'>[];
}

export function createHookPlace(): HookPlace {
  const root = mkdtempSync('/tmp/ags-hooks-');
  const home = join(root, 'home');
  const project = join(home, 'project');
  const stateDir = join(home, '.local/state/ags');
  const task = 'some-task';
  const directory = join(stateDir, 'tasks', task);
  mkdirSync(project, { recursive: true });
  mkdirSync(directory, { recursive: true });
  const context = {
    home,
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', SECRET_OF_THE_USER: 'x' },
    uid: process.getuid?.() ?? 0,
    userName: 'dev',
    stateDir,
    configFile: join(home, '.config/ags/config.yaml'),
    now: () => new Date(0),
  } as unknown as HostContext;
  const events: HookDecided[] = [];
  const opened: RunHooks[] = [];
  const put = (at: string, content: string, mode: number): void => {
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, content);
    chmodSync(at, mode);
  };
  return {
    root,
    project,
    task: directory,
    context,
    events,
    file: (path, content, mode = 0o755) => put(join(project, path), content, mode),
    own: (path, content, mode = 0o755) => put(join(home, '.config/ags/hooks', path), content, mode),
    trust: () =>
      approve({
        stateDir,
        projectDir: project,
        bytes: Buffer.alloc(0),
        asks: [],
        hooks: findProjectHooks(project),
        now: new Date(0),
      }),
    async open(more = {}) {
      const hooks = await openRunHooks({
        perl: ['/usr/bin/perl'],
        context,
        project,
        config: { hooks: NO_HOOKS },
        task,
        run: 1,
        agent: AGENT,
        goal: 'make it work',
        interactive: false,
        emit: (event) => void (event.type === 'hook.decided' && events.push(event)),
        runInside: () => Promise.reject(new Error('there is no inside here')),
        ...more,
      });
      opened.push(hooks);
      return hooks;
    },
    said: () => events.map(({ ms: _ms, type: _type, ...rest }) => rest),
    async [Symbol.asyncDispose]() {
      for (const hooks of opened) await hooks.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Processes with this word in their command line. */
export function processesWith(word: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(word));
}
