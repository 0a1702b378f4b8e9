// test/workspace/encoding.test.ts: which code of the C library reads a file while a snapshot is written is nothing that an agent chooses.
// needs: sandbox
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { giveTo, USUAL } from '../harness.ts';
import { createAgentMachine } from '../agent-run/place.ts';

const TELL = 'run: od -An -c two.txt | head -1 > seen.txt';

test.each(USUAL)(
  'an encoding counts if the user has it on a branch, and not if an agent wrote it (as %s)',
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
