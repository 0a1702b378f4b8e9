// images/debian-root.ts: makes a base image from Debian packages, for engines that cannot pull one. This machine downloads the packages
// and checks their signatures; their scripts run as root of a directory or, for an ordinary user, of a user namespace.
import { AgsError } from '../protocol/errors.ts';
import { findProgram } from '../sandbox/programs.ts';
import { importArgs, inspectImage } from '../sandbox/engine/images.ts';
import { tellSlowly } from '../sandbox/engine/build.ts';
import type { Engine } from '../sandbox/engine/engine.ts';
import type { Image } from '../sandbox/spec/image.ts';
import { DEBIAN } from './wanted/base-image.ts';
import type { HostContext } from '../run/host-context.ts';

const NAME = `ags-debian:${DEBIAN.suite}`;

export function canMakeDebian(): boolean {
  return findProgram('mmdebstrap') !== null;
}

export async function debianImage(
  context: HostContext,
  engine: Engine,
  anew: boolean,
  say: (text: string) => void,
): Promise<Image> {
  const there = anew ? null : await inspectImage(engine, NAME);
  if (there !== null) return there;
  const program = findProgram('mmdebstrap');
  if (program === null)
    throw new AgsError('image.failed', 'Building an image from packages needs mmdebstrap.', {
      hint: 'Install it: sudo apt-get install -y mmdebstrap',
    });
  say(`Building ${NAME} from Debian packages (mmdebstrap) ...`);
  const argv = [program, ...(context.uid === 0 ? [] : ['--mode=unshare']), '--variant=minbase', DEBIAN.suite, '-'];
  const env = Object.fromEntries(
    Object.entries(context.env).flatMap(([name, value]) =>
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
