// test/attacks/doctor-attack.full.test.ts: `ags doctor --attack` as a user runs it: every attempt of the table is made and stopped, and the
// result is kept and shown on tasks like it. A missing backend is a failure, not a pass.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINE_ATTACKS } from '../../src/attack/table/engine.ts';
import { SPY_PROGRAM } from '../../src/attack/table/services.ts';
import { ATTACKS } from '../../src/attack/table/table.ts';
import type { AttackReport } from '../../src/attack/run-attack.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { CALLERS, createMachine, giveTo, IS_ROOT, type Machine, ONE, type Result } from '../harness.ts';

const PATIENCE = { timeoutMs: 280_000 };
const report = ({ stdout, stderr }: Result): AttackReport => {
  if (!stdout.startsWith('{')) throw new Error(stderr);
  return JSON.parse(stdout) as AttackReport;
};
const through = ({ attacks }: AttackReport): string[] =>
  attacks.filter(({ verdict }) => verdict === 'not stopped').map(({ id, why }) => `${id}: ${why}`);

function configure(machine: Machine, text: string): void {
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(join(machine.home, '.config/ags/config.yaml'), text);
  giveTo(machine.home, machine.uid);
}

test('the table has more than 120 attempts, each with its own name, an area and a reference', () => {
  expect(ATTACKS.length).toBeGreaterThan(120);
  expect(new Set(ATTACKS.map(({ id }) => id)).size).toBe(ATTACKS.length);
  expect(
    ATTACKS.filter(({ id }) => !/^(fs|kernel|net|dns|git|merge|cred|res|task|service|engine)-[a-z0-9-]+$/.test(id)),
  ).toEqual([]);
  expect(ATTACKS.filter(({ references }) => references.length === 0).map(({ id }) => id)).toEqual([]);
});

/** The last caller's configuration opens more than it should; the other callers have a service. */
const OPENED = 'reveal: [.env]\n';
const SERVED = `services: { own: { run: ${JSON.stringify(['perl', '-e', SPY_PROGRAM])}, ports: [4848] } }\n`;

const NO_SERVICES = 'services: your configuration has no services';
const NO_ENGINE = 'engine: your configuration has no nested Docker (docker: true)';

describe.each(CALLERS)('as %s', (caller) => {
  const opened = caller === CALLERS.at(-1);
  let machine: Machine;
  let run: Result;
  let found: AttackReport;
  beforeAll(async () => {
    machine = createMachine(caller);
    configure(machine, opened ? OPENED : SERVED);
    run = await machine.ags(['doctor', '--attack', '--backend', 'native', '--json'], PATIENCE);
    found = report(run);
  }, 300_000);
  afterAll(() => machine[Symbol.dispose]());

  test('every attempt is made, and is stopped or limited, unless the configuration opens a way', () => {
    expect(through(found)).toEqual(
      opened
        ? ['fs-project-secrets: .env = exists', expect.stringMatching(/^cred-search: \S+\/project\/\.env = found$/)]
        : [],
    );
    expect([run.code, found.stands, found.backend]).toEqual([opened ? 1 : 0, !opened, 'native']);
    const made = new Set(found.attacks.map(({ id }) => id));
    expect(ATTACKS.filter(({ id }) => !made.has(id)).map(({ id }) => id)).toEqual([]);
    const left = found.attacks.filter(({ verdict }) => verdict === 'not applicable');
    expect(new Set(left.map(({ area, why }) => `${area}: ${why}`))).toEqual(
      new Set(opened ? [NO_SERVICES, NO_ENGINE] : [NO_ENGINE]),
    );
    expect(found.notAttacked).toEqual(opened ? [] : ['services (ours in their place)']);
  });

  test('nothing is left behind or planted', () => {
    expect(readdirSync(machine.home).filter((name) => !['.cache', '.config', '.local', 'code'].includes(name))).toEqual(
      [],
    );
    const left = readdirSync('/tmp').filter((name) => name.startsWith('.ags-attack-'));
    expect(left.filter((name) => !existsSync(`/proc/${name.split('-')[2]}`))).toEqual([]);
    expect([machine.git('status', '--porcelain'), machine.tasks()]).toEqual(['', []]);
  });

  test('the result is shown on tasks whose sandbox is made in the same way, and on no others', async () => {
    const of = found.attacks.filter(({ verdict }) => verdict !== 'not applicable').length;
    const held = of - through(found).length;
    await machine.ags(['exec', '--name', 'same', '--backend', 'native', '--review', 'later', '--', 'touch', 'x']);
    await machine.ags(['exec', '--name', 'other', '--reveal', '.npmrc', '--review', 'later', '--', 'touch', 'x']);
    const { tasks } = JSON.parse((await machine.ags(['list', '--json'])).stdout) as {
      tasks: { name: string; attacked: { held: number; of: number } | null }[];
    };
    const shown = Object.fromEntries(tasks.map(({ name, attacked }) => [name.split('-')[0], attacked]));
    expect(shown).toEqual({ same: { held, of, atMs: expect.any(Number) as number }, other: null });
    expect((await machine.ags(['list'])).stdout).toMatch(new RegExp(`ATTACKED[^]*\nsame\\S* .* ${held}/${of} `));
    expect((await machine.ags(['show', 'same'])).stdout).toContain(`${held} of ${of} attempts stopped or limited`);
  });
});

test.runIf(HAS_ENGINE)(
  'in containers, with nested Docker and without a network: attempts that need a network do not apply, with the reason',
  async () => {
    // /var/tmp is /tmp inside, so paths there would have two names.
    using machine = createMachine(IS_ROOT ? 'root' : 'user', { disk: '/var/lib' });
    configure(machine, 'network: { mode: off }\ndocker: true\n');
    const run = await machine.ags(['doctor', '--attack', '--backend', 'docker', '--json'], PATIENCE);
    const found = report(run);
    expect([through(found), found.backend, run.code]).toEqual([[], 'docker', 0]);
    const left = found.attacks.filter(({ verdict }) => verdict === 'not applicable');
    expect(new Set(left.map(({ area, why }) => (area === 'services' ? NO_SERVICES : why)))).toEqual(
      new Set(['your sandboxes have no network', NO_SERVICES]),
    );
    expect(found.attacks.filter(({ area, verdict }) => area === 'engine' && verdict === 'stopped').length).toBe(
      ENGINE_ATTACKS.length + 1,
    );
    expect(left.map(({ id }) => id)).toContain('dns-to-rebind');
  },
  300_000,
);

test('a missing backend is a failure with a hint, and no result is kept', async () => {
  using machine = createMachine(ONE);
  const run = await machine.ags(['doctor', '--attack', '--backend', 'docker'], {
    env: { DOCKER_HOST: 'unix:///nonexistent.sock' },
  });
  expect(run.code).toBe(9);
  expect(run.stderr).toMatch(/^ags: .+\n {5}.+/);
  expect(existsSync(join(machine.stateDir, 'attacked.json'))).toBe(false);
  const wrong = await machine.ags(['doctor', '--backend', 'docker']);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--backend goes with --attack')]);
});

test('ags cleanup removes what a killed run left in the home, but nothing of a living one', async () => {
  using machine = createMachine(ONE);
  const [dead, alive] = ['.ags-attack-4194305-dead00', `.ags-attack-${process.pid}-alive0`];
  for (const name of [dead, alive]) mkdirSync(join(machine.home, name, 'project'), { recursive: true });
  giveTo(machine.home, machine.uid);
  const run = await machine.ags(['cleanup', '--yes']);
  expect(run.code, run.stderr).toBe(0);
  expect(readdirSync(machine.home)).toContain(alive);
  expect(readdirSync(machine.home)).not.toContain(dead);
  rmSync(join(machine.home, alive), { recursive: true });
});
