// test/images/podman.full.test.ts: a hostile image under Podman, which needs other options than Docker.
import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { findEngine } from '../../src/sandbox/engine/find-engine.ts';
import { ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { openEngine } from '../conformance/engine-backend.ts';
import { CALLER, USER } from '../conformance/place.ts';
import { createPodmanUser, HAS_PODMAN } from '../sandbox/podman-user.ts';
import { openImage } from './image-place.ts';
import { tinyImage } from './tiny-image.ts';

const EVIL = 'package Evil; open my $f, ">", "/tmp/evil"; print $f "was here"; close $f; 1;';

if (HAS_PODMAN && CALLER === 'user')
  test('the configuration of an image has no effect under Podman either', async () => {
    const { uid, username: userName } = userInfo();
    const engine = findEngine('podman', { env: process.env, uid, userName }, true);
    if (engine === null) throw new Error('no engine');
    using image = tinyImage(
      {
        setUserId: true,
        files: { 'data/kept': 'x', 'evil/Evil.pm': EVIL, 'etc/ld.so.preload': '/evil/evil.so\n' },
        says: [
          'USER root',
          'ENTRYPOINT ["/bin/sh", "-c", "echo entered"]',
          'VOLUME /data',
          'ENV PERL5OPT=-MEvil PERL5LIB=/evil LD_PRELOAD=/evil/evil.so PATH=/evil',
        ],
      },
      engine,
    );
    using over = await openImage(image.name, engine, openEngine(engine, { root: [], etc: [] }));
    const script =
      'id -u; touch /data/x 2>/dev/null && echo wrote; cat /etc/ld.so.preload; ls /tmp; ls /usr 2>&1; exit 7';
    const { code, stdout } = await over.place.run(['sh', '-c', script], { spec: over.spec() });
    expect([code, stdout]).toEqual([7, `${USER.uid}\nls: /usr: No such file or directory\n`]);
  });

if (HAS_PODMAN && ALSO_AS_USER)
  test('sandboxes of an ordinary user pass as well', async () => {
    using user = createPodmanUser('ags-images');
    const mine = String(expect.getState().testPath);
    const { failed, other } = await runAgain({ file: mine, uid: user.uid, env: user.env, deadlineMs: 590_000 });
    expect({ failed, other }).toEqual({ failed: [], other: [] });
  }, 600_000);
if (!HAS_PODMAN) test.skip('Podman is not installed here', () => undefined);
