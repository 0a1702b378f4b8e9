// bench/gateway/inspect.mjs: requests inside TLS, tunnelled and inspected.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { NAMES } from './names.mjs';
import { tree } from './place.mjs';
import { startAgs } from './proxies.mjs';
import { inTurn, mapValues } from './rounds.mjs';

const PORT = 8443;
const PROXY = 7300;
const [PASSED, INSPECTED] = NAMES;

export async function inspect(place, settings) {
  const { createAuthority } = await import(pathToFileURL(join(settings.dist, 'gateway/intercept/certificate.js')).href);
  const authority = createAuthority({ commonName: 'bench', days: 2, now: new Date() });
  const trusted = join(place.dir, 'authority.pem');
  writeFileSync(trusted, authority.certificatePem);
  const gateway = await startAgs(place, {
    ags: settings.ags,
    port: PROXY,
    rules: [`${PASSED}:${PORT}`, `GET ${INSPECTED}:${PORT}/v1/*`],
    env: { NODE_EXTRA_CA_CERTS: trusted },
  });
  const pids = tree(gateway.child.pid);
  const by = (name, fresh) => {
    const { cert, key } = authority.leafFor(name);
    const files = { certificate: join(place.dir, `${name}.pem`), key: join(place.dir, `${name}.key`) };
    writeFileSync(files.certificate, cert);
    writeFileSync(files.key, key);
    const how = { load: place.load, via: PROXY, name, port: PORT, ...files, fresh, many: 8, pids };
    return (warmUp = settings.seconds / 2) => askByTls({ ...how, seconds: settings.seconds, warmUp });
  };
  const variants = {
    'kept, passed': by(PASSED, false),
    'kept, inspected': by(INSPECTED, false),
    'fresh, passed': by(PASSED, true),
    'fresh, inspected': by(INSPECTED, true),
  };
  for (const variant of Object.values(variants)) await variant(settings.warmUp);
  const found = await inTurn(
    settings.rounds,
    mapValues(variants, (variant) => () => variant()),
  );
  await place.stop(gateway.child);
  return found;
}

const ENDS = fileURLToPath(new URL('tls-ends.mjs', import.meta.url));

async function askByTls(how) {
  const { stdout } = await promisify(execFile)(process.execPath, [ENDS, JSON.stringify(how)]);
  return JSON.parse(stdout);
}
