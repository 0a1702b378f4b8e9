// test/sandbox/listeners.test.ts: the listeners of the native backend, and the helper that connects into its sandboxes and ends with them.
// needs: sandbox
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ALSO_AS_USER, runAgain, startAgain } from '../conformance/again.ts';
import { listenerPromises, LISTENERS, REACHED, specOf } from '../conformance/listeners.ts';
import { openNative } from '../conformance/native-backend.ts';
import { createPlace, ended, leftOf, processesNamed, RUNNER, until } from '../conformance/place.ts';

if (process.env[RUNNER.word] !== undefined)
  test('a runner at work', async () => {
    using place = await createPlace((directory) => openNative(directory));
    const word = process.env[RUNNER.word] ?? '';
    const sandbox = await place.start(['sh', '-c', `setsid sleep ${word} & sleep ${word}; :`], {
      spec: specOf(place, REACHED),
    });
    writeFileSync(join(place.root, '../pid'), String(process.pid));
    await sandbox.done;
  });
else listenerTests();

function listenerTests(): void {
  listenerPromises((directory) => openNative(directory));

  test('without reach no helper runs that could connect', async () => {
    using place = await createPlace((directory) => openNative(directory));
    const word = `31${Date.now()}`;
    const sandbox = await place.start(['sh', '-c', `echo begun; sleep ${word}`], { spec: specOf(place, LISTENERS) });
    await until(sandbox, 'begun');
    await expect(sandbox.connect(8080)).rejects.toMatchObject({ code: 'usage.invalid' });
    expect(processesNamed(word).filter((line) => line.includes('perl'))).toEqual([]);
    expect(readFileSync(`/proc/${sandbox.initPid}/environ`, 'utf8')).not.toContain('NODE_');
    sandbox.kill();
    await ended(sandbox);
  });

  test('the connecting helper has no capability, no root identity and no descriptor but the channel', async () => {
    using place = await createPlace((directory) => openNative(directory));
    const word = `32${Date.now()}`;
    const sandbox = await place.start(['sh', '-c', `echo begun; sleep ${word}`], { spec: specOf(place, REACHED) });
    await until(sandbox, 'begun');
    const helper = processesNamed(word).find((line) => line.includes('perl')) ?? '';
    const pid = helper.split(' ')[0] ?? '';
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const rows = ['CapPrm', 'CapEff', 'NoNewPrivs', 'Uid'].map(
      (name) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1],
    );
    const others = readdirSync(`/proc/${pid}/fd`).map((fd) =>
      readlinkSync(`/proc/${pid}/fd/${fd}`).replace(/\d+/, 'N'),
    );
    expect(rows).toEqual([
      '0000000000000000',
      '0000000000000000',
      '1',
      Array(4).fill(place.spec().user.uid).join('\t'),
    ]);
    expect(others).toEqual(['/dev/null', '/dev/null', '/dev/null', 'socket:[N]']);
    sandbox.kill();
    await ended(sandbox);
    expect(await leftOf(word)).toEqual([]);
  });

  test('when the runner is killed, nothing is left', async () => {
    const word = `33${Date.now()}`;
    const directory = mkdtempSync('/tmp/ags-runner-');
    const said = join(directory, 'pid');
    const child = startAgain({
      file: String(expect.getState().testPath),
      uid: null,
      env: { [RUNNER.word]: word, [RUNNER.directory]: directory },
    });
    for (const stream of [child.stdout, child.stderr]) stream?.resume();
    try {
      const pid = (): number => (existsSync(said) ? Number(readFileSync(said, 'utf8')) : 0);
      // The file exists before it has content, and kill(0) would end the test's process group.
      await expect.poll(pid).toBeGreaterThan(0);
      await expect.poll(() => processesNamed(word).filter((line) => line.includes('perl')).length).toBe(1);
      process.kill(pid(), 'SIGKILL');
      expect(await leftOf(word)).toEqual([]);
    } finally {
      child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    }
  });

  if (ALSO_AS_USER)
    test('listeners work the same for an ordinary user', async () => {
      const { passed, failed, other } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
      expect({ failed, other, enough: passed.length >= 14 }).toEqual({ failed: [], other: [], enough: true });
    }, 310_000);
}
