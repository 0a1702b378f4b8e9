// test/services/images.full.test.ts: services from an image beside agents with this machine's programs.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { AGS, asMember, CALLERS, createMachine, ROOTS_USER, shareReadiness, type Machine } from '../harness.ts';
import { engine, tinyImage } from '../images/tiny-image.ts';
import { yaml } from './place.ts';

const PATIENCE = { timeout: 20_000 };

// Engines do not see the /tmp of the tests.
const PLACE = '/var/lib';

const exec = (machine: Machine, script: string): Promise<Finished> => ags(machine, 'exec', '--', 'sh', '-c', script);

interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function ags(machine: Machine, ...words: readonly string[]): Promise<Finished> {
  shareReadiness(machine);
  const [program, ...before] = asMember(machine.uid, 'docker');
  const argv = [...before, process.execPath, AGS, ...words];
  return promisify(execFile)(program, argv, { cwd: machine.project, env: machine.env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Finished) => error,
  );
}

// A service that writes what it can do and see to a page, and serves that page.
const LOOK = `{ echo "$WHO"; id -u; touch /made 2>&1; touch /data/kept && echo kept; touch /scratch/x && echo scratch; ls /usr /home 2>&1; cat /proc/net/dev | grep -c :; ls /var/run/docker.sock 2>&1; } > /data/index.html; exec busybox httpd -f -p 127.0.0.1:8080 -h /data`;

describe.runIf(HAS_ENGINE).each(CALLERS)('as %s, a service from an image', (caller) => {
  test('runs the command of the image, unprivileged, with only its volumes, scratch directories and variables', async () => {
    using image = tinyImage({
      says: ['VOLUME /data', 'WORKDIR /data', 'USER 0', 'ENV PATH=/bin', `CMD ${JSON.stringify(['sh', '-c', LOOK])}`],
    });
    using machine = createMachine(caller, {
      disk: PLACE,
      files: {
        'ags.yaml': yaml([
          `web: { image: '${image.name}', ports: [8080], scratch: [/scratch], environment: { WHO: me } }`,
        ]),
      },
    });
    // A project may not use the content of a user's image without approval.
    const untrusted = await exec(machine, 'curl -s --noproxy "*" http://web:8080/');
    expect([untrusted.code, untrusted.stdout, untrusted.stderr]).toEqual([
      2,
      '',
      expect.stringContaining(`services.web: run the image ${image.name} of your engine, and see what is in it`),
    ]);
    await ags(machine, 'trust', '--yes');
    const { code, stdout } = await exec(machine, 'curl -s --noproxy "*" http://web:8080/; echo "$WEB_URL"');
    const uid = machine.uid === 0 ? ROOTS_USER : machine.uid;
    expect({ code, lines: stdout.trim().split('\n') }).toEqual({
      code: 0,
      lines: [
        'me',
        String(uid),
        'touch: /made: Read-only file system',
        'kept',
        'scratch',
        'ls: /usr: No such file or directory',
        'ls: /home: No such file or directory',
        '1',
        'ls: /var/run/docker.sock: No such file or directory',
        'web:8080',
      ],
    });
    // The engine removes the container after it notices the end of its process.
    await expect.poll(() => engine('ps', '--all', '--quiet', '--filter', `ancestor=${image.name}`), PATIENCE).toBe('');
  });

  test('whose image is missing is refused with the command that pulls it', async () => {
    using machine = createMachine(caller, {
      disk: PLACE,
      files: { 'ags.yaml': yaml(["web: { image: 'not.there/at/all:1', ports: [8080] }"]) },
    });
    await ags(machine, 'trust', '--yes');
    const { code, stderr } = await exec(machine, 'sleep 60');
    expect(code).not.toBe(0);
    expect(stderr).toContain('ags image pull not.there/at/all:1');
  });
});
