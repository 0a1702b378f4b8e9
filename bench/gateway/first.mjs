// bench/gateway/first.mjs: how soon after its start a sandbox can use the network: a command that asks for one thing through
// the gateway, beside one that does nothing.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measured, parseMeasured, start } from '../measure.mjs';
import { emptyDirectory } from '../world.mjs';
import { NAME } from './names.mjs';
import { PORTS } from './place.mjs';
import { inTurn } from './rounds.mjs';

/** Where every sandbox has its proxy. */
const DOOR = 3128;

/** Before anything is measured: a project with a client in it, and a configuration that allows its one question. */
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
    asking: exec('./load', 'once', `via=tcp:${DOOR}`, `to=${NAME}:${PORTS.plain}`),
  };
  // The first run tries a whole sandbox out.
  for (const variant of Object.values(variants)) await variant();
  return inTurn(rounds, variants);
}

// Not blocking: the name server is in this process.
async function timed(actor, argv, cwd) {
  const child = start(actor, measured(argv, 2), { cwd });
  child.stdin.end();
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  await new Promise((resolve) => child.once('close', resolve));
  return parseMeasured(said, argv.join(' '));
}
