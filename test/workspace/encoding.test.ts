// test/workspace/encoding.test.ts: an agent cannot choose the encoding, and so the C library code, that reads a file for a snapshot.
// needs: sandbox
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { giveTo, USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';

const TELL = 'run: od -An -c two.txt | head -1 > seen.txt';

test.each(USUAL)(
  'an encoding of the branch of the user applies, and one from an agent does not (as %s)',
  async (caller) => {
    using machine = createAgentMachine(caller);
    await machine.runDemo('evil', 'write: .gitattributes two.txt working-tree-encoding=UTF-16LE // write: two.txt hi');
    await machine.runDemo('onto', TELL, ['--base', 'ags/evil']);
    expect(machine.git('show', 'ags/onto:seen.txt').replaceAll(' ', '').trim()).toBe(String.raw`hi\n`);

    writeFileSync(join(machine.project, 'two.txt'), Buffer.from('hi', 'utf16le'));
    machine.write('.gitattributes', 'two.txt working-tree-encoding=UTF-16LE\n');
    giveTo(machine.project, machine.uid);
    machine.git('add', '-A');
    machine.git('commit', '-qm', 'mine');
    await machine.runDemo('mine', TELL);
    expect(machine.git('show', 'ags/mine:seen.txt').replaceAll(' ', '').trim()).toBe(String.raw`h\0i\0`);
  },
);
