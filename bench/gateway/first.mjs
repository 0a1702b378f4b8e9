// bench/gateway/first.mjs: the time from the start of a sandbox to its first network answer: a command that sends one request through
// the gateway, compared with one that does nothing.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measured, parseMeasured, start } from '../measure.mjs';
import { emptyDirectory } from '../fixture.mjs';
import { NAME } from './names.mjs';
import { PORTS } from './place.mjs';
import { inTurn } from './rounds.mjs';

/** The port of the proxy in every sandbox. */
const PROXY_PORT = 3128;

/** Prepares a project with a client and a configuration that allows its one request. */
export function prepareFirst(actor, load) {
  const project = emptyDirectory(actor, 'first');
  copyFileSync(load, join(project, 'load'));
  const config = join(actor.home, '.config/ags');
  mkdirSync(config, { recursive: true });
  writeFileSync(
    join(config, 'config.yaml'),
    JSON.stringify({
      network: {
        allow: [`${NAME}:${PORTS.plain}`],
        dns: [`127.0.0.1:${PORTS.names}`],
        addresses: ['127.0.0.0/8'],
      },
    }),
  );
  return { actor, project };
}

export async function firstAnswers({ first: { actor, project }, ags, rounds }) {
  const exec =
    (...command) =>
    () =>
      timed(actor, [...ags, 'exec', '--', ...command], project);
  const variants = {
    nothing: exec('true'),
    asking: exec('./load', 'once', `via=tcp:${PROXY_PORT}`, `to=${NAME}:${PORTS.plain}`),
  };
  // The first run tests a whole sandbox.
  for (const variant of Object.values(variants)) await variant();
  return inTurn(rounds, variants);
}

// Asynchronous, because the name server runs in this process.
async function timed(actor, argv, cwd) {
  const child = start(actor, measured(argv, 2), { cwd });
  child.stdin.end();
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  await new Promise((resolve) => child.once('close', resolve));
  return parseMeasured(said, argv.join(' '));
}
