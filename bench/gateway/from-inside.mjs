// bench/gateway/from-inside.mjs: connections from inside sandboxes, with everything that carries them. Started by
// bench/gateway/bench.mjs in namespaces of its own, with its settings as the only argument; the last line it prints is what
// it found.
import { execFileSync } from 'node:child_process';
import { openFarPlace } from './far-place.mjs';
import { NAME, UNLISTED } from './names.mjs';
import { PORTS } from './place.mjs';
import { inTurn, mapValues } from './rounds.mjs';
import { commands, openSandbox, prepareSandboxes } from './sandboxes.mjs';

const settings = JSON.parse(process.argv[2]);
const { rounds, seconds, warmUp } = settings;
const TO = `${NAME}:${PORTS.plain}`;
const MANY = 16;

const place = await openFarPlace(settings);
const own = prepareSandboxes(settings);
const sandboxes = {};
for (const [name, command] of Object.entries(commands({ ...settings, ...own })))
  sandboxes[name] = await openSandbox(place, own, command);
for (const [name, sandbox] of Object.entries(sandboxes))
  if (name !== 'direct') await sandbox.mustRefuse(`${UNLISTED}:${PORTS.plain}`);

let [fewest, most] = [0, 0];
const phase = (mode, how, times = rounds) =>
  inTurn(
    times,
    mapValues(sandboxes, (sandbox, name) => async () => {
      const found = await sandbox.ask(mode, { to: TO, seconds, ...how });
      const many = how.many ?? 1;
      if (name === 'ags') [fewest, most] = [fewest + found.count, most + found.count + many];
      return found;
    }),
  );

// Programs that compile themselves while they run settle after some thousand connections.
await phase('tunnels', { many: MANY, seconds: warmUp }, 1);
const results = {
  tunnels: await phase('tunnels', { many: MANY }),
  single: await phase('tunnels', { many: 1 }),
  down: await phase('down', {}),
  up: await phase('up', {}),
};
for (const sandbox of Object.values(sandboxes)) await sandbox.close();
checkLog();
await place.close();
process.stdout.write(`\n${JSON.stringify(results)}\n`);
process.exit(0);

/** What is not written down would be fast too. At the end of each measurement some connections are still on their way. */
function checkLog() {
  const { actor, project } = own;
  const [program, ...args] = [...settings.ags, 'net', 'log', '--json'];
  const text = execFileSync(program, args, {
    ...actor.identity,
    env: actor.env,
    cwd: project,
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  const lines = JSON.parse(text).decisions.filter(({ host }) => host === NAME).length;
  process.stderr.write(` ${lines} lines for ${fewest} to ${most} connections `);
  if (lines < fewest || lines > most)
    throw new Error(`the decision log has ${lines} lines, where ${fewest} to ${most} connections were made`);
}
