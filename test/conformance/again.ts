// test/conformance/again.ts: runs a test file again in its own process: as another user, or as a runner that is killed.
import { spawn, type ChildProcess } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CALLERS, IS_ROOT } from '../harness.ts';

/** Set in the environment of the second run. */
export const AGAIN = 'AGS_TESTS_AGAIN';

/** Tests that bypass the command line run as the current user. If that is root and both callers are tested, they run again as an ordinary user. */
export const ALSO_AS_USER = process.env[AGAIN] === undefined && IS_ROOT && CALLERS.includes('root');

const TEST = fileURLToPath(new URL('..', import.meta.url));

// Without the project's vitest.config.ts: an ordinary user may neither list the checkout nor write its caches.
const DRIVER = `
const [vitest, root, file, report] = process.argv.slice(1);
const { startVitest } = await import(vitest);
const reporters = report === '' ? ['default'] : [['json', { outputFile: report }]];
const run = await startVitest('test', [file], { config: false, root, include: ['**/*.test.ts'], watch: false, testTimeout: 180_000, expect: { poll: { timeout: 20_000 } }, hookTimeout: 120_000, maxWorkers: 1, cache: false, reporters });
await run?.close();
`;

export interface Again {
  readonly file: string;
  /** Null: the current user. */
  readonly uid: number | null;
  readonly env?: Readonly<Record<string, string>>;
  /** The name of a supplementary group. */
  readonly group?: string;
  readonly deadlineMs?: number;
}

export function startAgain(again: Again, report = ''): ChildProcess {
  const become =
    again.uid === null ? [] : ['setpriv', `--reuid=${again.uid}`, `--regid=${again.uid}`, ...groups(again.group), '--'];
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'dist/node.js');
  const [program = '', ...args] = [
    ...become,
    process.execPath,
    '--input-type=module',
    '-e',
    DRIVER,
    '--',
    vitest,
    TEST,
    again.file,
    report,
  ];
  return spawn(program, args, {
    cwd: '/',
    env: {
      PATH: process.env['PATH'],
      HOME: '/tmp',
      ...(again.uid === null ? ownPlaces() : {}),
      [AGAIN]: '1',
      ...again.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Podman keeps its containers and images below these directories. */
function ownPlaces(): Record<string, string | undefined> {
  const { HOME, XDG_RUNTIME_DIR } = process.env;
  return { HOME, XDG_RUNTIME_DIR };
}

function groups(name: string | undefined): string[] {
  return name === undefined ? ['--clear-groups'] : [`--groups=${name}`];
}

/** Shorter than the timeout of the tests that call runAgain(). */
const DEADLINE_MS = 300_000;

export interface Results {
  readonly passed: readonly string[];
  /** Each name with its failure messages. */
  readonly failed: readonly string[];
  readonly other: readonly string[];
}

/** Runs every test of the file as that user. Throws if no test ran. */
export async function runAgain(again: Again & { readonly uid: number }): Promise<Results> {
  const dir = mkdtempSync('/tmp/ags-again-');
  chownSync(dir, again.uid, again.uid);
  try {
    const child = startAgain(again, join(dir, 'report.json'));
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const deadline = setTimeout(() => child.kill('SIGKILL'), again.deadlineMs ?? DEADLINE_MS);
    await new Promise<void>((resolve) =>
      child.on('close', (code, signal) => {
        said += ` (${signal ?? `exit ${code}`})`;
        resolve();
      }),
    );
    clearTimeout(deadline);
    return readReport(join(dir, 'report.json'), said);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Report {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

function readReport(path: string, said: string): Results {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch (cause) {
    throw new Error(`The tests could not be run again: ${said}`, { cause });
  }
  const all = report.testResults.flatMap((file) => file.assertionResults);
  if (all.length === 0)
    throw new Error(`No test was run: ${said} ${report.testResults.map((file) => file.message).join(' ')}`);
  const named = (status: (one: string) => boolean): typeof all => all.filter((one) => status(one.status));
  return {
    passed: named((status) => status === 'passed').map((one) => one.fullName),
    failed: named((status) => status === 'failed').map((one) => `${one.fullName}: ${one.failureMessages.join(' ')}`),
    other: named((status) => status !== 'passed' && status !== 'failed').map((one) => one.fullName),
  };
}
