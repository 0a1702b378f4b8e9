// test/sandbox/late-env.full.test.ts: variables that make programs load or run something (LD_PRELOAD, BASH_ENV) are set after the limits, for the command alone.
// needs: gcc, sandbox
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lateEnv } from '../../src/sandbox/native/launch.ts';
import { CALLERS, createMachine, giveTo } from '../harness.ts';

test('variables of the loader and of shells are set for the command alone', () => {
  expect(lateEnv({ PATH: '/bin', NODE_ENV: 'test' })).toEqual({ first: { PATH: '/bin', NODE_ENV: 'test' }, argv: [] });
  const { first, argv } = lateEnv({ PATH: '/bin', LD_LIBRARY_PATH: '/a b', BASH_ENV: '$(x)', SHELLOPTS: 'xtrace' });
  expect(first).toEqual({ PATH: '/bin', AGS_LATE_0: '/a b', AGS_LATE_1: '$(x)' });
  const [program = '', ...rest] = argv;
  expect(execFileSync(program, [...rest, 'env'], { env: first, encoding: 'utf8' }).split('\n')).toEqual(
    expect.arrayContaining(['LD_LIBRARY_PATH=/a b', 'BASH_ENV=$(x)', 'PATH=/bin']),
  );
  expect(execFileSync(program, [...rest, 'env'], { env: first, encoding: 'utf8' })).not.toContain('AGS_LATE');
});

describe.each(CALLERS)('as %s', (caller) => {
  test('a preloaded library of the project runs only in processes with limits', async () => {
    using machine = createMachine(caller);
    const source = join(machine.root, 'early.c');
    // Prints its program and the limit on open files.
    writeFileSync(
      source,
      '#include <stdio.h>\n#include <sys/resource.h>\n__attribute__((constructor)) static void begin(void) { char name[64] = ""; FILE *f = fopen("/proc/self/comm", "r"); fgets(name, 64, f); struct rlimit l; getrlimit(RLIMIT_NOFILE, &l); fprintf(stderr, "%lu in %s", l.rlim_max, name); }\n',
    );
    mkdirSync(join(machine.project, 'lib'));
    execFileSync('gcc', ['-shared', '-fPIC', '-o', join(machine.project, 'lib/early.so'), source]);
    machine.write(
      'ags.yaml',
      `limits: { openFiles: 321 }\nenv: { set: { LD_PRELOAD: ${machine.project}/lib/early.so } }\n`,
    );
    giveTo(machine.root, machine.uid);
    const { code, stderr } = await machine.ags(['exec', '--', '/bin/true']);
    expect(code, stderr).toBe(0);
    expect(stderr.match(/\d+ in \S+/g)).toEqual(['321 in true']);
  });
});
