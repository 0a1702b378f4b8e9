// test/attacks/cut-off.test.ts: an attempt that did not reach its end proves nothing, wherever it was cut off. The runner of the attempts and
// the program of the service are real; the engine is a stand-in.
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { breaches, type Attack } from '../../src/attack/table/attack.ts';
import { fromContainer } from '../../src/attack/table/engine.ts';
import { fromService, SPY, SPY_PROGRAM } from '../../src/attack/table/services.ts';
import { runOnHost } from './run-inside.ts';

/** Each says an expected answer before its end. */
const ATTEMPTS = {
  'comes to its end': "line('refused')",
  'comes to its end after more than a few lines': "line('refused', $_) for 1 .. 2000",
  'returns early': "return line('refused'); line('got it')",
  'leaves a child of its own': "if (!fork) { return 1 } wait; line('refused')",
  'says more than a few lines, and then succeeds': "line('refused', $_) for 1 .. 2000; line('got it')",
  'is killed': "line('refused'); kill 9, $$; sleep 9",
  'ends with a status': "line('refused'); exit 7",
  'ends without one': "line('refused'); exit",
  'is at its end before anything was said': 'exit',
  'has a child that is killed': "line('refused'); apart(sub { kill 9, $$; sleep 9 }, 'child')",
  'has a child that ends with a status': "line('refused'); apart(sub { POSIX::_exit(3) }, 'child')",
  'becomes another program': "line('refused'); exec 'true'",
} as const;
type Name = keyof typeof ATTEMPTS;

const HERE: Readonly<Record<Name, readonly string[]>> = {
  'comes to its end': [],
  'comes to its end after more than a few lines': [],
  'returns early': [],
  'leaves a child of its own': [],
  'says more than a few lines, and then succeeds': ['got it'],
  'is killed': ['the attempt = was cut off', 'the attempt = ended by signal 9'],
  'ends with a status': ['the attempt = was cut off', 'the attempt = ended with status 7'],
  'ends without one': ['the attempt = was cut off'],
  'is at its end before anything was said': ['the attempt = was cut off'],
  'has a child that is killed': ['child = ended by signal 9'],
  'has a child that ends with a status': ['child = ended with status 3'],
  'becomes another program': ['the attempt = was cut off'],
};
/** A service cannot tell the status of a program. */
const IN_SERVICE = Object.fromEntries(
  Object.entries(HERE).map(([name, found]) => [
    name,
    found
      .filter((line) => !line.startsWith('the attempt = ended'))
      .map((line) => line.replace('the attempt', 'the service')),
  ]),
);

test('in the sandbox, an attempt counts only if it reaches its end', async () => {
  expect(await judged(ATTEMPTS)).toEqual(HERE);
});

test('in a service, an attempt counts only if it reaches its end, also if it hangs', async () => {
  // A random port, because other tests may use the usual one.
  const port = String(20_000 + (process.pid % 10_000));
  const at = (text: string): string => text.replaceAll(String(SPY.port), port);
  const spy = spawn('perl', ['-e', at(SPY_PROGRAM).replace(String(SPY.undeclared), '0').replace('alarm 7', 'alarm 4')]);
  const programs = { ...ATTEMPTS, hangs: "line('refused'); sleep 30" };
  try {
    await expect.poll(async () => (await judged({ first: at(fromService("line('refused')")) }))['first']).toEqual([]);
    const sent = Object.fromEntries(Object.entries(programs).map(([name, text]) => [name, at(fromService(text))]));
    expect(await judged(sent)).toEqual({ ...IN_SERVICE, hangs: ['the service = was cut off'] });
  } finally {
    spy.kill('SIGKILL');
  }
});

let engine: Server;
/** The answer of the next container. */
let container = { said: '', status: 0 };
beforeAll(async () => {
  engine = createServer((request, response) => {
    request.resume();
    const path = request.url ?? '';
    if (path.endsWith('/start')) response.statusCode = 204;
    response.end(
      path.endsWith('/create')
        ? '{"Id":"abc"}'
        : path.endsWith('/wait')
          ? `{"StatusCode":${container.status}}`
          : path.includes('/logs')
            ? container.said.replaceAll('\n', '\r\n')
            : undefined,
    );
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
});
afterAll(() => engine.close());

test.for([
  ['that came to its end', { said: 'refused\n', ends: true, status: 0 }, []],
  [
    'that was killed',
    { said: 'refused\n', ends: false, status: 137 },
    ['the container = was cut off', 'the container = ended with status 137'],
  ],
  ['that ended early', { said: 'refused\n', ends: false, status: 0 }, ['the container = was cut off']],
  [
    'whose first process failed at the end',
    { said: 'refused\n', ends: true, status: 1 },
    ['the container = ended with status 1'],
  ],
] as const)('an attempt in a container %s is judged by its end', async ([, { said, ends, status }, found]) => {
  container = { said: `${said}${ends ? '\nthe attempt has come to its end\n' : ''}`, status };
  const { port } = engine.address() as AddressInfo;
  const asked = fromContainer('', "line('refused')").replace('2375', String(port));
  expect(await judged({ asked })).toEqual({ asked: found });
});

/** The breaches of each program, by its name. */
async function judged(programs: Readonly<Record<string, string>>): Promise<Record<string, string[]>> {
  const attacks = Object.entries(programs).map(([id, perl]): Attack => ({
    id,
    perl,
    area: 'kernel',
    what: '',
    references: [],
    expect: ['refused'],
  }));
  const answers = await runOnHost(attacks, { SERVICE: '127.0.0.1' });
  return Object.fromEntries(attacks.map((one, i) => [one.id, breaches(one, answers[i] ?? '')]));
}
