// test/images/devcontainer/compose-two.ts: Docker Compose 2: the installed one, or that of its Debian package, which is downloaded once
// and kept.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const KEPT = '/var/tmp/ags-test-compose-2/docker-compose';
const PLUGINS = ['/usr/libexec', '/usr/lib', '/usr/local/lib', '/usr/local/libexec'].map(
  (dir) => `${dir}/docker/cli-plugins/docker-compose`,
);

/** The path of the program; null: neither installed nor downloadable. */
export function composeTwo(): string | null {
  return [...PLUGINS, KEPT].find(isTwo) ?? fetched();
}

function isTwo(program: string): boolean {
  return existsSync(program) && /v?2\./.test(spawnSync(program, ['version', '--short'], { encoding: 'utf8' }).stdout);
}

function fetched(): string | null {
  const dir = mkdtempSync('/var/tmp/ags-compose-');
  try {
    for (const one of ['lists/partial', 'cache/archives/partial', 'x']) mkdirSync(join(dir, one), { recursive: true });
    writeFileSync(
      join(dir, 'debian.sources'),
      `Types: deb\nURIs: ${mirror()}\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n`,
    );
    const settings = {
      'Dir::Etc::sourcelist': join(dir, 'debian.sources'),
      'Dir::Etc::sourceparts': '-',
      'Dir::State::lists': join(dir, 'lists'),
      'Dir::Cache': join(dir, 'cache'),
      'APT::Sandbox::User': 'root',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    for (const words of [['update'], ['download', 'docker-compose']])
      execFileSync('apt-get', [...options, ...words], { cwd: dir, stdio: 'ignore', timeout: 120_000 });
    const deb = readdirSync(dir).find((name) => name.endsWith('.deb')) ?? '';
    execFileSync('dpkg-deb', ['-x', join(dir, deb), join(dir, 'x')], { stdio: 'ignore' });
    mkdirSync(dirname(KEPT), { recursive: true });
    renameSync(join(dir, 'x', PLUGINS[0] ?? ''), KEPT);
    return KEPT;
  } catch {
    return null;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The Debian mirror that this machine uses. */
function mirror(): string {
  const asked = execFileSync('apt-get', ['indextargets', '--format', '$(SITE)'], { encoding: 'utf8' });
  const site = asked.split('\n').find((line) => /debian\.org\/debian\/?$/.test(line));
  if (site === undefined) throw new Error('this machine does not use a Debian mirror');
  return site;
}
