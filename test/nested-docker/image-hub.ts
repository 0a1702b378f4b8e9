// test/nested-docker/image-hub.ts: a real registry on loopback instead of Docker Hub, with one small image.
// uses: registry, curl
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';

const REGISTRY = '/usr/bin/docker-registry';
const BUSYBOX = '/usr/bin/busybox';
const CURL = '/usr/bin/curl';

/** `npm run test:all` installs both; without them the tests of nested Docker are skipped. */
export const HAS_HUB = existsSync(REGISTRY) && existsSync(BUSYBOX);
if (!HAS_HUB && process.env['AGS_REQUIRE_ALL'] !== undefined) throw new Error('docker-registry or busybox is missing');

export interface ImageHub extends AsyncDisposable {
  readonly origin: string;
  /** Layers and configurations that were fetched. */
  readonly blobsFetched: string[];
}

/** library/app:1 */
export async function startImageHub(): Promise<ImageHub> {
  const dir = mkdtempSync(join(tmpdir(), 'ags-hub-'));
  const config = join(dir, 'config.yml');
  writeFileSync(
    config,
    `version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: ${dir}/data}}\nhttp: {addr: "127.0.0.1:0"}\n`,
  );
  const child = spawn(REGISTRY, ['serve', config], { stdio: ['ignore', 'pipe', 'pipe'] });
  const blobsFetched: string[] = [];
  const port = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        const listening = /listening on 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
        if (listening !== undefined) resolve(listening);
        const fetched = /"GET \/v2\/library\/app\/blobs\/(\S+) HTTP\/1\.1" 200/.exec(line)?.[1];
        if (fetched !== undefined) blobsFetched.push(fetched);
      });
  });
  const origin = `http://127.0.0.1:${await port}`;
  await pushImage(origin, dir);
  return {
    origin,
    blobsFetched,
    async [Symbol.asyncDispose]() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const TOOLS = 'sh echo cat ls id ip wget httpd mount umount touch kill sleep find head tail grep dd nc chroot'.split(
  ' ',
);

async function pushImage(origin: string, dir: string): Promise<void> {
  const root = join(dir, 'root');
  mkdirSync(join(root, 'bin'), { recursive: true });
  mkdirSync(join(root, 'www'));
  writeFileSync(join(root, 'www/index.html'), 'served inside\n');
  copyFileSync(BUSYBOX, join(root, 'bin/busybox'));
  for (const tool of TOOLS) symlinkSync('busybox', join(root, 'bin', tool));
  for (const file of withLibraries(CURL)) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    copyFileSync(file, join(root, file));
  }
  const { stdout: layer } = spawnSync('tar', ['--owner=root:0', '--group=root:0', '-C', root, '-cf', '-', '.'], {
    maxBuffer: 64 * 1024 * 1024,
  });
  const packed = gzipSync(layer);
  const settings = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Cmd: ['sh'], Env: ['PATH=/bin:/usr/bin'] },
      rootfs: { type: 'layers', diff_ids: [digest(layer)] },
    }),
  );
  for (const blob of [packed, settings]) {
    const begun = await fetch(`${origin}/v2/library/app/blobs/uploads/`, { method: 'POST' });
    const place = new URL(begun.headers.get('location') ?? '', origin);
    place.searchParams.set('digest', digest(blob));
    await fetch(place, { method: 'PUT', body: new Uint8Array(blob) });
  }
  const type = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      size: settings.length,
      digest: digest(settings),
    },
    layers: [
      {
        mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
        size: packed.length,
        digest: digest(packed),
      },
    ],
  };
  const put = await fetch(`${origin}/v2/library/app/manifests/1`, {
    method: 'PUT',
    headers: { 'content-type': type },
    body: JSON.stringify(manifest),
  });
  if (put.status !== 201) throw new Error(`the image was not taken: ${put.status} ${await put.text()}`);
}

/** Adds a dynamically linked program, because the static busybox cannot resolve names. */
function withLibraries(program: string): string[] {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' });
  return [program, ...Array.from(stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g), ([, path = '']) => path)];
}

function digest(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
