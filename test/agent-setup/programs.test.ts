// test/agent-setup/programs.test.ts: ags finds the user's own agent programs and shows a sandbox nothing beside them.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync, chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { giveTo, USUAL } from '../harness.ts';
import { createPlace, type Place } from './fixture.ts';

interface Found {
  program: { argv: string[]; mounts: { from: string; to: string }[]; version: string | null; source: string } | null;
  notices: (string | null)[];
}

function write(place: Place, path: string, content: string): string {
  const at = join(place.machine.home, path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, content, { mode: 0o755 });
  giveTo(place.machine.home, place.machine.uid);
  return at;
}

async function find(place: Place, agent: string, ...path: string[]): Promise<Found> {
  const dirs = path.map((dir) => join(place.machine.home, dir));
  const { stdout, stderr } = await place.drive(['find', agent], { PATH: [...dirs, place.env['PATH']].join(':') });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Found;
}

describe.each(USUAL)('as %s', (caller) => {
  test('a program in a tool directory runs in place, and its version is read once, in a sandbox', async () => {
    await using place = await createPlace(caller);
    expect((await find(place, 'bolt')).program).toBeNull();
    const real = write(
      place,
      '.local/lib/bolt/bolt',
      '#!/bin/sh\n[ -e ~/secret.txt ] || [ -z "$AGS_SANDBOX" ] && echo 6.6.6; echo "bolt 2.3.4"; echo asked >> ~/asked\n',
    );
    write(place, 'secret.txt', 'x');
    mkdirSync(join(place.machine.home, '.local/bin'));
    symlinkSync(real, join(place.machine.home, '.local/bin/bolt'));
    const first = await find(place, 'bolt', '.local/bin');
    expect(first).toMatchObject({
      program: { argv: [join(place.machine.home, '.local/bin/bolt')], mounts: [], version: '2.3.4', source: 'host' },
      notices: [expect.stringContaining('Your Bolt is version 2.3.4; ags was tested with 2.0.0.'), null],
    });
    // The notice appears once, and the program's writes went into a temporary home.
    expect((await find(place, 'bolt', '.local/bin')).notices).toEqual([null, null]);
    expect(readdirSync(place.machine.home)).not.toContain('asked');
    // A changed program is asked for its version again.
    write(place, '.local/lib/bolt/bolt', '#!/bin/sh\necho "v2.0.0"\n# longer than before, so that it differs\n');
    expect(await find(place, 'bolt', '.local/bin')).toMatchObject({
      program: { version: '2.0.0' },
      notices: [null, null],
    });
  }, 90_000);

  test("elsewhere only the program's package is mounted; a single file is mounted alone", async () => {
    await using place = await createPlace(caller);
    const bin = 'apps/node_modules/bolt-agent/bin/bolt.js';
    write(place, 'apps/node_modules/bolt-agent/package.json', '{"version":"2.0.0"}');
    write(place, 'apps/node_modules/other/secret.txt', 'x');
    write(place, bin, '#!/usr/bin/env node\nconsole.log("run")\n');
    mkdirSync(join(place.machine.home, 'links'));
    symlinkSync(join(place.machine.home, bin), join(place.machine.home, 'links/bolt'));
    expect((await find(place, 'bolt', 'links')).program).toMatchObject({
      argv: ['/run/ags/agents/bolt/bin/bolt.js'],
      mounts: [{ from: join(place.machine.home, 'apps/node_modules/bolt-agent'), to: '/run/ags/agents/bolt' }],
      version: '2.0.0',
    });
    // A package.json in the home does not make the home a package.
    write(place, 'package.json', '{"version":"9.9.9"}');
    write(place, 'scripts/bolt', '#!/bin/sh\nls -a "$(dirname "$0")"; ls -a ~; echo 2.0.1\n');
    expect((await find(place, 'bolt', 'scripts')).program).toMatchObject({
      argv: ['/run/ags/agents/bolt/bolt'],
      mounts: [{ from: join(place.machine.home, 'scripts/bolt'), to: '/run/ags/agents/bolt/bolt' }],
      version: '2.0.1',
    });
  }, 90_000);

  test('a program that no sandbox can run, or that is not a program, is not found', async () => {
    await using place = await createPlace(caller);
    const file = write(place, 'tools/bolt', 'not a program');
    chmodSync(file, 0o644);
    expect((await find(place, 'bolt', 'tools')).program).toBeNull();
    // Its Node is not in a sandbox.
    write(place, 'scripts/bolt', '#!/usr/bin/env node\nconsole.log("2.0.0")\n');
    const node = join(place.machine.home, 'hidden-node');
    mkdirSync(node);
    execFileSync('cp', [process.execPath, join(node, 'node')]);
    giveTo(place.machine.home, place.machine.uid);
    const { stdout } = await place.drive(['find', 'bolt'], { PATH: `${join(place.machine.home, 'scripts')}:${node}` });
    expect((JSON.parse(stdout) as Found).program).toBeNull();
    // A program that prints nothing has no version, but exists.
    write(place, 'scripts/bolt', '#!/bin/sh\nexit 1\n');
    expect((await find(place, 'bolt', 'scripts')).program).toMatchObject({ version: null, source: 'host' });
  }, 90_000);

  test('no project may be in a directory with agent programs', async () => {
    await using place = await createPlace(caller);
    write(place, '.local/share/ags/agents/acme/current.json', '{}');
    for (const project of ['.local/share/ags/agents/acme', '.local/share/ags', '.local/share']) {
      const result = await place.ags(['exec', '--project', join(place.machine.home, project), '--', 'true']);
      expect([result.code, result.stderr]).toEqual([2, expect.stringContaining('the programs that ags has installed')]);
    }
  }, 60_000);
});
