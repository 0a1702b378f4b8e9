// images/debian-root.ts: an image made of Debian's packages, for engines that cannot fetch one. The packages are signed, and fetched by
// this machine; their scripts run as root of a directory, or, for an ordinary user, of a namespace.
import { AgsError } from '../protocol/errors.ts';
import { findProgram } from '../sandbox/checks/host.ts';
import { importArgs, inspectImage } from '../sandbox/engine/images.ts';
import { tellSlowly } from '../sandbox/engine/build.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import type { Image } from '../sandbox/spec/image.ts';
import { DEBIAN } from './wanted/base-image.ts';
import type { World } from '../run/host-context.ts';

const NAME = `ags-debian:${DEBIAN.suite}`;

export function canMakeDebian(): boolean {
  return findProgram('mmdebstrap') !== null;
}

export async function debianImage(
  world: World,
  engine: Engine,
  anew: boolean,
  say: (text: string) => void,
): Promise<Image> {
  const there = anew ? null : await inspectImage(engine, NAME);
  if (there !== null) return there;
  const program = findProgram('mmdebstrap');
  if (program === null)
    throw new AgsError('image.failed', 'To make an image of packages, mmdebstrap is needed.', {
      hint: 'Install it: sudo apt-get install -y mmdebstrap',
    });
  say(`Making ${NAME} of Debian's packages (mmdebstrap) ...`);
  const argv = [program, ...(world.uid === 0 ? [] : ['--mode=unshare']), '--variant=minbase', DEBIAN.suite, '-'];
  const env = Object.fromEntries(
    Object.entries(world.env).flatMap(([name, value]) =>
      value !== undefined && (/_proxy$/i.test(name) || name === 'HOME') ? [[name, value]] : [],
    ),
  );
  const { exitCode, last } = await tellSlowly(engine, [...importArgs('debian'), NAME], () => undefined, {
    argv,
    env: { ...env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' },
  });
  const made = exitCode === 0 ? await inspectImage(engine, NAME) : null;
  if (made !== null) return made;
  throw new AgsError('image.failed', `mmdebstrap ended with ${exitCode}.\n${last.slice(-6).join('\n')}`);
}
