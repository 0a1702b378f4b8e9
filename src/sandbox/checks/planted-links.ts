// sandbox/checks/planted-links.ts: tests whether this bubblewrap follows links that an agent could have planted (CVE-2026-87766). Older
// releases follow links into the old root when they create mount points, and so write outside the sandbox. The trial plays both sides in
// its own directory and can reach nothing else.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree } from '../../lib/files.ts';
import { run } from '../../lib/process/process.ts';
import { readMachine } from '../spec/machine.ts';

export async function followsPlantedLinks(bwrap: string, stateDir: string): Promise<'follows' | 'refuses' | 'unknown'> {
  const dir = realpathSync(mkdtempSync(join(stateDir, 'probe-')));
  try {
    const [home, victim] = [join(dir, 'home'), join(dir, 'victim')];
    for (const made of [home, victim]) mkdirSync(made);
    symlinkSync(`/oldroot${victim}`, join(home, '.config'));
    const system = readMachine({ home, etc: [], toolDirs: [] }).system.flatMap(({ path, link }) =>
      link === null ? ['--ro-bind', path, path] : ['--symlink', link, path],
    );
    const tried = await run(
      [
        bwrap,
        '--unshare-user',
        '--unshare-pid',
        '--unshare-net',
        ...system,
        '--bind',
        home,
        '/h',
        '--dir',
        '/h/.config/planted',
        '--',
        '/bin/true',
      ],
      { env: { PATH: '/usr/bin:/bin' }, timeoutMs: 5000 },
    );
    if (existsSync(join(victim, 'planted'))) return 'follows';
    // A fixed bubblewrap stops at the link or keeps it inside; one that cannot start at all proves nothing.
    return tried.exitCode === 0 || /\.config|symlink|planted/i.test(tried.stderr) ? 'refuses' : 'unknown';
  } finally {
    removeTree(dir);
  }
}
