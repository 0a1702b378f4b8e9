// test/e2e/disks.test.ts: read-only and full disks. A clear sentence, nothing lost, nothing half-written.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine, giveTo, type Machine } from '../harness.ts';
import { openDisk } from './disk.ts';
import { leftovers } from './leftovers.ts';

const NO_BUG = expect.not.stringContaining('this is a bug in ags') as string;
const saying = (text: string): string => expect.stringContaining(text) as string;

const tmpfs = (machine: Machine, at: string, size: string): string =>
  `mkdir -p ${at}; mount -t tmpfs -o size=${size},mode=755,uid=${machine.uid},gid=${machine.uid} tmpfs ${at}`;
const readOnly = (at: string): string => `mount --bind ${at} ${at}; mount -o remount,bind,ro ${at}`;
const FILL = (at: string): string =>
  `dd if=/dev/zero of=${at}/filler bs=1k 2> /dev/null || true; dd if=/dev/zero of=${at}/filler2 bs=1 2> /dev/null || true`;

describe.runIf(CALLERS.includes('root')).each(CALLERS)('as %s', (caller) => {
  test('x', async () => {
    using machine = createMachine(caller);
    mkdirSync(machine.stateDir, { recursive: true });
    giveTo(join(machine.home, '.local'), machine.uid);
    const say = (name: string, run: object): void => console.log(caller, name, JSON.stringify(run));
    {
      using disk = await openDisk(machine, readOnly(machine.project));
      say(
        'ro project exec',
        await disk.ags(
          'exec',
          '--',
          'sh',
          '-c',
          'echo new > new.txt; echo x > src/a.txt; rm README.md; git status --short',
        ),
      );
      say('ro project review', await disk.ags('review', '--accept-all'));
    }
    say('tasks', machine.tasks());
    say('later', await machine.ags(['review', '--accept-all']));
    {
      using disk = await openDisk(machine, readOnly(machine.stateDir));
      say('ro state exec', await disk.ags('exec', '--', 'true'));
      say('ro state review', await disk.ags('review'));
      say('ro state list', await disk.ags('list'));
    }
    {
      using disk = await openDisk(machine, readOnly(machine.home));
      say('ro home exec', await disk.ags('exec', '--', 'true'));
    }
    {
      using disk = await openDisk(machine, `${tmpfs(machine, machine.stateDir, '400k')}; ${FILL(machine.stateDir)}`);
      say('full state exec', await disk.ags('exec', '--', 'true'));
      say('full state left', disk.sh(`ls -A ${machine.stateDir} ${machine.stateDir}/tasks || true`));
    }
    {
      using disk = await openDisk(machine, tmpfs(machine, machine.stateDir, '20m'));
      say(
        'filling exec',
        await disk.ags(
          'exec',
          '--',
          'sh',
          '-c',
          'echo small > small.txt; dd if=/dev/zero of=big.bin bs=1M count=100; echo $?; echo after > after.txt; ls -la',
        ),
      );
      say('df', disk.sh(`df ${machine.stateDir}; ls ${machine.stateDir}/tasks`));
      say('filled review', await disk.ags('review', '--accept', 'small.txt'));
      disk.sh(`mount -o remount,size=200m ${machine.stateDir}`);
      say('grown review', await disk.ags('review', '--accept', 'small.txt'));
      say('grown review', await disk.ags('review', '--json'));
    }
    say('left', await leftovers(machine));
  }, 120_000);
});
void [NO_BUG, saying];
