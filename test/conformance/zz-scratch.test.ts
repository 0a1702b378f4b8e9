import { test } from 'vitest';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { chooseStage, ensureWhiteout, inspectHost } from '../../src/sandbox/host.ts';
import { createNative } from '../../src/sandbox/native.ts';
import { createPlace, ended, processesNamed, until } from './place.ts';
const open = async (directory: string) => {
  const uid = process.getuid?.() ?? 0;
  const stateDir = join(directory, '..', 'state');
  const host = await inspectHost({ platform: process.platform, nodeArch: process.arch, uid, cacheDir: stateDir, runtimeDir: '', memoryBytes: totalmem(), kernel: release() });
  const whiteout = await ensureWhiteout(stateDir);
  return { name: 'native' as const, start: (spec: any, command: any, stdio: any) => createNative({ runDir: directory, whiteout, callerIsRoot: uid === 0, owner: { uid, gid: process.getgid?.() ?? 0 }, arch: host.arch, programs: host.programs, stage: uid === 0 ? chooseStage([]) : '', limitHost: host.limitHost, cgroup: { files: [], prefix: [], env: {} }, runMark: 'conformance' }).start(spec, command, stdio) };
};
test('stress', async () => {
  for (let i = 0; i < 40; i++) {
    using place = await createPlace(open);
    const word = `600.${Date.now()}77`;
    const sandbox = await place.start(['perl', '-e', `$| = 1; $SIG{$_} = 'IGNORE' for qw(HUP INT QUIT TERM USR1); use POSIX; for (1 .. 3) { next if fork; POSIX::setsid(); exit if fork; kill STOP => $$ if $_ == 2; exec 'sleep', '${word}' } sleep 1; print "ready\\n"; sleep 600`]);
    let err = ''; sandbox.stderr?.on('data', (c) => { err += c; });
    const r = await Promise.race([until(sandbox, 'ready').then(() => 'ok'), new Promise((r) => setTimeout(() => r('HUNG'), 6000))]);
    if (r !== 'ok') { console.log(i, r, err, sandbox.initPid, execFileSync('sh', ['-c', `pgrep -f ${word} | while read p; do echo $p $(cat /proc/$p/wchan) $(grep State /proc/$p/status) $(tr '\\0' ' ' </proc/$p/cmdline | cut -c1-60); cat /proc/$p/syscall; ls -l /proc/$p/fd | tail -n +2 | awk '{print $9,$11}' | tr '\\n' ';'; done; ls -l /proc/${process.pid}/fd | awk '{print $9,$11}' | tr '\\n' ';'`], { encoding: 'utf8' })); }
    sandbox.kill();
    await ended(sandbox);
    if (processesNamed(word).length) console.log(i, 'LEFT', processesNamed(word));
  }
}, 400_000);
