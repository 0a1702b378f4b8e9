// test/sandbox/hidden-names.test.ts: files that a sandbox must not see, under names that are not UTF-8.
// needs: sandbox
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMachine, giveTo, USUAL } from '../harness.ts';

test.each(USUAL)('as %s: a secret that cannot be hidden stops the run, other odd names do not', async (caller) => {
  using machine = createMachine(caller);
  const at = (path: string): Buffer => Buffer.from(`${machine.project}/${path}`, 'latin1');
  const show = (): ReturnType<typeof machine.ags> => machine.ags(['exec', '--', 'sh', '-c', 'cat odd*/*']);
  mkdirSync(at('odd\xff'));
  writeFileSync(at('odd\xff/notes'), 'notes\n');
  giveTo(machine.project, machine.uid);
  expect(await show()).toMatchObject({ code: 0, stdout: 'notes\n' });
  for (const path of ['odd\xff/.env', 'key\xff.pem', 'odd\xff/deep']) {
    if (path.endsWith('deep')) mkdirSync(at(path));
    const secret = path.endsWith('deep') ? `${path}/.env` : path;
    writeFileSync(at(secret), 'SECRET=1\n');
    const refused = await show();
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(`${secret.replace('\xff', '\\xff')} has to be hidden`);
    rmSync(at(secret));
  }
});
